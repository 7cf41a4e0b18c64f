package plan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/tensor"
)

// openModel opens a model of the study. If neither it nor its preprocessing sets the size of images
// or the length of audio, it takes those of the data.
func openModel(ctx context.Context, files *open.Files, s *spec.Study, entry spec.Model, data inputInfo, o Options) (*Model, error) {
	path, err := files.Model(ctx, entry)
	if err != nil {
		return nil, err
	}
	var pre model.Preprocess
	// A model that takes arrays as they are ignores the config of a processor beside its file.
	if data.arrays == nil || entry.Preprocess.Given || entry.Preprocess.File != nil {
		if pre, err = files.Preprocessing(ctx, entry, path, func(text string) { o.Warnf("%s", text) }); err != nil {
			return nil, err
		}
	}
	layers := entry.Layers
	if len(layers) == 0 {
		layers = []string{"all"}
	}
	axes := map[string]tensor.Axes{}
	for name, a := range entry.Axes {
		axes[name] = tensor.Axes(a)
	}
	inputs := map[string][]float64{}
	for name, v := range entry.Inputs {
		inputs[name] = v
	}
	wanted := layers
	if s.WantsPenultimate() {
		wanted = append(slices.Clip(layers), "penultimate")
	}
	tokens, err := entry.TokenLayout()
	if err != nil {
		return nil, err
	}
	decode, err := entry.Setting()
	if err != nil {
		return nil, err
	}
	net, err := s.OpenNetwork(ctx, entry, path, spec.EngineOptions{
		Note: func(text string) { o.Warnf("%s", text) },
		ONNX: func(path string) (engine.Network, error) {
			return o.Runtime.OpenNetwork(path, ort.NetworkOptions{Threads: o.Threads, Device: o.Device,
				ReloadWeights: len(s.Models) > 1, // the weights of one model at a time are in memory
				RoundHalf:     o.RoundHalf})
		},
	})
	if err != nil {
		return nil, err
	}
	m, err := model.Open(ctx, net, model.Options{Layers: wanted, Axes: axes, Tokens: tokens, Input: entry.Input, Layout: entry.Layout,
		Inputs: inputs, Output: entry.Output.Scores, Scores: entry.Scores, Decode: decode, Preprocess: pre, Size: data.size, Samples: samplesOf(data.waveform, pre), Arrays: data.arrays})
	if err != nil {
		return nil, addPosition(entry, err)
	}
	if entry.SHA256 != "" && entry.SHA256 != m.SHA256() {
		return nil, entry.Address().Errorf("%s has the SHA-256 %s, not %s: the model differs from the one recorded in the study", path, m.SHA256(), entry.SHA256)
	}
	if conflict := m.PreprocessConflict(); conflict != "" {
		o.Warnf("model %s: %s", entry.Name, conflict)
	}
	if text := RandomWarning(m); text != "" {
		o.Warnf("model %s: %s", entry.Name, text)
	}
	for _, text := range m.Doubts(m.Classes()) { // scores have the doubt of data with other labels
		o.Warnf("model %s: %s", entry.Name, text)
	}
	if text := guessedTokens(m.Layers()); text != "" {
		o.Warnf("model %s: %s", entry.Name, text)
	}
	if text := stretchWarning(m.Frame(), data.size); text != "" {
		o.Warnf("model %s: %s", entry.Name, text)
	}
	classNames, namesErr := m.ClassNames()
	if namesErr != nil {
		o.Warnf("model %s: %v: its classes have no names", entry.Name, namesErr)
	}
	opened := &Model{Entry: entry, Net: m, preprocess: pre, layers: m.Layers(), classNames: classNames}
	if s.WantsPenultimate() {
		if opened.layers, err = matchLayers(m, layers...); err == nil {
			opened.penultimate, err = matchLayers(m, "penultimate")
		}
	}
	return opened, err
}

