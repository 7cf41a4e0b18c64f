package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/logmel"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Layouts of an input that takes a batch of b waveforms of n values and c channels, 1 or 2: b x n, b x
// c x n and b x n x c.
const (
	layoutWave    tensor.Axes = "NT"
	layoutChannel tensor.Axes = "NCT"
	layoutLast    tensor.Axes = "NTC"
)

// waveLength returns the size of the axis of an input that takes waveforms, in values; -1: free.
func waveLength(in engine.Port) int {
	if audioLayout(in) == layoutLast {
		return in.Shape[1].Size
	}
	return in.Shape[len(in.Shape)-1].Size
}

func (o Options) wantsAudio() bool {
	p := o.Preprocess
	return o.Samples > 0 || p.Frame.Rate > 0 || p.Frame.Length > 0 || p.Features != nil || p.Standardise
}

// audioLayout returns the layout in which an input can take a waveform, or "" if it cannot.
func audioLayout(in engine.Port) tensor.Axes {
	switch {
	case in.Type != engine.Float && in.Type != engine.Double:
	case len(in.Shape) == 2:
		return layoutWave
	case len(in.Shape) == 3 && in.Shape[0].Size > 1 && in.Shape[1].Size < 0: // a state, with the batch second
	case len(in.Shape) == 3 && in.Shape[1].Size == 2 && isLong(in.Shape[2]):
		return layoutChannel
	case len(in.Shape) == 3 && in.Shape[2].Size == 2 && isLong(in.Shape[1]):
		return layoutLast
	case len(in.Shape) == 3 && in.Shape[2].Size != 1 && (in.Shape[1].Size == 1 || in.Shape[1].Size < 0):
		return layoutChannel
	case len(in.Shape) == 3 && in.Shape[2].Size == 1: // as TensorFlow has it
		return layoutLast
	}
	return ""
}

// isLong reports whether an axis can have the values of a waveform.
func isLong(d engine.Dim) bool { return d.Size < 0 || d.Size >= shortestWave }

// waveChannels returns the number of channels of an input that takes waveforms.
func waveChannels(in engine.Port) int {
	switch audioLayout(in) {
	case layoutChannel:
		return max(in.Shape[1].Size, 1)
	case layoutLast:
		return in.Shape[2].Size
	}
	return 1
}

// shortestWave is the smallest size of an input that is assumed to be a waveform, 1/31 s at 8 kHz.
const shortestWave = 256

func tooShort(in engine.Port) bool {
	n := waveLength(in)
	return 0 < n && n < shortestWave
}

// newAudioInput describes an input that takes waveforms, with their length and rate.
// Options.Samples is the length of the data, in values.
func newAudioInput(info engine.Port, layout tensor.Axes, o Options) (input, error) {
	p := input{info: info, layout: layout, audio: true, channels: waveChannels(info), height: 1, preprocess: o.Preprocess, frame: o.Preprocess.Frame}
	n := waveLength(info)
	var err error
	if p.width, err = reconcile("length", n, p.frame.Length, info); err != nil {
		return p, err
	}
	p.width = cmp.Or(p.width, o.Samples)
	if p.width <= 0 {
		return p, fmt.Errorf("input %s does not fix the length of waveforms: set preprocess: {length: 16000}, in samples, or the length of the data", describeInput(info))
	}
	if s := o.Preprocess.Features; s != nil {
		if p.frame.Rate, err = featureRate(*s, p.frame.Rate); err != nil {
			return p, err
		}
	}
	p.frame.Length, p.frame.Stereo = p.width, p.channels == 2
	return p, p.preprocess.CheckAudio()
}

// featureRate returns rate or the spectrogram's sampling rate in values per second, 0 if neither is
// stated. Two that differ are an error.
func featureRate(s logmel.Settings, rate int) (int, error) {
	if rate > 0 && s.Rate > 0 && rate != s.Rate {
		return 0, &preprocessing.KeyError{Key: "rate", Err: fmt.Errorf("preprocess: rate %d differs from that of the features, %d samples per second", rate, s.Rate)}
	}
	return max(rate, s.Rate), nil
}

