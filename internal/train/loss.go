package train

import (
	"github.com/noether-ml/noether/onnx"
)

// A Loss is the loss function of a network's output y and a target, both with the batch first. It
// has one value for each sample. Training minimises their mean.
type Loss struct {
	Name string
	// TargetType is the element type of targets: Float, with the shape of the output, or Int64, one
	// class for each sample or, if perPosition is set, for each position.
	TargetType onnx.Type
	// perPosition reports whether targets have a class for each position of a map: for b samples of
	// height h and width w, they are b x h x w.
	perPosition bool
	// write adds the loss of each sample, b values, to a graph.
	write func(b *onnx.Builder, y, target onnx.Value) onnx.Value
}

// The losses, of an output y and a target t or class. If y has a loss for each element, that of a
// sample is their mean.
var (
	// SquaredError is (y - t)^2.
	SquaredError = Loss{Name: "squared-error", TargetType: onnx.Float, write: func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		d := b.Sub(y, t)
		return perSample(b, b.Mul(d, d))
	}}
	// CrossEntropy is -log softmax(y)[class], where y is b x classes.
	CrossEntropy = Loss{Name: "cross-entropy", TargetType: onnx.Int64, write: func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		picked := b.Op("GatherElements", onnx.Attrs{"axis": 1}, b.LogSoftmax(y, 1), b.Reshape(t, -1, 1))
		return b.Neg(b.Reshape(picked, -1))
	}}
	// PositionCrossEntropy is the mean of -log softmax(y)[class] over positions, where y is b x
	// classes x h x w and targets are masks, b x h x w. Positions of the class -1 do not count; the
	// mean over a batch is that over all its other positions, as in PyTorch.
	PositionCrossEntropy = Loss{Name: "position-cross-entropy", TargetType: onnx.Int64, perPosition: true, write: positionCrossEntropy}
	// BinaryCrossEntropy is log(1 + exp y) - t y for logits y and targets t in [0, 1], in a form
	// that does not overflow.
	BinaryCrossEntropy = Loss{Name: "binary-cross-entropy", TargetType: onnx.Float, write: func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		soft := b.Log(b.Add(b.Exp(b.Neg(b.Abs(y))), b.Scalar(1)))
		return perSample(b, b.Add(b.Sub(b.Relu(y), b.Mul(y, t)), soft))
	}}
	// CosineDistance is 1 - cos(y, t) of the flattened vectors of a sample. Norms below 1e-8
	// count as 1e-8.
	CosineDistance = Loss{Name: "cosine-distance", TargetType: onnx.Float, write: func(b *onnx.Builder, y, t onnx.Value) onnx.Value {
		y, t = b.Flatten(y, 1), b.Flatten(t, 1)
		dot := func(u, v onnx.Value) onnx.Value { return b.ReduceSum(b.Mul(u, v), false, 1) }
		length := func(u onnx.Value) onnx.Value {
			return b.Sqrt(b.Op("Max", nil, dot(u, u), b.Scalar(1e-16)))
		}
		return b.Sub(b.Scalar(1), b.Div(dot(y, t), b.Mul(length(y), length(t))))
	}}
)

// Losses returns all losses.
func Losses() []Loss {
	return []Loss{SquaredError, CrossEntropy, PositionCrossEntropy, BinaryCrossEntropy, CosineDistance}
}

// perSample returns the mean over all axes but the batch.
func perSample(b *onnx.Builder, v onnx.Value) onnx.Value {
	return b.ReduceMean(b.Flatten(v, 1), false, 1)
}