// addPosition adds to an error of model.Open the position in the study file of the key that caused
// it. An error that names no key is returned as it is.
func addPosition(entry spec.Model, err error) error {
	var setting *model.SettingError
	if !errors.As(err, &setting) {
		return err
	}
	return entry.At(setting.Path...).Errorf("%w", err)
}

// RandomWarning names the nodes of a model that draw random numbers, or returns "".
func RandomWarning(m *model.Model) string {
	var nodes []string
	if graph := m.Graph(); graph != nil {
		nodes = graph.RandomNodes()
	}
	if len(nodes) == 0 {
		return ""
	}
	text := nodes[0]
	if len(nodes) > 1 {
		text = fmt.Sprintf("%s and %d more nodes", nodes[0], len(nodes)-1)
	}
	return text + ": the model draws random numbers, so scores differ from run to run: export the model for inference"
}

// guessedTokens warns about the first layer whose layout was guessed from its number of tokens, or
// returns "".
func guessedTokens(layers []tensor.Layer) string {
	for _, l := range layers {
		maps, why := l.Maps() // why the layer has no feature maps; "" if it has some
		if l.Axes != "NTC" || l.Tokens != nil || why != "" {
			continue
		}
		taken := fmt.Sprintf("a sequence of %d", l.Shape[0])
		if h, w, plane := maps.Size(); plane {
			taken = fmt.Sprintf("%d without a position and a grid of %d x %d", l.Shape[0]-h*w, h, w)
		}
		return fmt.Sprintf("the %d tokens of layer %s are taken for %s, from their number alone: set tokens: {prefix: ..., grid: [rows, columns]} if they are not", l.Shape[0], l.Name, taken)
	}
	return ""
}

// stretchWarning warns if a frame changes the aspect ratio by more than 2 %, else returns "". size
// is height, width.
func stretchWarning(f dataset.Frame, size [2]int) string {
	h, w := f.Height, f.Width
	resized := f.Resize == 0 && h > 0 && w > 0
	if f.Square {
		h, w, resized = f.Resize, f.Resize, true
	}
	if !resized || f.Letterbox || size[0] == 0 || math.Abs(math.Log(float64(h*size[1])/float64(w*size[0]))) < 0.02 {
		return ""
	}
	return fmt.Sprintf("images of %d x %d are stretched to %d x %d: preprocess: {..., resize: %d, crop: [%d, %d]} keeps their aspect ratio",
		size[0], size[1], h, w, max(h, w), f.Height, f.Width)
}

// samplesOf returns the length of audio items at the model's rate, or 0 if it is not fixed.
func samplesOf(waveform *dataset.Waveform, pre model.Preprocess) int {
	switch {
	case waveform == nil:
		return 0
	case pre.Frame.Rate > 0:
		return int(math.Round(waveform.Seconds * float64(pre.Frame.Rate)))
	}
	return int(math.Round(waveform.Seconds * float64(waveform.Rate)))
}

func matchLayers(m *model.Model, patterns ...string) ([]tensor.Layer, error) {
	return m.Select(patterns...)
}

// canonical returns what scores depend on, except properties of single layers, which target.depends
// and ProcedureRun.depends return.
func (m *Model) canonical() any {
	return []any{m.Net.SHA256(), m.preprocess, m.Entry.Inputs, m.Entry.Input, m.Entry.Layout, m.Entry.Output.Scores, m.Entry.Scores}
}

// A Model is an opened model of the study.
type Model struct {
	Entry      spec.Model   // the model as written in the study file
	Net        *model.Model // the opened ONNX file
	preprocess model.Preprocess
	layers     []tensor.Layer // layers chosen by the study
	classNames []string       // the names of the classes; nil if they are not known

	penultimate []tensor.Layer // the input of the final classifier, if some measure reads it
}

func checkModelNames(s *spec.Study, models []string) error {
	var names []string
	for _, m := range s.Models {
		names = append(names, m.Name)
	}
	for _, name := range models {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the study has no model %q; %s", name, config.Suggest(name, names))
		}
	}
	return nil
}
