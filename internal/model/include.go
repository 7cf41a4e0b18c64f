package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Include adds the part of the model that computes the given tensors to a graph under construction,
// which has the model's operator set. images are n x c x h x w with values in [0, 1], in the frame
// (the size and channels) that Frame returns. The normalisation (mean, deviation, order and layout
// of the channels) becomes part of the graph, so gradients with respect to the images include it. n
// must equal Batch if that is not 0. Include returns the tensors in order.
func (m *Model) Include(b *onnx.Builder, images onnx.Value, n int, tensors ...string) ([]onnx.Value, error) {
	values, err := m.include(b, images, n, tensors)
	if err != nil {
		return nil, m.wrap(err)
	}
	return values, nil
}

func (m *Model) include(b *onnx.Builder, images onnx.Value, n int, tensors []string) ([]onnx.Value, error) {
	if m.TakesArrays() {
		return nil, errors.New("takes arrays as they are; only models of images and audio can be included in a graph")
	}
	if m.batch > 0 && n != m.batch {
		return nil, fmt.Errorf("takes %d images at a time, not %d", m.batch, n)
	}
	whole, err := m.fullGraph()
	if err != nil {
		return nil, err
	}
	part, err := rewrite.WithOutputs(whole, tensors)
	if err != nil {
		return nil, err
	}
	return m.includePart(b, part, map[string]onnx.Value{m.input.info.Name: m.input.normalise(b, images)}, n)
}

// IncludeAfter adds to a graph under construction the part of the model that computes the class
// scores from a layer. The graph has the model's operator set. z replaces the activations of the
// layer for n images. A layer is a tensor of the graph. The error is a *Bypassed if the scores also
// depend on the image in other ways than through the layer.
func (m *Model) IncludeAfter(b *onnx.Builder, layer tensor.Layer, z onnx.Value, n int) (onnx.Value, error) {
	scores, err := m.includeAfter(b, layer, z, n)
	if err != nil {
		return "", m.wrap(err)
	}
	return scores, nil
}

