package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model/output"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Preprocess are the steps between a sample and the model's input.
type Preprocess = preprocessing.Settings

// Options override what Open determines from the graph. The zero Options choose no layers.
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
	Threads int             // threads of the engine, ONNX Runtime; 0: one for each core
	Device  string          // device of the engine; "": cpu
	Spin    bool            // the engine's threads wait busily, for runs in close succession
	// ReloadWeights frees the weights after opening and reads them again for each session. That
	// saves memory if many models are open.
	ReloadWeights bool
}

// A Model is an opened network. It does not change and may be used by several goroutines.
type Model struct {
	rt            *ort.Runtime
	path          string
	graph         *onnx.Model // with nodes in front for the audio features of Preprocess, if any
	options       Options
	input         input           // that takes the sample
	constants     []constantInput // other inputs, with the same values in every run
	batch         int             // images of a run; 0: any number
	layers        []tensor.Layer  // those to be measured
	scores        scores          // the output that scores classes
	decoder       *output.Decoder // nil if no output is decoded
	normalisation *Normalisation  // by the first nodes; nil if they do not normalise
	largestLayer  int64           // elements of one sample in the largest layer of the graph
	totalElements int64           // elements of one sample in all layers
	sha256        string
}

// Open reads a model and determines the properties that the package comment lists. It runs the
// model on dummy inputs to determine the shapes of its layers. Patterns with a wildcard, "all" and
// "op:TYPE" skip layers whose first axis is not the batch, such as the windows of a Swin
// transformer. Naming such a layer is an error. Errors are one line that contains the file's name.
func Open(rt *ort.Runtime, path string, o Options) (*Model, error) {
	return OpenContext(context.Background(), rt, path, o)
}

// OpenContext is Open with a context that can cancel the runs on dummy inputs.
func OpenContext(ctx context.Context, rt *ort.Runtime, path string, o Options) (*Model, error) {
	file, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", path, err)
	}
	return OpenGraph(ctx, rt, file, o)
}

// OpenGraph is OpenContext for a model that rewrite.ReadFloat32 has read from a file.
func OpenGraph(ctx context.Context, rt *ort.Runtime, file *onnx.Model, o Options) (*Model, error) {
	m, err := open(ctx, rt, file, o)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", file.Path(), err)
	}
	return m, nil
}

func open(ctx context.Context, rt *ort.Runtime, file *onnx.Model, o Options) (m *Model, err error) {
	if err := rt.CheckDevice(o.Device); err != nil {
		return nil, err
	}
	m = &Model{rt: rt, path: file.Path(), options: o}
	var sum string
	var hashing errgroup.Group // on another core than the runs on dummy inputs
	hashing.Go(func() (err error) {
		sum, err = file.SHA256()
		return err
	})
	defer hashing.Wait() // also after an error, so that the file is closed
	if m.graph, err = withPreprocessing(file, o); err != nil {
		return nil, settingError(err, "preprocess")
	}
	if err := m.findInputs(); err != nil {
		return nil, err
	}
	if !m.TakesAudio() && !m.TakesArrays() {
		m.normalisation = findNormalisation(m.graph, m.input.info.Name, m.input.channels)
	}
	axes, err := infer.Axes(m.graph, m.axes())
	if err != nil {
		return nil, settingError(err, "axes")
	}
	if err := m.findScores(); err != nil {
		return nil, err
	}
	if err := m.inferShapes(ctx, axes); err != nil {
		return nil, err
	}
	if err := hashing.Wait(); err != nil {
		return nil, err
	}
	m.sha256 = sum
	if o.ReloadWeights {
		m.graph = rewrite.WithoutWeights(m.graph)
	}
	return m, nil
}

// fullGraph returns the graph with its weights. It reads them again if they were freed.
func (m *Model) fullGraph() (*onnx.Model, error) {
	if !m.options.ReloadWeights {
		return m.graph, nil
	}
	file, err := read(m.path)
	if err != nil {
		return nil, err
	}
	sum, err := file.SHA256()
	if err != nil {
		return nil, err
	}
	if sum != m.sha256 {
		return nil, errors.New("the file has changed since it was opened")
	}
	return withPreprocessing(file, m.options)
}

// withPreprocessing returns the graph with nodes in front that compute the features of the
// preprocessing. If it has none, the input of the returned graph has a batch axis, which that of a
// detector may lack. The graph of a model that takes arrays is returned unchanged.
func withPreprocessing(file *onnx.Model, o Options) (*onnx.Model, error) {
	switch {
	case o.Arrays != nil:
		return file, nil
	case o.Preprocess.Features == nil:
		return withBatchAxis(file, o)
	}
	return withFeatures(file, o)
}

// read calls rewrite.ReadFloat32 and removes the path, which Open adds, from its errors.
func read(path string) (*onnx.Model, error) {
	graph, err := rewrite.ReadFloat32(path)
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return graph, err
}

// axes returns the axes that the options set and those of the input.
func (m *Model) axes() map[string]tensor.Axes {
	axes := map[string]tensor.Axes{}
	if !m.TakesArrays() {
		axes[m.input.info.Name] = m.input.layout
	}
	maps.Copy(axes, m.options.Axes)
	return axes
}

// Layers returns the chosen layers in the order of computation, with the shape of one sample.
func (m *Model) Layers() []tensor.Layer { return slices.Clone(m.layers) }

// Classes returns the number of classes that the output scores, or 0 if it does not score classes.
func (m *Model) Classes() int { return m.scores.classes }

// Scores returns the content of the output: "logits", "probabilities" or "none".
func (m *Model) Scores() string { return m.scores.kind }

// Output returns the name of the output that scores classes, or of the most likely one if none
// does.
func (m *Model) Output() string { return m.scores.output }

// Frame returns the frame for a dataset: the size and channels of images, or the rate and length of
// waveforms, that the model takes.
func (m *Model) Frame() dataset.Frame { return m.input.frame }

// Input describes the input that takes images or waveforms, for instance "x float[batch 3 32 32]".
func (m *Model) Input() onnx.ValueInfo { return m.input.info }

// Path returns the model's file.
func (m *Model) Path() string { return m.path }

// Graph returns the model's graph, without its weights if Options.ReloadWeights is set. If the
// preprocessing computes features, they are part of the graph.
func (m *Model) Graph() *onnx.Model { return m.graph }

// SHA256 returns the hash of the model's files, in hexadecimal.
func (m *Model) SHA256() string { return m.sha256 }

// Opset returns the version of the operator set of the model.
func (m *Model) Opset() int { return m.graph.Opset() }

// InputBytes returns the size in bytes of one image as a tensor of float32.
func (m *Model) InputBytes() int64 { return 4 * int64(tensor.Size(m.input.shape())) }

// ActivationBytes returns the total size in bytes of the input and all activations of one image,
// which a gradient needs at once.
func (m *Model) ActivationBytes() int64 { return 4*m.totalElements + m.InputBytes() }

// WorkingBytes estimates the memory that the engine needs for one image, besides that of Buffers,
// which hold inputs and results. It is the size of a few of the largest activations, since the
// engine reuses the memory of activations that no other node needs.
func (m *Model) WorkingBytes() int64 {
	const few = 4
	return few*4*m.largestLayer + m.InputBytes()
}
