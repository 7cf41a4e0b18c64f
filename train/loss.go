package train

import (
	"github.com/noether-ml/noether/onnx"
)

// A Loss is what training makes small: a function of the network's output y and a target, with the batch first in both. It
// writes the nodes of one number for each sample, b values; what is minimised is their mean.
type Loss struct {
	Name string
	// Target is the element type of a target: Float, of the output's shape, or Int64, one class for a sample.
	Target onnx.Type
	write  func(b *onnx.Builder, y, target onnx.Value) onnx.Value
}

// The losses. A sample's loss is the mean over what it has besides the batch: outputs, positions.
var (
	// SquaredError is (y - t)^2.
	SquaredError = Loss{"squared-error", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		d := b.Sub(y, t)
		return perSample(b, b.Mul(d, d))
	}}
	// CrossEntropy is -log softmax(y)[class], y being b x classes.
	CrossEntropy = Loss{"cross-entropy", onnx.Int64, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		picked := b.Op("GatherElements", onnx.Attrs{"axis": 1}, b.LogSoftmax(y, 1), b.Reshape(t, -1, 1))
		return b.Neg(b.Reshape(picked, -1))
	}}
	// BinaryCrossEntropy is log(1 + exp y) - t y for logits y and targets in [0, 1], written so that nothing overflows.
	BinaryCrossEntropy = Loss{"binary-cross-entropy", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		soft := b.Log(b.Add(b.Exp(b.Neg(b.Abs(y))), b.Scalar(1)))
		return perSample(b, b.Add(b.Sub(b.Relu(y), b.Mul(y, t)), soft))
	}}
	// CosineDistance is 1 - cos(y, t) of the vectors of a sample. A vector shorter than 1e-8 counts as one of that length.
	CosineDistance = Loss{"cosine-distance", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		y, t = b.Flatten(y, 1), b.Flatten(t, 1)
		dot := func(u, v onnx.Value) onnx.Value { return b.ReduceSum(b.Mul(u, v), false, 1) }
		length := func(u onnx.Value) onnx.Value {
			return b.Sqrt(b.Op("Max", nil, dot(u, u), b.Scalar(1e-16)))
		}
		return b.Sub(b.Scalar(1), b.Div(dot(y, t), b.Mul(length(y), length(t))))
	}}
)

// Losses are all losses, by name.
func Losses() []Loss { return []Loss{SquaredError, CrossEntropy, BinaryCrossEntropy, CosineDistance} }

func perSample(b *onnx.Builder, v onnx.Value) onnx.Value {
	return b.ReduceMean(b.Flatten(v, 1), false, 1)
}
