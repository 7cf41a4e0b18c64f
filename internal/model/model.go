package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Preprocess are the steps between a sample and the model's input.
type Preprocess = preprocessing.Settings

// Options override what Open determines from the network. The zero Options choose no layers.
type Options struct {
	Layers []string               // patterns of onnx.Model.Select, such as a name or "op:Relu"
	Axes   map[string]tensor.Axes // by name, axes of tensors that Open misreads, such as "NCHW"
	Tokens *tensor.Tokens         // prefix (such as a class token), then a grid; nil: inferred
	Input  string                 // name of the input that takes the image
	Layout string                 // layout of that input: "NCHW" or "NHWC"
	// Inputs holds the values of the other inputs, the last axis varying fastest. A single value
	// fills an input.
	Inputs     map[string][]float64
	Output     string         // name of the output that scores classes; "": the most likely one
	Scores     string         // content of that output: "logits", "probabilities" or "none"
	Decode     output.Setting // how outputs with positions in the image are decoded
	Preprocess Preprocess     // from images in [0, 1] to the values of the model's input
	Size       [2]int         // height and width of the images, if neither the model nor Preprocess fixes them
	// Samples is the number of values of a waveform, if neither the model nor Preprocess fixes it.
	// If it is above 0, the model takes audio.
	Samples int
	Arrays  []dataset.Array // the arrays of a sample, if the model takes ready-made arrays
}

// A Model is an opened network. It does not change and may be used by several goroutines.
type Model struct {
	net           engine.Network    // with the decoded output, if any
	source        GraphNetwork      // the network without it; nil if it is no graph
	name          string            // a path or an address
	properties    map[string]string // of the network
	options       Options
	inputs        []engine.Port             // of the network
	outputs       []engine.Port             // likewise
	input         input                     // that takes the sample
	constants     []constantInput           // other inputs, with the same values in every run
	batch         int                       // images of a run; 0: any number
	all           []tensor.Layer            // of the network
	layers        []tensor.Layer            // those to be measured
	mixed         string                    // where samples of a batch influence each other; "": nowhere
	probed        map[string]*output.Probed // of float outputs in runs on noise
	unprobed      string                    // why there are none; "": there are, or none are needed
	scores        scores                    // the output that scores classes
	decoder       *output.Decoder           // nil if no output is decoded
	normalisation *Normalisation            // by the first nodes; nil if they do not normalise
	quantised     *[2]float64               // the range of values that the first node quantises; nil: it does not
	largestLayer  int64                     // elements of one sample in the largest layer of the network
	totalElements int64                     // elements of one sample in all layers
	depth         int                       // of the deepest layer
	sha256        string
}

// Open determines the properties of a network that the package comment lists. Patterns with
// a wildcard, "all" and "op:TYPE" skip layers whose first axis is not the batch, such as the
// windows of a Swin transformer. Naming such a layer is an error. Errors are one line that contains
// the network's name.
func Open(ctx context.Context, net engine.Network, o Options) (*Model, error) {
	m := &Model{net: net, options: o}
	m.describe()
	name := m.name // which open may change in the background
	const runs = 6 // of the engine, each within its limit
	_, err := engine.Within(runs*net.Limits().Time, func() (any, error) { return nil, m.open(ctx) })
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", name, err)
	}
	return m, nil
}

func (m *Model) open(ctx context.Context) error {
	var hashing errgroup.Group // on another core than the runs on dummy inputs
	hashing.Go(func() (err error) {
		m.sha256, err = m.net.Hash()
		return err
	})
	defer hashing.Wait() // also after an error, so that the file is closed
	if err := m.addPreprocessing(); err != nil {
		return settingError(err, "preprocess")
	}
	if err := m.findInputs(); err != nil {
		return err
	}
	if m.source != nil && !m.TakesAudio() && !m.TakesArrays() {
		m.normalisation = findNormalisation(m.Graph(), m.input.info.Name, m.input.channels)
		m.quantised = findQuantised(m.Graph(), m.input.info.Name)
	}
	if err := m.checkScores(); err != nil {
		return err
	}
	if err := m.findLayers(ctx); err != nil {
		return err
	}
	if err := hashing.Wait(); err != nil {
		return err
	}
	return m.addDecoder()
}

