package spec

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/internal/model/preprocessing"
)

// A Preprocess is the value of the key preprocess of a model: the name of a preset, the path of a
// preprocessor_config.json, or a mapping of preprocessKeys.
type Preprocess struct {
	preprocessing.Settings
	Given bool  `json:"-"` // the study file has the key
	File  *Path `json:"-"` // of preprocessor_config.json; nil if the value is not a path
}

// The tags of preprocessKeys give each key's name, bounds and documentation, as package config
// reads them.
type preprocessKeys struct {
	Preset        string    `key:"preset" doc:"imagenet | cifar10 | clip | none; the other keys override it"`
	Resize        int       `key:"resize" min:"1" doc:"length of the short side after resizing"`
	Stretch       bool      `key:"stretch" doc:"resize both sides to resize, whatever the proportions"`
	Crop          []int     `key:"crop" doc:"side of the centre crop, or [height, width]"`
	Letterbox     []int     `key:"letterbox" doc:"side, or [height, width], into which the image is resized and then padded with grey to its shape, as YOLO detectors take it"`
	Channels      int       `key:"channels" min:"1" max:"3" doc:"3: colour, 1: grey"`
	Interpolation string    `key:"interpolation" enum:"bilinear|bicubic|lanczos|nearest" doc:"interpolation of the resizing"`
	CropStart     string    `key:"crop-start" enum:"nearest|floor" doc:"rounding of the crop's start: halves to even, as torchvision does (nearest, the default), or down, as transformers does"`
	Mean          []float32 `key:"mean" doc:"one for each channel, or one for all"`
	Std           []float32 `key:"std" doc:"standard deviation, likewise"`
	Order         string    `key:"order" enum:"rgb|bgr" doc:"order of the channels in the model's input"`
	Range         []float32 `key:"range" doc:"[low, high]: values of black and white (audio: of -1 and 1) before mean and deviation; default: [0, 1], audio: [-1, 1]"`

	Rate        int           `key:"rate" min:"1" doc:"audio: samples per second of the model"`
	Length      int           `key:"length" min:"1" doc:"audio: number of samples that the model takes, if its file does not fix it"`
	Standardise bool          `key:"standardise" doc:"audio: standardise each waveform to mean 0 and deviation 1, as for wav2vec 2.0"`
	Features    *featuresKeys `key:"features" doc:"audio: the model takes a spectrogram or coefficients, which are computed as part of its graph"`
}

// featuresKeys is one kind of features: one field is set.
type featuresKeys struct {
	LogMel *logMelKeys `key:"log-mel" doc:"a logarithmic mel spectrogram"`
	FBank  *kaldiKeys  `key:"kaldi-fbank" doc:"the filter banks of Kaldi, as torchaudio.compliance.kaldi.fbank"`
	MFCC   *mfccKeys   `key:"kaldi-mfcc" doc:"the mel frequency cepstral coefficients of Kaldi, as torchaudio.compliance.kaldi.mfcc"`
}

// DecodeNode implements config.Decoder.
func (k *featuresKeys) DecodeNode(n *config.Node) error {
	type keys featuresKeys // without this method
	if err := config.Decode(n, (*keys)(k)); err != nil {
		return err
	}
	if len(n.Pairs) != 1 {
		return n.Errorf("write one of log-mel, kaldi-fbank and kaldi-mfcc")
	}
	return nil
}

// JSONSchema implements config.Schemer.
func (featuresKeys) JSONSchema() map[string]any {
	type keys featuresKeys
	return config.Schema(reflect.TypeFor[keys]())
}

func (k *featuresKeys) settings(rate int) *logmel.Settings {
	switch {
	case k.FBank != nil:
		s := k.FBank.settings(rate)
		s.Power = k.FBank.Power
		return s
	case k.MFCC != nil:
		s := k.MFCC.settings(rate)
		s.Kaldi.Cepstra, s.Kaldi.Lifter = k.MFCC.Cepstra, k.MFCC.Lifter
		if s.Mels == 0 {
			s.Mels = 23 // not that of the model's input, which is the number of coefficients
		}
		return s
	}
	return k.LogMel.settings(rate)
}

