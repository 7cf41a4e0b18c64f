package train

import (
	"github.com/noether-ml/noether/onnx"
)

// A Loss is the loss function of a network's output y and a target, both with the batch first. It
// has one value for each sample. Training minimises their mean.
type Loss struct {
	Name string
	// TargetType is the element type of targets: Float, with the shape of the output, or Int64, one
	// class for each sample.
	TargetType onnx.Type
	write      func(b *onnx.Builder, y, target onnx.Value) onnx.Value
}

// The losses. The loss of a sample is the mean over all axes but the batch.
var (
	// SquaredError is (y - t)^2.
	SquaredError = Loss{"squared-error", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		d := b.Sub(y, t)
		return perSample(b, b.Mul(d, d))
	}}
	// CrossEntropy is -log softmax(y)[class], where y is b x classes.
	CrossEntropy = Loss{"cross-entropy", onnx.Int64, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		picked := b.Op("GatherElements", onnx.Attrs{"axis": 1}, b.LogSoftmax(y, 1), b.Reshape(t, -1, 1))
		return b.Neg(b.Reshape(picked, -1))
	}}
	// BinaryCrossEntropy is log(1 + exp y) - t y for logits y and targets t in [0, 1], in a form
	// that does not overflow.
	BinaryCrossEntropy = Loss{"binary-cross-entropy", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		soft := b.Log(b.Add(b.Exp(b.Neg(b.Abs(y))), b.Scalar(1)))
		return perSample(b, b.Add(b.Sub(b.Relu(y), b.Mul(y, t)), soft))
	}}
	// CosineDistance is 1 - cos(y, t) of the flattened vectors of a sample. Norms below 1e-8
	// count as 1e-8.
	CosineDistance = Loss{"cosine-distance", onnx.Float, func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		y, t = b.Flatten(y, 1), b.Flatten(t, 1)
		dot := func(u, v onnx.Value) onnx.Value { return b.ReduceSum(b.Mul(u, v), false, 1) }
		length := func(u onnx.Value) onnx.Value {
			return b.Sqrt(b.Op("Max", nil, dot(u, u), b.Scalar(1e-16)))
		}
		return b.Sub(b.Scalar(1), b.Div(dot(y, t), b.Mul(length(y), length(t))))
	}}
)

// Losses returns all losses.
func Losses() []Loss { return []Loss{SquaredError, CrossEntropy, BinaryCrossEntropy, CosineDistance} }

// perSample returns the mean over all axes but the batch.
func perSample(b *onnx.Builder, v onnx.Value) onnx.Value {
	return b.ReduceMean(b.Flatten(v, 1), false, 1)
}