func (m *Model) includeAfter(b *onnx.Builder, layer tensor.Layer, z onnx.Value, n int) (onnx.Value, error) {
	part, err := m.partAfter(layer)
	if err != nil {
		return "", err
	}
	values, err := m.includePart(b, part, map[string]onnx.Value{layer.Name: z}, n)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// partAfter returns the part of the model that computes the scores from a layer, which is its
// input.
func (m *Model) partAfter(layer tensor.Layer) (*onnx.Model, error) {
	whole, err := m.fullGraph()
	if err != nil {
		return nil, err
	}
	if whole, err = rewrite.TensorAsInput(whole, onnx.ValueInfo{Name: layer.Name, Type: onnx.Float, Shape: append([]onnx.Dim{{Size: -1}}, sizes(layer.Shape)...)}); err != nil {
		return nil, err
	}
	part, err := rewrite.WithOutputs(whole, []string{m.scores.output})
	if err == nil && slices.ContainsFunc(part.Inputs(), func(p onnx.ValueInfo) bool { return p.Name == m.input.info.Name }) {
		err = &Bypassed{layer.Name}
	}
	return part, err
}

// Bypassed is the error for a layer that does not separate a model into two parts: the class scores
// also depend on the image in other ways, such as through the shortcut of a residual block.
type Bypassed struct{ Layer string }

func (e *Bypassed) Error() string {
	return fmt.Sprintf("the class scores depend on the image not only through layer %q, but also, for example, through a shortcut: choose a layer at the end of a block", e.Layer)
}

// sizes returns a shape as axes of fixed size.
func sizes(shape []int) []onnx.Dim {
	var out []onnx.Dim
	for _, v := range shape {
		out = append(out, onnx.Dim{Size: v})
	}
	return out
}

// includePart adds a part of the model to a graph. inputs holds the values of its inputs, except
// constant ones (m.constants), which have the same values in every run of the model.
func (m *Model) includePart(b *onnx.Builder, part *onnx.Model, inputs map[string]onnx.Value, n int) ([]onnx.Value, error) {
	for _, f := range m.constants {
		if !slices.ContainsFunc(part.Inputs(), func(p onnx.ValueInfo) bool { return p.Name == f.info.Name }) {
			continue
		}
		t, err := f.constant(m.rt, n)
		if err != nil {
			return nil, err
		}
		inputs[f.info.Name] = b.Initializer(t)
	}
	values := b.Include(part, inputs)
	return values, b.Err()
}

// ScoresTensor returns the name of the tensor with the class scores. Its element type is that of
// the model's computation.
func (m *Model) ScoresTensor() string { return m.scores.output }

// Batch returns the number of images of a run, or 0 for any number.
func (m *Model) Batch() int { return m.batch }

// ImageShape returns the shape of one image, c x h x w, of one waveform, 1 x n, or of the vector
// into which the arrays of a sample are joined, for a model that takes arrays as they are.
func (m *Model) ImageShape() []int { return m.input.shape() }

// EngineOptions returns the options for sessions of graphs that include the model: the device and
// threads of the engine (ONNX Runtime).
func (m *Model) EngineOptions() ort.Options {
	return ort.Options{Threads: m.options.Threads, Device: m.options.Device}
}

// Workers returns the number of the engine's threads, which is also the largest number of parallel
// runs. It is 1 on devices other than the CPU.
func (m *Model) Workers() int {
	switch {
	case !ort.OnCPU(m.options.Device):
		return 1
	case m.options.Threads > 0:
		return m.options.Threads
	}
	return runtime.NumCPU()
}

// Runtime returns the engine that runs the model.
func (m *Model) Runtime() *ort.Runtime { return m.rt }

// normalise adds the nodes that compute the model's input from images. They compute what fillOne
// computes in Go, but leave out the rounding to bytes, which has no gradient.
func (p input) normalise(b *onnx.Builder, x onnx.Value) onnx.Value {
	if p.audio {
		return p.normaliseAudio(b, x)
	}
	pre := p.preprocess
	if pre.Order == "bgr" {
		x = b.Gather(x, b.Ints(2, 1, 0), 1)
	}
	if low, high := pre.Bounds(); low != 0 || high != 1 {
		x = b.Add(b.Mul(x, b.Scalar(high-low)), b.Scalar(low))
	}
	if len(pre.Mean) > 0 {
		x = b.Sub(x, b.Const("", perChannel(pre.Mean)))
	}
	if len(pre.Std) > 0 {
		x = b.Div(x, b.Const("", perChannel(pre.Std)))
	}
	if p.layout == "NHWC" {
		x = b.Transpose(x, 0, 2, 3, 1)
	}
	if p.info.Type != onnx.Float {
		x = b.Cast(x, p.info.Type)
	}
	return x
}

// normaliseAudio is normalise for waveforms, b x 1 x n.
func (p input) normaliseAudio(b *onnx.Builder, x onnx.Value) onnx.Value {
	pre := p.preprocess
	if pre.Standardise {
		x = b.Sub(x, b.ReduceMean(x, true, 2))
		variance := b.ReduceMean(b.Mul(x, x), true, 2)
		x = b.Div(x, b.Sqrt(b.Add(variance, b.Scalar(preprocessing.StandardiseOffset))))
	}
	scale, shift := pre.AudioScale()
	if scale != 1 {
		x = b.Mul(x, b.Scalar(scale))
	}
	if shift != 0 {
		x = b.Add(x, b.Scalar(shift))
	}
	if p.layout == layoutWave { // b x n
		x = b.Squeeze(x, 1)
	}
	if p.info.Type != onnx.Float {
		x = b.Cast(x, p.info.Type)
	}
	return x
}

// perChannel returns the constant values shaped for broadcasting over n x c x h x w.
func perChannel(v []float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{1, len(v), 1, 1}, Data: v}
}

// constant returns the values of the input for n images as an initializer.
func (f constantInput) constant(rt *ort.Runtime, n int) (*pb.TensorProto, error) {
	v, err := f.value(rt, n)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	typ := int32(v.Type())
	t := &pb.TensorProto{DataType: &typ}
	for _, d := range v.Shape() {
		t.Dims = append(t.Dims, int64(d))
	}
	t.RawData, err = binary.Append(nil, binary.LittleEndian, v.Elements())
	return t, err
}
