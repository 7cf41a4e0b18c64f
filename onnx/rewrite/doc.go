// Package rewrite transforms ONNX graphs. Each function returns a new model, which shares the
// weights of the given one, and leaves that unchanged.
//
//	cut, err := rewrite.WithOutputs(m, []string{"layer3_out"})  // the part of a graph that computes some tensors
//	free, err := rewrite.WeightsAsInputs(m, "conv1.weight")     // weights as inputs, as in training
//	flat, err := rewrite.Inline(m)                              // functions and known branches replaced by their nodes
//	m, err := rewrite.ToFloat32(m)                              // float16 and bfloat16 replaced by float32
//
// A graph that is being built is rewritten by onnx.Builder.Apply.
package rewrite
