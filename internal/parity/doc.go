// Package parity compares two forms of one model, such as a network and its quantised file, layer
// by layer: is the second still the first, and where do they part?
//
//	pairs, unmatched := parity.Match(original, other)
//	layers, err := parity.Compare(ctx, original, other, pairs, samples, parity.Options{})
//	verdict := parity.Judge(layers, 0.01)
//
// Both models get the same samples. Let x be a layer's activations in the original and y those in
// the other, in the original's order of axes, flattened to one vector for each sample. Sums over
// samples and values are pooled; E is the mean over samples:
//
//	relative-l2         sqrt(sum (x - y)^2 / sum x^2)
//	snr                 10 log10(sum x^2 / sum (x - y)^2), in dB
//	cosine              E[1 - x.y / (|x| |y|)], the cosine distance of package measure/distance
//	largest-difference  E[max |x - y|]
//	saturated           E[share of clipped values]: y is an end of the range of its quantised type,
//	                    and x lies beyond that end by more than half a step
//
// snr is what onnxruntime.quantization.qdq_loss_debug calls the error between models. Intervals are
// delete-group jackknives over the samples, as of package measure/paired.
//
// # Local and accumulated error
//
// The statistics above are accumulated: y has the errors of all layers before. The local error is
// that of y', the layer that the other model computes from the original's values of the matched
// layers before it. So a part of the other model between matched layers runs on its own, on inputs
// without error. local-relative-l2 and local-snr compare x with y'. A quantised layer's local error
// comes from the rounding of its weights and of its output; that of its input belongs to the layers
// before, or to it where it reads the model's input. Brought is the largest relative-l2 of the
// matched layers that a layer reads: what its input brings.
//
// The verdict names the first layer whose relative-l2 exceeds a tolerance, orders layers by local
// error, and chooses the fewest that make up half the sum of the squared local errors: errors of
// independent layers add up in squares. Their nodes are what to leave in float.
package parity
