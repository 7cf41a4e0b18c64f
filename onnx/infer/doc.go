// Package infer works out, before anything runs, what is known about the tensors of an ONNX graph:
// their types, their shapes, the meaning of their axes, and the values of constants and of shape
// arithmetic.
//
// Analyze is for whoever writes nodes for a graph. What is fixed is then written as a constant, and
// only the rest is computed when the graph runs:
//
//	info := infer.Analyze(m)
//	info.Shape("conv1_out")   // [-1 64 112 112]: a dimension that is not fixed is negative
//	info.Ints("new_shape")    // the value of shape arithmetic, where it is known
//
// Axes says which axis of a tensor is batch, channel or space. It follows the letters of the input
// through the graph, also where a reshape splits axes and another one joins them again:
//
//	axes, err := infer.Axes(m, nil)
//	axes["conv1_out"]         // "NCHW"
package infer
