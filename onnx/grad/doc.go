// Package grad differentiates ONNX graphs: Add takes a model and returns one that computes, besides
// its outputs, the gradients of a tensor by inputs, weights or any tensor between.
//
//	g, err := grad.Add(m, grad.Options{Of: "loss", By: []string{"x", "conv1.weight"}})
//	// g has the further outputs "grad/x" and "grad/conv1.weight"
//
// The result is an ordinary graph of the same operator set. It runs in any ONNX runtime, on any
// device, and can be differentiated again.
//
// The method is reverse-mode automatic differentiation. Let y be a tensor of the graph and dy =
// dL/dy its cotangent: the derivative of some number L by each element of y. A tape walks the nodes
// from y back to the inputs. For every tensor x before y it sums the vector-Jacobian products of
// the nodes that read x,
//
//	dx = dL/dx = sum over nodes that read x of (d node / dx)^T dL/d(output of the node)
//
// Each operator has a rule that writes the nodes for its term.
//
// Of works on a graph that is being built. A loss can be put on top of a model before, and an
// update of the weights beneath the gradients after:
//
//	b := onnx.Extend(m)
//	loss := b.ReduceSum(b.Pow(b.Sub("features", target), b.Scalar(2)), false)
//	dx, err := grad.Of(b, loss, "", "x")
//	b.Output("next", b.Sub("x", b.Mul(b.Scalar(0.1), dx[0])))
//
// Where y does not depend on x the gradient is zero. Gradients at kinks (relu at 0, the maximum of
// equal numbers) are those that PyTorch takes. An operator without a rule is an error only if a
// gradient must flow through it.
package grad
