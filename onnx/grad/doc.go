// Package grad differentiates ONNX graphs. Add takes a model and returns one that also computes the
// gradients of a tensor by inputs, weights or intermediate tensors:
//
//	g, err := grad.Add(m, grad.Options{Of: "loss", By: []string{"x", "conv1.weight"}})
//	// g has the further outputs "grad/x" and "grad/conv1.weight"
//
// The result is an ordinary graph of the same operator set. It runs in any ONNX runtime, on any
// device, and can be differentiated again.
//
// The method is reverse-mode automatic differentiation. The gradient dx of a tensor x is dL/dx for
// some number L. The nodes are visited from the last to the first. Given the gradients dy of its
// outputs y = f(x), each node adds its vector-Jacobian product to the gradient of each input,
//
//	dx += (dy/dx)^T dy
//
// Each operator has a rule that writes the nodes for this term.
//
// Of works on a graph that is being built. So a loss can be built on top of a model, and an update
// on top of the gradients. Here the model has the input x and the output features:
//
//	b := onnx.Extend(m)
//	loss := b.ReduceSum(b.Pow(b.Sub("features", target), b.Scalar(2)), false)
//	dx, err := grad.Of(b, loss, "", "x") // "": the loss is not weighted
//	b.Output("next", b.Sub("x", b.Mul(b.Scalar(0.1), dx[0])))
//
// AddJVP, JVP and Pushforward differentiate in forward mode: given a direction dx in some tensors
// x, they compute (dy/dx) dx, the Jacobian-vector product. A direction in one tensor is called its
// tangent; the gradient dy from which reverse mode starts is called a cotangent.
//
// A gradient by a tensor that has no influence is zero. At kinks (relu at 0, the maximum of equal
// numbers) gradients are those of PyTorch. An operator without a rule is an error only if a
// gradient must flow through it.
package grad
