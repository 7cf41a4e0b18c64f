package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/model/logmel"
	"github.com/noether-ml/noether/onnx"
)

// A Model is an entry of models.
type Model struct {
	Name       string            `key:"name,required" doc:"name in the scores"`
	ONNX       Path              `key:"onnx,required" doc:"the model's file, or its URL: https, s3, gs or file"`
	SHA256     string            `key:"sha256" doc:"of the file; checked where given. A run writes it into the resolved study"`
	Preprocess Preprocess        `key:"preprocess" doc:"what stands between an image in [0, 1] and the model's input"`
	Layers     []string          `key:"layers" doc:"all | op:TYPE | a glob on tensor names | residual | penultimate | output"`
	Tags       map[string]string `key:"tags" doc:"carried to the report and the record of the run"`
	Input      string            `key:"input" doc:"name of the image input, where there are several"`
	Inputs     map[string]Value  `key:"inputs" doc:"values of the model's further inputs: a number or a list"`
	Layout     string            `key:"layout" enum:"NCHW|NHWC" doc:"of the image input, where it is not clear"`
	Axes       map[string]string `key:"axes" doc:"axes of tensors, where they are not found out rightly, for instance {/features/out: NHWC}"`
	Output     string            `key:"output" doc:"name of the output that holds class scores, where there are several"`
	Scores     string            `key:"scores" enum:"logits|probabilities|none" doc:"what the class scores are, where it is not clear"`

	node *config.Node
}

// A Preprocess is the name of a preset, the path of a preprocessor_config.json, or a mapping.
type Preprocess struct {
	model.Preprocess
	given  bool
	config *Path
}

type preprocessKeys struct {
	Preset        string    `key:"preset" doc:"imagenet | cifar10 | clip | none: what the other keys then change"`
	Resize        int       `key:"resize" min:"1" doc:"length of the short side after resizing"`
	Crop          []int     `key:"crop" doc:"side of the centre crop, or [height, width]"`
	Channels      int       `key:"channels" min:"1" max:"3" doc:"3: colour, 1: grey"`
	Interpolation string    `key:"interpolation" enum:"bilinear|bicubic|nearest" doc:"when resizing"`
	Mean          []float32 `key:"mean" doc:"one for each channel, or one for all"`
	Std           []float32 `key:"std" doc:"deviation, likewise"`
	Order         string    `key:"order" enum:"rgb|bgr" doc:"of the channels, as the model takes them"`
	Range         []float32 `key:"range" doc:"[low, high]: what black and white (of sounds -1 and 1) are before mean and deviation; [0, 1], of sounds [-1, 1]"`

	Rate        int           `key:"rate" min:"1" doc:"of sounds: samples a second that the model was trained on"`
	Length      int           `key:"length" min:"1" doc:"of sounds: samples that the model takes, where its file leaves that open"`
	Standardise bool          `key:"standardise" doc:"of sounds: each is brought to mean 0 and deviation 1, as wav2vec 2.0 wants it"`
	Features    *featuresKeys `key:"features" doc:"of sounds: the model takes a spectrogram, which is then computed as part of its graph"`
}

type featuresKeys struct {
	LogMel *logMelKeys `key:"log-mel,required" doc:"a logarithmic mel spectrogram"`
}

type logMelKeys struct {
	FFT    int     `key:"n-fft" min:"2" doc:"samples of a frame; the window's length where not given"`
	Window int     `key:"window" min:"1" doc:"samples of the Hann window; 25 ms where not given"`
	Hop    int     `key:"hop" min:"1" doc:"samples between frames; 10 ms where not given"`
	Mels   int     `key:"mels" min:"1" doc:"bands; what the model takes where not given"`
	Low    float64 `key:"fmin" min:"0" doc:"Hz: where the first band starts"`
	High   float64 `key:"fmax" min:"0" doc:"Hz: where the last band ends; half the rate where not given"`
	Scale  string  `key:"scale" enum:"htk|slaney" default:"htk" doc:"of the bands: torchaudio's default, or librosa's"`
	Norm   string  `key:"norm" enum:"none|slaney" default:"none" doc:"of the bands: equal height (torchaudio), or equal area (librosa)"`
	Power  float64 `key:"power" default:"2" min:"1" max:"2" doc:"1: magnitudes, 2: powers"`
	Pad    string  `key:"pad" enum:"reflect|zeros|none" default:"reflect" doc:"what lies beyond the ends of a sound; none: frames start with it and end with it"`
	Log    string  `key:"log" enum:"natural|log10|db" default:"natural" doc:"the logarithm"`
	Offset float64 `key:"offset" min:"0" doc:"added before the logarithm; 1e-6 where not given"`
	Clamp  bool    `key:"clamp" doc:"the larger of value and offset is taken, in place of their sum"`
	Range  float64 `key:"range" min:"0" doc:"values further than this below the loudest of a sound are raised to it, in the unit of the logarithm"`
	Mean   float64 `key:"mean" doc:"subtracted from the logarithm"`
	Std    float64 `key:"std" doc:"what the result is divided by; 1"`
	Drop   bool    `key:"drop-last" doc:"the last frame is left out, as Whisper has it"`
}