// findLayers determines the layers that can be measured, the arrangement of tokens, the number of
// classes, the decoder and the fixed number of images in a run.
func (m *Model) findLayers(ctx context.Context) error {
	found, err := m.net.Layers(ctx, m.setup())
	if axes := (*engine.AxesError)(nil); errors.As(err, &axes) {
		return settingError(axes.Err, "axes")
	}
	if err != nil {
		return err
	}
	m.batch = found.Batch
	m.findScores(found.Outputs)
	frames := m.TakesAudio() && found.Axes[m.scores.output] == "NT"
	if err := m.scores.setClasses(found.Outputs[m.scores.output], frames, m.options.Scores != ""); err != nil {
		return err
	}
	for _, l := range found.All {
		m.depth = max(m.depth, l.Depth)
		if l.Shape != nil {
			m.largestLayer = max(m.largestLayer, int64(tensor.Size(l.Shape)))
			m.totalElements += int64(tensor.Size(l.Shape))
		}
	}
	m.all = found.All
	if err := m.confirmClasses(ctx); err != nil {
		return err
	}
	if err := m.probe(ctx, found.Outputs); err != nil {
		return err
	}
	m.doubtClasses()
	if err := m.findDecoder(found.Outputs, found.Axes); err != nil {
		return err
	}
	if m.layers, err = m.selectLayers(found.All); err != nil {
		return err
	}
	return m.setTokens(m.layers, found.All)
}

func (m *Model) setup() engine.Setup {
	return engine.Setup{Samples: m.input.names(), Axes: m.axes(), Batch: m.batch, Feed: m.inputArray}
}

