// Package invert finds images by gradient descent: images that a network maps to a given
// representation, that two networks represent differently, or that a network misclassifies.
//
// A search minimises a loss L of the image x' by projected gradient descent,
//
//	x' <- P(x' - alpha u(grad L)).
//
// P projects onto the Ball around the given image x, if there is one, and clips to [0, 1]. alpha is
// the step size. u divides the gradient of each sample (one image) by its norm. Alternatives are
// the sign of the gradient in an linf ball, and Adam. These functions return objectives with a loss
// L, where m(x) is the representation of x by model m, and y its class:
//
//	Match         |m(x') - m(x)|_2
//	Contrast      |m1(x') - m1(x)|_2 - |m2(x') - m2(x)|_2
//	Misclassify   log softmax(m(x'))_y
//
// Match is representation inversion (Nanda et al. 2022, equation 4), Contrast adversarial inversion
// and controversial stimuli (their section 2.3, equation 8), and Misclassify an attack within a
// ball (Madry et al. 2018).
//
// The result is the best image of all steps, for each sample separately. Loss, gradient, update and
// best image of a step are computed by one ONNX graph, or for a served model by requests. For
// example:
//
//	s, err := invert.New(invert.Match(m, layer), invert.Options{})
//	defer s.Close()
//	start, err := invert.Start(invert.Noise, x, draw)
//	result, err := s.Run(ctx, invert.Problem{Images: x, Start: start})
//	result.Images // n x c x h x w: the x' of each x
//
// Here m is a model, and draw returns the random generator of a sample.
//
// The optimiser Paper, of Nanda et al., takes steps of fixed length along the gradient. Adam, on
// the same normalised gradient, reaches the same distance in a tenth of the steps. An interrupted
// search with a Checkpoint can be resumed with identical results.
package invert