// settings are those of the spectrogram of sounds of a rate.
func (k logMelKeys) settings(rate int) *logmel.Settings {
	return &logmel.Settings{Rate: rate, FFT: k.FFT, Window: k.Window, Hop: k.Hop, Mels: k.Mels, Low: k.Low, High: k.High, Scale: k.Scale,
		Area: k.Norm == "slaney", Power: k.Power, Pad: k.Pad, Log: k.Log, Offset: k.Offset, Clamp: k.Clamp, Range: k.Range, Mean: k.Mean, Std: k.Std, DropLast: k.Drop}
}

// DecodeNode implements config.Decoder.
func (p *Preprocess) DecodeNode(n *config.Node) error {
	p.given = true
	if n.Kind == config.String {
		if filepath.Ext(n.Text) == ".json" {
			p.config = new(Path)
			return p.config.DecodeNode(n)
		}
		var err error
		if p.Preprocess, err = model.Preset(n.Text); err != nil {
			return n.Errorf("%w; or the path of a preprocessor_config.json", err)
		}
		return nil
	}
	var k preprocessKeys
	if err := config.Decode(n, &k); err != nil {
		return err
	}
	if k.Preset != "" {
		var err error
		if p.Preprocess, err = model.Preset(k.Preset); err != nil {
			return n.Get("preset").Errorf("%w", err)
		}
	}
	return p.set(n, k)
}

// set puts the given keys over those of the preset.
func (p *Preprocess) set(n *config.Node, k preprocessKeys) error {
	f := &p.Frame
	if k.Resize > 0 {
		f.Resize = k.Resize
	}
	switch len(k.Crop) {
	case 0:
	case 1:
		f.Height, f.Width = k.Crop[0], k.Crop[0]
	case 2:
		f.Height, f.Width = k.Crop[0], k.Crop[1]
	default:
		return n.Get("crop").Errorf("crop is a side, or [height, width]")
	}
	if k.Channels > 0 {
		f.Channels = k.Channels
	}
	if k.Interpolation != "" {
		f.Interpolation = k.Interpolation
	}
	if k.Mean != nil {
		p.Mean = k.Mean
	}
	if k.Std != nil {
		p.Std = k.Std
	}
	if k.Order != "" {
		p.Order = k.Order
	}
	if k.Range != nil {
		if len(k.Range) != 2 {
			return n.Get("range").Errorf("range is [low, high]")
		}
		p.Range = [2]float32{k.Range[0], k.Range[1]}
	}
	p.setSound(k)
	if p.Features != nil && p.Frame.Rate == 0 {
		return n.Get("features").Errorf("features want a rate beside them: how many samples of the sounds make a second")
	}
	if err := p.Frame.Check(); err != nil {
		return n.Errorf("%w", err)
	}
	return nil
}

// setSound puts the keys of sounds over those of the preset.
func (p *Preprocess) setSound(k preprocessKeys) {
	if k.Rate > 0 {
		p.Frame.Rate = k.Rate
	}
	if k.Length > 0 {
		p.Frame.Length = k.Length
	}
	p.Standardise = p.Standardise || k.Standardise
	if k.Features != nil {
		p.Features = k.Features.LogMel.settings(p.Frame.Rate)
	}
}

// JSONSchema implements config.Schemer.
func (Preprocess) JSONSchema() map[string]any {
	keys := config.Schema(typeOf[preprocessKeys]())
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "description": "imagenet | cifar10 | clip | none, or the path of a preprocessor_config.json"},
		keys,
	}}
}

// A Value is what a further input of a model is fixed to: a number, or a list of numbers.
type Value []float64

