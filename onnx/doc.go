// Package onnx reads, checks, lists, cuts and builds ONNX graphs.
//
// A neural network that has been exported to ONNX is a graph: nodes (Conv, Relu, MatMul ...) that read named tensors
// and produce named tensors. A Model holds one such graph. Read loads it and complains, in one line, about anything
// that would make a run fail later:
//
//	m, err := onnx.Read("resnet18.onnx")
//
// A layer is a floating-point tensor that depends on the model's input. Layers lists them in the order in which they
// are computed, each with its operator, its depth and its Axes, that is, which axis is batch, channel or space; Select
// chooses some of them, and WithOutputs cuts the graph so that a run returns exactly those:
//
//	relus, err := m.Select("op:Relu")
//	cut, err := m.WithOutputs(onnx.Names(relus))
//	session := ... cut.Bytes()
//
// Everything that is computed in Noether is such a graph, and a Builder makes them node by node, from nothing or on
// top of a Model that exists:
//
//	b := onnx.NewBuilder(onnx.DefaultOpset)
//	x := b.Input("x", onnx.Float, -1, 3, 32, 32)
//	y := b.Relu(b.Conv(x, b.Const("w", w), "", onnx.Attrs{"pads": []int{1, 1, 1, 1}}))
//	b.Output("y", y)
//	m, err := b.Model()
//
// Weights that a model keeps in files beside it (external data; every model above 2 GB does) stay there: the graph is
// rewritten without loading them. Half precision is rewritten to float32 on reading, since the CPU kernels of ONNX
// Runtime are complete for float32 only.
package onnx
