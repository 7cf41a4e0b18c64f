package model

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Include adds the part of the model that computes the given tensors to a graph under construction,
// which has the model's operator set. images are n x c x h x w with values in [0, 1], in the frame
// that Frame returns. The normalisation (mean, deviation, order and layout of the channels) becomes
// part of the graph, so gradients with respect to the images include it. n must equal Batch if that
// is not 0. Include returns the tensors in order.
func (m *Model) Include(b *onnx.Builder, images onnx.Value, n int, tensors ...string) ([]onnx.Value, error) {
	values, err := m.include(b, images, n, tensors)
	if err != nil {
		return nil, m.wrap(err)
	}
	return values, nil
}

func (m *Model) include(b *onnx.Builder, images onnx.Value, n int, tensors []string) ([]onnx.Value, error) {
	if m.source == nil {
		return nil, errors.New("is no ONNX graph, and cannot be included in one")
	}
	if m.TakesArrays() {
		return nil, errors.New("takes arrays as they are; only models of images and audio can be included in a graph")
	}
	if m.batch > 0 && n != m.batch {
		return nil, fmt.Errorf("takes %d images at a time, not %d", m.batch, n)
	}
	whole, err := m.source.FullGraph()
	if err != nil {
		return nil, err
	}
	read := slices.Clone(tensors)
	scores := slices.Index(tensors, m.ScoresTensor())
	if scores >= 0 {
		read[scores] = m.scores.output
	}
	part, err := rewrite.WithOutputs(whole, slices.Compact(slices.Sorted(slices.Values(read))))
	if err != nil {
		return nil, err
	}
	computed, err := m.includePart(b, part, map[string]onnx.Value{m.input.info.Name: m.input.normalise(b, images)}, n)
	if err != nil {
		return nil, err
	}
	values := make([]onnx.Value, len(tensors))
	for i, p := range part.Outputs() {
		for k, name := range read {
			if name == p.Name {
				values[k] = computed[i]
			}
		}
	}
	if scores >= 0 {
		values[scores] = m.ofAllClasses(b, values[scores])
	}
	return values, b.Err()
}

// ofAllClasses returns the scores of both classes if y has a single value for two, else y, divided
// by the total of the probabilities.
func (m *Model) ofAllClasses(b *onnx.Builder, y onnx.Value) onnx.Value {
	if m.scores.total > 0 {
		return b.Mul(b.Cast(y, onnx.Float), b.Scalar(float32(1/m.scores.total)))
	}
	if !m.scores.single {
		return y
	}
	y = b.Reshape(b.Cast(y, onnx.Float), -1, 1)
	first := b.Mul(y, b.Scalar(0)) // a logit of 0
	if m.scores.kind == probabilities {
		first = b.Sub(b.Scalar(1), y)
	}
	return b.Concat(1, first, y)
}

// IncludeAfter adds to a graph under construction the part of the model that computes the class
// scores from a layer. The graph has the model's operator set. z replaces the activations of the
// layer for n images. The error is a *Bypassed if the scores also depend on the image in other ways
// than through the layer.
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
	values, err := m.includePart(b, part, map[string]onnx.Value{m.Graph().Origin(layer.Name): z}, n)
	if err != nil {
		return "", err
	}
	return m.ofAllClasses(b, values[0]), nil
}

func (m *Model) partAfter(layer tensor.Layer) (*onnx.Model, error) {
	whole, err := m.source.FullGraph()
	if err != nil {
		return nil, err
	}
	if whole, err = rewrite.TensorAsInput(whole, onnx.ValueInfo{Name: whole.Origin(layer.Name), Type: onnx.Float, Shape: append([]onnx.Dim{{Size: -1}}, sizes(layer.Shape)...)}); err != nil {
		return nil, err
	}
	part, err := rewrite.WithOutputs(whole, []string{m.scores.output})
	if err == nil && slices.ContainsFunc(part.Inputs(), func(p onnx.ValueInfo) bool { return p.Name == m.input.info.Name }) {
		err = &Bypassed{layer.Name}
	}
	return part, err
}

// Bypassed is the error for a layer that does not separate a model into two parts, as within a
// residual block.
type Bypassed struct{ Layer string }

func (e *Bypassed) Error() string {
	return fmt.Sprintf("the class scores depend on the image not only through layer %q, but also, for example, through a shortcut: choose a layer at the end of a block", e.Layer)
}

func sizes(shape []int) []onnx.Dim {
	var out []onnx.Dim
	for _, v := range shape {
		out = append(out, onnx.Dim{Size: v})
	}
	return out
}

// inputs lacks the values of constant ones (m.constants).
func (m *Model) includePart(b *onnx.Builder, part *onnx.Model, inputs map[string]onnx.Value, n int) ([]onnx.Value, error) {
	for _, f := range m.constants {
		if !slices.ContainsFunc(part.Inputs(), func(p onnx.ValueInfo) bool { return p.Name == f.info.Name }) {
			continue
		}
		t, err := f.constant(n)
		if err != nil {
			return nil, err
		}
		inputs[f.info.Name] = b.Initializer(t)
	}
	values := b.Include(part, inputs)
	return values, b.Err()
}

// ScoresTensor returns the name by which Include adds the tensor with the class scores. Its element
// type is that of the model's computation.
func (m *Model) ScoresTensor() string {
	if m.scores.single {
		return m.scores.output + " of two classes"
	}
	return m.scores.output
}

// normalise adds the nodes that compute what fillOne computes, but for the rounding to bytes, which
// has no gradient.
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
	if p.info.Type != engine.Float {
		x = b.Cast(x, typeOf(p.info.Type))
	}
	return x
}

// normaliseAudio is normalise for waveforms, b x c x n.
func (p input) normaliseAudio(b *onnx.Builder, x onnx.Value) onnx.Value {
	pre := p.preprocess
	if pre.Standardise {
		x = b.Sub(x, b.ReduceMean(x, true, 1, 2))
		variance := b.ReduceMean(b.Mul(x, x), true, 1, 2)
		x = b.Div(x, b.Sqrt(b.Add(variance, b.Scalar(preprocessing.StandardiseOffset))))
	}
	scale, shift := pre.AudioScale()
	if scale != 1 {
		x = b.Mul(x, b.Scalar(scale))
	}
	if shift != 0 {
		x = b.Add(x, b.Scalar(shift))
	}
	switch p.layout {
	case layoutWave: // b x n
		x = b.Squeeze(x, 1)
	case layoutLast: // b x n x c
		x = b.Transpose(x, 0, 2, 1)
	}
	if p.info.Type != engine.Float {
		x = b.Cast(x, typeOf(p.info.Type))
	}
	return x
}

func perChannel(v []float32) tensor.Tensor {
	return tensor.Tensor{Shape: []int{1, len(v), 1, 1}, Data: v}
}

func (f constantInput) constant(n int) (*pb.TensorProto, error) {
	v, err := f.value(n)
	if err != nil {
		return nil, err
	}
	typ := int32(typeOf(f.info.Type))
	t := &pb.TensorProto{DataType: &typ}
	for _, d := range v.Shape {
		t.Dims = append(t.Dims, int64(d))
	}
	t.RawData, err = binary.Append(nil, binary.LittleEndian, v.Data)
	return t, err
}