// kaldiBase are the keys that Kaldi's features share, with the defaults of torchaudio.
type kaldiBase struct {
	Window       int     `key:"window" min:"2" doc:"samples of a frame; default: 25 ms"`
	Hop          int     `key:"hop" min:"1" doc:"samples between frames; default: 10 ms"`
	WindowType   string  `key:"window-type" enum:"povey|hanning|hamming|blackman|rectangular" default:"povey" doc:"form of the window"`
	Mels         int     `key:"mels" min:"3" doc:"number of bands; default: that of the model's input, for kaldi-mfcc 23"`
	Low          float64 `key:"fmin" min:"0" default:"20" doc:"start of the first band in Hz"`
	High         float64 `key:"fmax" doc:"end of the last band in Hz; 0 or less: that far below half the rate"`
	Preemphasis  float64 `key:"preemphasis" min:"0" max:"1" default:"0.97" doc:"part of the value before that each value of a frame loses"`
	DC           bool    `key:"remove-mean" default:"true" doc:"subtract the mean of each frame"`
	Snip         bool    `key:"snip-edges" default:"true" doc:"all frames lie within the audio; false: it is continued by its mirror image at both ends"`
	Energy       bool    `key:"use-energy" doc:"the log energy of a frame as a value before the bands, or in place of the first coefficient"`
	RawEnergy    bool    `key:"raw-energy" default:"true" doc:"the energy is that before preemphasis and window"`
	EnergyFloor  float64 `key:"energy-floor" min:"0" default:"1" doc:"smallest energy; Kaldi's own default is 0"`
	SubtractMean bool    `key:"subtract-mean" doc:"subtract the mean over frames"`
	Frames       int     `key:"frames" min:"0" doc:"frames of the result, to which zeros are added, or which are cut; default: all"`
	Mean         float64 `key:"mean" doc:"subtracted from the result"`
	Std          float64 `key:"std" doc:"divisor of the result; default: 1"`
}

type kaldiKeys struct {
	kaldiBase
	Power float64 `key:"power" default:"2" min:"1" max:"2" doc:"1: magnitudes, 2: powers"`
}

type mfccKeys struct {
	kaldiBase
	Cepstra int     `key:"cepstra" min:"1" default:"13" doc:"number of coefficients"`
	Lifter  float64 `key:"lifter" min:"0" default:"22" doc:"lifter of the coefficients; 0: none"`
}

func (k kaldiBase) settings(rate int) *logmel.Settings {
	return &logmel.Settings{Rate: rate, Window: k.Window, Hop: k.Hop, Mels: k.Mels, Low: k.Low, High: k.High, Mean: k.Mean, Std: k.Std, Kaldi: &logmel.Kaldi{
		WindowType: k.WindowType, Preemphasis: k.Preemphasis, KeepMean: !k.DC, Mirror: !k.Snip, Energy: k.Energy, WindowedEnergy: !k.RawEnergy,
		EnergyFloor: k.EnergyFloor, SubtractMean: k.SubtractMean, Frames: k.Frames}}
}