// withFeatures adds features, such as a log-mel spectrogram, in front of a model whose input is b x
// bands x frames or b x frames x bands, possibly with a channel axis of size 1 after the batch. The
// result takes b waveforms of n values: b x n, or b x 1 x n if channel is 1. channel is 1 or left
// out.
func withFeatures(graph *onnx.Model, o Options, channel ...int) (*onnx.Model, error) {
	s := *o.Preprocess.Features
	var err error
	if s.Rate, err = featureRate(s, o.Preprocess.Frame.Rate); err != nil {
		return nil, err
	}
	info, err := featureInput(portsOf(graph.Inputs()), o)
	if err != nil {
		return nil, err
	}
	framesFirst, err := orient(info, &s)
	if err != nil {
		return nil, &preprocessing.KeyError{Key: "features", Err: err}
	}
	b := onnx.NewBuilder(graph.Opset())
	n := -1
	if l := o.Preprocess.Frame.Length; l > 0 {
		n = l
	} else if o.Samples > 0 {
		n = o.Samples
	}
	wave := b.Input("sound", onnx.Float, slices.Concat([]int{info.Shape[0].Size}, channel, []int{n})...)
	features, err := s.Graph(b.Scope("log-mel"), wave)
	if err != nil {
		return nil, &preprocessing.KeyError{Key: "features", Err: err}
	}
	if framesFirst {
		features = b.Transpose(features, 0, 2, 1)
	}
	if len(info.Shape) == 4 {
		features = b.Unsqueeze(features, 1)
	}
	if info.Type != engine.Float {
		features = b.Cast(features, typeOf(info.Type))
	}
	if err := checkFrames(info, framesFirst, s, n); err != nil {
		return nil, err
	}
	inputs := map[string]onnx.Value{info.Name: features}
	for _, in := range graph.Inputs() {
		if in.Name != info.Name {
			inputs[in.Name] = b.Input(in.Name, in.Type, in.Sizes()...)
		}
	}
	for _, v := range b.Include(graph, inputs) {
		b.Output("", v)
	}
	out, err := b.Model()
	if err != nil {
		return nil, err
	}
	return out.WithMetadataOf(graph), nil
}

// WithFeatures adds p.Features in front of a network, as Open does (see withFeatures). The result
// takes waveforms, batch x 1 x samples. samples is their number of values if p.Frame.Length does
// not fix it; 0: any. The weights keep their names. Without p.Features, it returns the graph.
func WithFeatures(graph *onnx.Model, p Preprocess, samples int) (*onnx.Model, error) {
	if p.Features == nil {
		return graph, nil
	}
	return withFeatures(graph, Options{Preprocess: p, Samples: samples}, 1)
}

// featureInput returns the named input, or the only one without fixed values that can take features.
func featureInput(inputs []engine.Port, o Options) (engine.Port, error) {
	var found []engine.Port
	for _, in := range inputs {
		takes := (len(in.Shape) == 3 || len(in.Shape) == 4) && (in.Type == engine.Float || in.Type == engine.Double)
		if _, fixed := o.Inputs[in.Name]; takes && (o.Input == in.Name || o.Input == "" && !fixed) {
			found = append(found, in)
		}
	}
	if len(found) != 1 {
		return engine.Port{}, settingError(fmt.Errorf("the model needs exactly one input for features (float of rank 3 or 4), and has %s", list(inputs)), "preprocess", "features")
	}
	return found[0], nil
}

// orient reports whether frames come before bands, and sets the number of bands if it is not set.
func orient(info engine.Port, s *logmel.Settings) (framesFirst bool, err error) {
	sizes := info.Sizes()
	if len(sizes) == 4 && sizes[1] != 1 && sizes[1] >= 0 {
		return false, fmt.Errorf("input %s takes %d channels; a spectrogram has one", describeInput(info), sizes[1])
	}
	first, last := sizes[len(sizes)-2], sizes[len(sizes)-1]
	switch {
	case s.Rows() == 0 && first > 0:
		*s = s.WithRows(first)
	case s.Rows() == 0 && last > 0:
		*s = s.WithRows(last)
	case s.Rows() == 0:
		return false, fmt.Errorf("input %s does not fix the number of bands: set mels of the features", describeInput(info))
	}
	switch {
	case first == s.Rows():
		return false, nil
	case last == s.Rows():
		return true, nil
	case first < 0:
		return false, nil
	case last < 0:
		return true, nil
	}
	return false, fmt.Errorf("no axis of input %s has the size %d, the number of bands of the features", describeInput(info), s.Rows())
}

// checkFrames returns an error if the model fixes a number of frames that waveforms of n values do
// not have; n is negative if it is not known.
func checkFrames(info engine.Port, framesFirst bool, s logmel.Settings, n int) error {
	frames := info.Sizes()[len(info.Shape)-1]
	if framesFirst {
		frames = info.Sizes()[len(info.Shape)-2]
	}
	if n < 0 || frames < 0 || s.Frames(n) == frames {
		return nil
	}
	return &preprocessing.KeyError{Key: "length", Err: fmt.Errorf("preprocess: waveforms of %d samples have %d frames, and input %s takes %d", n, s.Frames(n), describeInput(info), frames)}
}

// TakesAudio reports whether the model takes audio rather than images.
func (m *Model) TakesAudio() bool { return m.input.audio }

// findAudioInput returns the only input that can take a waveform, and its layout. Of several, that is
// the only one of one channel.
func findAudioInput(inputs []engine.Port, o Options) (engine.Port, tensor.Axes, bool) {
	candidates := slices.DeleteFunc(slices.Clone(inputs), func(in engine.Port) bool {
		_, fixed := o.Inputs[in.Name]
		return fixed || audioLayout(in) == "" || o.Input != "" && o.Input != in.Name
	})
	if len(candidates) > 1 {
		candidates = slices.DeleteFunc(candidates, func(in engine.Port) bool { return waveChannels(in) > 1 })
	}
	if len(candidates) != 1 {
		return engine.Port{}, "", false
	}
	return candidates[0], audioLayout(candidates[0]), true
}
