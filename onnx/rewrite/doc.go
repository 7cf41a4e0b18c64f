// Package rewrite makes ONNX graphs from ONNX graphs. Each function returns another model and
// leaves the given one as it is; the two share their weights.
//
//	cut, err := rewrite.WithOutputs(m, []string{"layer3_out"})  // the part of a graph that computes some tensors
//	free, err := rewrite.WeightsAsInputs(m, "conv1.weight")     // weights that are fed, as in training
//	flat, err := rewrite.Inline(m)                              // functions and known branches replaced by their nodes
//	m, err := rewrite.ToFloat32(m)                              // float16 and bfloat16 replaced by float32
//
// A graph that is being built is rewritten by onnx.Builder.Apply.
package rewrite
