// Package rewrite transforms ONNX graphs. Each function returns a new model, which shares the
// weights of the given model, and does not change the given model.
//
//	// the part of a graph that computes some tensors, its new outputs
//	cut, err := rewrite.WithOutputs(m, []string{"layer3_out"})
//	// weights as inputs, as in training
//	free, err := rewrite.WeightsAsInputs(m, "conv1.weight")
//	// functions and known branches replaced by their nodes
//	flat, err := rewrite.Inline(m)
//	// float16 and bfloat16 replaced by float32
//	m, err := rewrite.ToFloat32(m)
//
// Perturb adds noise to weights; WithoutWeights and ShapesOnly give smaller models for analyses.
// onnx.Builder.Apply applies any of these functions to a graph that is being built.
package rewrite
