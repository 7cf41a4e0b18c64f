// Package grad differentiates ONNX graphs: it adds to a graph the nodes that compute gradients.
//
// Reverse-mode differentiation walks a graph from its result back to what it was computed from. Let y be a tensor of
// the graph, dy = dL/dy its cotangent, that is, the derivative of some number L by each element of y; then for every
// tensor x before it
//
//	dx = dL/dx = sum over nodes that read x of (d node / dx)^T dL/d(node's output)
//
// and each operator has a rule that writes the nodes for its term. The result is an ordinary graph of the same operator
// set. It runs in any ONNX runtime, on any device.
//
// Add takes a model and returns one with gradients among its outputs:
//
//	g, err := grad.Add(m, grad.Options{Of: "logits", Cotangent: "r", By: []string{"x", "conv1.weight"}})
//
// Of works on a graph that is being built, so that a loss can be put on top of a model before, and an update beneath the
// gradients after:
//
//	b := onnx.Extend(m)
//	loss := b.ReduceSum(b.Pow(b.Sub("features", target), b.Scalar(2)), false)
//	dx, err := grad.Of(b, loss, "", "x")
//	b.Output("next", b.Sub("x", b.Mul(b.Scalar(0.1), dx[0])))
//
// A tensor to differentiate by is an input, an initializer (so a network can be trained) or anything between; where the
// result does not depend on it the gradient is zero. Gradients at kinks (relu at 0, the maximum of equal numbers) are
// those that PyTorch takes. An operator without a rule is an error only if a gradient must flow through it.
package grad
