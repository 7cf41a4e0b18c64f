// Package rewrite transforms ONNX graphs. Each function returns a new model, which shares the
// weights of the given model, and does not change the given model.
//
//	// only the nodes that compute some tensors, which are the new outputs
//	cut, err := rewrite.WithOutputs(m, []string{"layer3_out"})
//	// weights as inputs, as in training
//	free, err := rewrite.WeightsAsInputs(m, "conv1.weight")
//	// calls of ONNX functions, and Ifs with a known condition, replaced by the nodes that they run
//	flat, err := rewrite.Inline(m)
//	// float16 and bfloat16 replaced by float32
//	m, err := rewrite.ToFloat32(m)
//
// Perturb adds noise to weights. WithoutWeights drops the values of weights, for analyses of the
// graph, and ShapesOnly gives a model that is quick to run and has tensors of the same shapes.
// onnx.Builder.Apply applies any of these functions to a graph that is being built.
package rewrite
