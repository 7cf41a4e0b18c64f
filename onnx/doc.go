// Package onnx reads, checks, lists and builds ONNX graphs.
//
// A neural network exported to ONNX is a graph of nodes (Conv, Relu, MatMul ...) that read and
// produce named tensors. A Model holds one such graph. Read loads and checks it:
//
//	m, err := onnx.Read("resnet18.onnx")
//
// A layer is a float32 tensor that depends on the model's input. Layers lists them in the order in
// which they are computed, each with its operator and its depth (the number of nodes on the longest
// path to it from an input). Select chooses some of them:
//
//	relus, err := m.Select("op:Relu")
//
// Package infer analyses shapes and axes of tensors, package blocks chooses layers along the depth
// of a network, package rewrite transforms graphs, and package grad differentiates them. For
// instance, this cuts the graph to the selected layers:
//
//	cut, err := rewrite.WithOutputs(m, onnx.Names(relus))
//	data, err := cut.Bytes() // for a session of a runtime
//
// A Builder builds a graph node by node, either empty or on top of an existing Model:
//
//	b := onnx.NewBuilder(onnx.DefaultOpset) // opset: the version of the standard operator set
//	x := b.Input("x", onnx.Float, -1, 3, 32, 32)
//	w := b.Const("w", weights) // a tensor.Tensor of 8 x 3 x 3 x 3
//	y := b.Relu(b.Conv(x, w, "", onnx.Attrs{"pads": []int{1, 1, 1, 1}})) // "": no bias
//	b.Output("y", y)
//	m, err := b.Model()
//
// Weights in separate files (external data) stay there: the graph is rewritten without loading
// them. Models above 2 GB must have external data.
package onnx