type logMelKeys struct {
	FFT          int     `key:"n-fft" min:"2" doc:"samples of a frame; default: the length of the window"`
	Window       int     `key:"window" min:"1" doc:"samples of the window; default: 25 ms"`
	WindowType   string  `key:"window-type" enum:"hann|hamming" default:"hann" doc:"form of the window"`
	Hop          int     `key:"hop" min:"1" doc:"samples between frames; default: 10 ms"`
	Mels         int     `key:"mels" min:"1" doc:"number of bands; default: that of the model's input"`
	Low          float64 `key:"fmin" min:"0" doc:"start of the first band in Hz"`
	High         float64 `key:"fmax" min:"0" doc:"end of the last band in Hz; default: half the rate"`
	Scale        string  `key:"scale" enum:"htk|slaney" default:"htk" doc:"scale of the bands: the default of torchaudio (htk) or of librosa (slaney)"`
	Norm         string  `key:"norm" enum:"none|slaney" default:"none" doc:"normalisation of the bands: equal height (torchaudio) or equal area (librosa)"`
	Filters      string  `key:"filters" enum:"triangles|speechbrain" default:"triangles" doc:"form of the bands; speechbrain: the upper side of each is as wide as the lower one"`
	Power        float64 `key:"power" default:"2" min:"1" max:"2" doc:"1: magnitudes, 2: powers"`
	Pad          string  `key:"pad" enum:"reflect|zeros|none" default:"reflect" doc:"values beyond the ends of the audio; none: all frames lie within it"`
	Log          string  `key:"log" enum:"natural|log10|db" default:"natural" doc:"kind of logarithm"`
	Offset       float64 `key:"offset" min:"0" doc:"added before the logarithm; default: 1e-6"`
	Clamp        bool    `key:"clamp" doc:"use the larger of value and offset instead of their sum"`
	Range        float64 `key:"range" min:"0" doc:"largest difference from the largest value, in the unit of the logarithm; lower values are raised to it. Default: no limit"`
	Mean         float64 `key:"mean" doc:"subtracted from the logarithm"`
	Std          float64 `key:"std" doc:"divisor of the result; default: 1"`
	SubtractMean bool    `key:"subtract-mean" doc:"subtract the mean over frames"`
	Drop         bool    `key:"drop-last" doc:"leave out the last frame, as Whisper does"`
}

// settings returns the settings of the spectrogram for a sampling rate.
func (k logMelKeys) settings(rate int) *logmel.Settings {
	return &logmel.Settings{Rate: rate, FFT: k.FFT, Window: k.Window, Hop: k.Hop, Mels: k.Mels, Low: k.Low, High: k.High, Scale: k.Scale,
		Area: k.Norm == "slaney", Power: k.Power, Pad: k.Pad, Log: k.Log, Offset: k.Offset, Clamp: k.Clamp, Range: k.Range, Mean: k.Mean, Std: k.Std, DropLast: k.Drop,
		Hamming: k.WindowType == "hamming", Symmetric: k.Filters == "speechbrain", SubtractMean: k.SubtractMean}
}

// DecodeNode implements config.Decoder: it reads the value from a node of the parsed file.
func (p *Preprocess) DecodeNode(n *config.Node) error {
	p.Given = true
	if n.Kind == config.String {
		if filepath.Ext(n.Text) == ".json" {
			p.File = new(Path)
			return p.File.DecodeNode(n)
		}
		var err error
		if p.Settings, err = preprocessing.Preset(n.Text); err != nil {
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
		if p.Settings, err = preprocessing.Preset(k.Preset); err != nil {
			return n.Get("preset").Errorf("%w", err)
		}
	}
	return p.set(n, k)
}

// set overrides the preset with the keys that are set in k. n is the mapping's node, for the
// position of errors in the study file.
func (p *Preprocess) set(n *config.Node, k preprocessKeys) error {
	f := &p.Frame // how samples are resized, cropped and resampled
	if k.Resize > 0 {
		f.Resize = k.Resize
	}
	if f.Square = f.Square || k.Stretch; f.Square && f.Resize == 0 {
		return n.Get("stretch").Errorf("stretch needs resize: the length of both sides")
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
	switch len(k.Letterbox) {
	case 0:
	case 1, 2:
		f.Letterbox, f.Fill, f.Height, f.Width = true, preprocessing.LetterboxFill, k.Letterbox[0], k.Letterbox[len(k.Letterbox)-1]
		if k.Crop != nil {
			return n.Get("letterbox").Errorf("letterbox already states the size: leave crop out")
		}
	default:
		return n.Get("letterbox").Errorf("letterbox is a side, or [height, width]")
	}
	if k.Channels > 0 {
		f.Channels = k.Channels
	}
	if k.Interpolation != "" {
		f.Interpolation = k.Interpolation
	}
	if k.CropStart != "" {
		f.FloorCrop = k.CropStart == "floor"
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
	p.setAudio(k)
	if p.Features != nil && p.Frame.Rate == 0 {
		return n.Get("features").Errorf("features need rate: set the samples per second")
	}
	if err := p.Frame.Check(); err != nil {
		return n.Errorf("%w", err)
	}
	return nil
}

// setAudio overrides the preset with the keys for audio that are set in k.
func (p *Preprocess) setAudio(k preprocessKeys) {
	if k.Rate > 0 {
		p.Frame.Rate = k.Rate
	}
	if k.Length > 0 {
		p.Frame.Length = k.Length
	}
	p.Standardise = p.Standardise || k.Standardise
	if k.Features != nil {
		p.Features = k.Features.settings(p.Frame.Rate)
	}
}

// JSONSchema implements config.Schemer.
func (Preprocess) JSONSchema() map[string]any {
	keys := config.Schema(reflect.TypeFor[preprocessKeys]())
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "string", "description": "imagenet | cifar10 | clip | none, or the path of a preprocessor_config.json"},
		keys,
	}}
}