func (m *Model) selectLayers(all []tensor.Layer) ([]tensor.Layer, error) {
	chosen, usable := map[string]bool{}, map[string]bool{}
	for _, l := range all {
		usable[l.Name] = l.Shape != nil
	}
	for i, pattern := range m.options.Layers {
		matched, err := m.match(all, pattern)
		if err != nil {
			return nil, settingError(err, layerPath(i)...)
		}
		some := false
		for _, l := range matched {
			if !usable[l.Name] && l.Name == pattern {
				return nil, settingError(fmt.Errorf("layer %q cannot be measured: its first axis is not the batch, or it does not depend on the image", l.Name), layerPath(i)...)
			}
			chosen[l.Name] = usable[l.Name]
			some = some || usable[l.Name]
		}
		if !some {
			return nil, settingError(fmt.Errorf("layers %q: none of the %d that match has the batch as its first axis and depends on the image", pattern, len(matched)), layerPath(i)...)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(l tensor.Layer) bool { return !chosen[l.Name] }), nil
}

func (m *Model) match(all []tensor.Layer, pattern string) ([]tensor.Layer, error) {
	if m.source != nil {
		return m.Graph().Select(pattern)
	}
	var outputs []string
	for _, p := range m.outputs {
		outputs = append(outputs, p.Name)
	}
	return onnx.SelectLayers(all, outputs, pattern)
}

// Select returns the layers of the model that match any of the patterns.
func (m *Model) Select(patterns ...string) ([]tensor.Layer, error) {
	names := map[string]bool{}
	for _, pattern := range patterns {
		matched, err := m.match(m.layers, pattern)
		if err != nil {
			return nil, err
		}
		for _, l := range matched {
			names[l.Name] = true
		}
	}
	return slices.DeleteFunc(m.Layers(), func(l tensor.Layer) bool { return !names[l.Name] }), nil
}

// inputArray returns the array of an input for n samples: zeros, or its constant values.
func (m *Model) inputArray(name string, n int) (*engine.Array, error) {
	if typ, shape, ok := m.input.typeAndShape(name, n); ok {
		return engine.NewArray(typ, shape...), nil
	}
	i := slices.IndexFunc(m.constants, func(f constantInput) bool { return f.info.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("the network has an unexpected input %q", name)
	}
	return m.constants[i].value(n)
}

func (m *Model) axes() map[string]tensor.Axes {
	axes := map[string]tensor.Axes{}
	if m.TakesInput() && !m.TakesArrays() {
		axes[m.input.info.Name] = m.input.layout
	}
	maps.Copy(axes, m.options.Axes)
	return axes
}

func (m *Model) wrap(err error) error { return fmt.Errorf("model %s: %w", m.name, err) }

// Layers returns the chosen layers in the order of computation, with the shape of one sample.
func (m *Model) Layers() []tensor.Layer { return slices.Clone(m.layers) }

// Classes returns the number of classes that the output scores, or 0 if it does not score classes.
func (m *Model) Classes() int { return m.scores.classes }

// Scores returns the content of the output: "logits", "probabilities" or "none".
func (m *Model) Scores() string { return m.scores.kind }

// Output returns the name of the output that scores classes, or of the most likely one if none
// does.
func (m *Model) Output() string { return m.scores.output }

// Outputs describes the outputs of the network.
func (m *Model) Outputs() []engine.Port { return slices.Clone(m.outputs) }

// Frame returns the size and channels of images, or the rate and length of waveforms, that the
// model takes.
func (m *Model) Frame() dataset.Frame { return m.input.frame }

// Standardises reports whether waveforms are brought to mean 0 and deviation 1.
func (m *Model) Standardises() bool { return m.input.preprocess.Standardise }

// Input describes the input that takes images or waveforms, for instance "x float[batch 3 32 32]".
func (m *Model) Input() engine.Port { return m.input.info }

// TakesBytes reports whether the values of images are bytes.
func (m *Model) TakesBytes() bool { return m.input.info.Type == engine.Uint8 }

// Path returns the model's file or, if it has none, its address.
func (m *Model) Path() string { return m.name }

// SHA256 returns the hash of the model's files, in hexadecimal.
func (m *Model) SHA256() string { return m.sha256 }

// Batch returns the number of images of a run, or 0 for any number.
func (m *Model) Batch() int { return m.batch }

// ImageShape returns the shape of one image, c x h x w, one waveform, c x n, or the vector of a
// sample's arrays.
func (m *Model) ImageShape() []int { return m.input.shape() }

// TimeLimit returns the time limit of one run, and of preparing one; 0: none.
func (m *Model) TimeLimit() time.Duration { return m.net.Limits().Time }

// Workers returns the largest number of runs in parallel that are of use.
func (m *Model) Workers() int { return m.net.Limits().Workers }

// NoGradient returns why gradients with respect to the input cannot be computed, or "".
func (m *Model) NoGradient() string {
	net, ok := m.net.(engine.Differentiable)
	switch {
	case !m.TakesInput():
		return "is a folder of recorded activations, which cannot run"
	case m.source == nil && !ok:
		return "is no ONNX graph, of which gradients are computed"
	case m.source == nil && net.NoVJP() != "":
		return net.NoVJP()
	case m.TakesBytes():
		return "has a uint8 input, which has no gradient: export it with a float input"
	}
	return ""
}

// Check returns an error if what the network computes with has changed since it was opened, as far
// as the engine notices.
func (m *Model) Check(ctx context.Context) error {
	if c, ok := m.net.(engine.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}

// Note passes a remark to the user, if the engine can.
func (m *Model) Note(format string, values ...any) {
	if n, ok := m.net.(engine.Noter); ok {
		n.Note(format, values...)
	}
}

// Depth returns the depth of the deepest layer of the network.
func (m *Model) Depth() int { return m.depth }

// InputBytes returns the size in bytes of one image as a tensor of float32.
func (m *Model) InputBytes() int64 { return 4 * int64(tensor.Size(m.input.shape())) }

// ActivationBytes returns the bytes of the input and all activations of one image, which a gradient
// needs.
func (m *Model) ActivationBytes() int64 { return 4*m.totalElements + m.InputBytes() }

// WorkingBytes estimates the engine's memory for one image, besides Buffers: a few of the largest
// activations, since the engine reuses memory.
func (m *Model) WorkingBytes() int64 {
	const few = 4
	return few*4*m.largestLayer + m.InputBytes()
}