// DecodeNode implements config.Decoder.
func (v *Value) DecodeNode(n *config.Node) error {
	if n.Kind != config.List {
		x, err := n.Number()
		*v = Value{x}
		return err
	}
	for _, item := range n.Items {
		var inner Value
		if err := inner.DecodeNode(item); err != nil {
			return err
		}
		*v = append(*v, inner...)
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (Value) JSONSchema() map[string]any {
	return map[string]any{"type": []string{"number", "array"}}
}

// A Path is a path in a study file: relative to it.
type Path struct {
	text string
	node *config.Node
}

// DecodeNode implements config.Decoder.
func (p *Path) DecodeNode(n *config.Node) error {
	text, err := n.Scalar()
	if err == nil && text == "" {
		err = n.Errorf("the path is empty")
	}
	p.text, p.node = text, n
	return err
}

// JSONSchema implements config.Schemer.
func (Path) JSONSchema() map[string]any { return map[string]any{"type": "string"} }

// errorf places an error at the path in the study file.
func (p Path) errorf(format string, args ...any) error { return p.node.Errorf(format, args...) }

// openModel opens a model entry: graph, preprocessing, layers. Images are of the given size, and sounds of the given length, where
// neither says which.
func (s *Study) openModel(ctx context.Context, spec Model, size [2]int, heard *dataset.Sound, o Options) (*openModel, error) {
	path, err := s.findModel(ctx, spec)
	if err != nil {
		return nil, err
	}
	pre, err := s.preprocessFor(ctx, spec, path, o)
	if err != nil {
		return nil, err
	}
	layers := spec.Layers
	if len(layers) == 0 {
		layers = []string{"all"}
	}
	axes := map[string]onnx.Axes{}
	for name, a := range spec.Axes {
		axes[name] = onnx.Axes(a)
	}
	inputs := map[string][]float64{}
	for name, v := range spec.Inputs {
		inputs[name] = v
	}
	wanted := layers
	if s.wantsPenultimate() {
		wanted = append(slices.Clip(layers), "penultimate")
	}
	m, err := model.Open(o.Runtime, path, model.Options{Layers: wanted, Axes: axes, Input: spec.Input, Layout: spec.Layout,
		Inputs: inputs, Output: spec.Output, Scores: spec.Scores, Preprocess: pre, Size: size, Samples: samplesOf(heard, pre), Threads: o.Threads, Device: o.Device,
		Reread: len(s.Models) > 1})
	if err != nil {
		return nil, spec.place(err)
	}
	if spec.SHA256 != "" && spec.SHA256 != m.SHA256() {
		return nil, spec.ONNX.errorf("%s has the SHA-256 %s, not %s: it is another model than the study was made for", path, m.SHA256(), spec.SHA256)
	}
	open := &openModel{spec: spec, model: m, preprocess: pre, layers: m.Layers()}
	if s.wantsPenultimate() {
		if open.layers, err = chosen(m, layers...); err == nil {
			open.penultimate, err = chosen(m, "penultimate")
		}
	}
	return open, err
}

// samplesOf is the length of the items of sounds at the rate of a model; 0 where they have none.
func samplesOf(heard *dataset.Sound, pre model.Preprocess) int {
	switch {
	case heard == nil:
		return 0
	case pre.Frame.Rate > 0:
		return int(math.Round(heard.Item * float64(pre.Frame.Rate)))
	}
	return int(math.Round(heard.Item * float64(heard.Rate)))
}

// place points at the value of the entry that an error of model.Open comes from, where it comes from one: as near to it as
// the entry names it.
func (m Model) place(err error) error {
	var from *model.SettingError
	if !errors.As(err, &from) || m.node == nil {
		return err
	}
	at := m.node
	for _, step := range from.Path {
		next := at.Get(step)
		if i, no := strconv.Atoi(step); no == nil && at.Kind == config.List && i < len(at.Items) {
			next = at.Items[i]
		}
		if next == nil {
			break
		}
		at = next
	}
	return at.Errorf("%w", err)
}

// chosen are the layers of an open model that patterns match.
func chosen(m *model.Model, patterns ...string) ([]onnx.Layer, error) {
	matched, err := m.Graph().Select(patterns...)
	names := onnx.Names(matched)
	return slices.DeleteFunc(m.Layers(), func(l onnx.Layer) bool { return !slices.Contains(names, l.Name) }), err
}

// preprocessFor is the preprocessing of the entry, else that of a preprocessor_config.json beside the model, else none.
func (s *Study) preprocessFor(ctx context.Context, spec Model, path string, o Options) (model.Preprocess, error) {
	switch beside := filepath.Join(filepath.Dir(path), "preprocessor_config.json"); {
	case spec.Preprocess.config != nil:
		file, err := s.find(ctx, *spec.Preprocess.config, "")
		if err != nil {
			return model.Preprocess{}, err
		}
		return model.ReadPreprocessorConfig(file)
	case spec.Preprocess.given:
		return spec.Preprocess.Preprocess, nil
	default:
		if _, err := os.Stat(beside); err != nil {
			return model.Preprocess{}, nil
		}
		o.warn("model %s: preprocessing as %s says", spec.Name, beside)
		p, err := model.ReadPreprocessorConfig(beside)
		if err != nil {
			return p, fmt.Errorf("%w; name a preprocessing in the study to leave that file aside", err)
		}
		return p, nil
	}
}

// canonical is what the scores of a model depend on.
func (m *openModel) canonical() any {
	return []any{m.model.SHA256(), m.preprocess, m.spec.Inputs, m.spec.Input, m.spec.Layout, m.spec.Output, m.spec.Scores}
}