// PreprocessKey is the key of a model's metadata that holds its preprocessing, as PreprocessText
// writes it.
const PreprocessKey = "noether.preprocess"

// PreprocessText returns a preprocessing as the YAML of the key preprocess of a study file. ok is
// false if it has a spectrogram, which the text does not express.
func PreprocessText(p preprocessing.Settings) (text string, ok bool) {
	values, ok := preprocessValues(p)
	switch {
	case !ok:
		return "", false
	case len(values) == 0:
		return "none", true
	}
	keys := make([]string, len(values))
	for i, v := range values {
		keys[i] = v.key + ": " + v.text()
	}
	return "{" + strings.Join(keys, ", ") + "}", true
}

// PreprocessMap returns a preprocessing as the values of the key preprocess of a study file by
// their keys. ok is as for PreprocessText.
func PreprocessMap(p preprocessing.Settings) (values map[string]any, ok bool) {
	list, ok := preprocessValues(p)
	values = map[string]any{}
	for _, v := range list {
		values[v.key] = v.value
	}
	return values, ok
}

// A preprocessValue is a value of the key preprocess: a text, a number, a bool, or a list of
// numbers.
type preprocessValue struct {
	key   string
	value any
}

func (v preprocessValue) text() string {
	switch value := v.value.(type) {
	case []float32:
		return numbers(value)
	case []int:
		return fmt.Sprintf("[%d, %d]", value[0], value[1])
	}
	return fmt.Sprint(v.value)
}

func preprocessValues(p preprocessing.Settings) (list []preprocessValue, ok bool) {
	add := func(set bool, key string, value any) {
		if set {
			list = append(list, preprocessValue{key, value})
		}
	}
	f := p.Frame
	add(f.Resize > 0, "resize", f.Resize)
	add(f.Square, "stretch", true)
	size := "crop"
	if f.Letterbox {
		size = "letterbox"
	}
	add(f.Height > 0 && f.Height == f.Width, size, f.Height)
	add(f.Height != f.Width, size, []int{f.Height, f.Width})
	add(f.Channels > 0, "channels", f.Channels)
	add(f.Interpolation != "", "interpolation", f.Interpolation)
	add(f.FloorCrop, "crop-start", "floor")
	add(len(p.Mean) > 0, "mean", p.Mean)
	add(len(p.Std) > 0, "std", p.Std)
	add(p.Order != "", "order", p.Order)
	add(p.Range != [2]float32{}, "range", p.Range[:])
	add(f.Rate > 0, "rate", f.Rate)
	add(f.Length > 0, "length", f.Length)
	add(p.Standardise, "standardise", true)
	return list, p.Features == nil
}

// numbers writes a list of numbers as YAML.
func numbers(values []float32) string {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return "[" + strings.Join(text, ", ") + "]"
}

// ParsePreprocess reads a preprocessing from text in YAML. Errors name the file.
func ParsePreprocess(file, text string) (preprocessing.Settings, error) {
	node, err := config.Parse(file, []byte(text), nil)
	if err != nil {
		return preprocessing.Settings{}, err
	}
	var p Preprocess
	err = p.DecodeNode(node)
	return p.Settings, err
}
