// Package infer analyses ONNX graphs without running them. It infers element types, shapes, the
// meaning of axes, and the values of constants and of shape arithmetic (integers computed from
// shapes, such as the target of a Reshape).
//
// Analyze is for code that adds nodes to a graph: it can write a known size as a constant instead
// of computing it when the graph runs. With a model m:
//
//	info := infer.Analyze(m)
//	info.Shape("conv1_out")   // [-1 64 112 112]: a dimension that is not fixed is negative
//	info.Ints("new_shape")    // the value of shape arithmetic, where it is known
//
// Axes tells which axis of a tensor is batch, channel or space, in the letters of tensor.Axes. It
// follows the letters of the inputs through the graph, including reshapes that split axes and join
// them again:
//
//	axes, err := infer.Axes(m, nil)
//	axes["conv1_out"]         // "NCHW"
//
// Inside the package the axes of a tensor, each with its letter and its size, are called its
// layout.
package infer
