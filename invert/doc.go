// Package invert searches for images by gradient descent: images that a network maps to a given
// representation, that two networks represent differently, or that a network misclassifies.
//
// A search minimises a loss L of the image x' by projected gradient descent,
//
//	x' <- P(x' - alpha u(grad L)).
//
// P clips to [0, 1] and, with a Ball, projects onto the images within a radius of x. u divides the
// gradient of each sample by its norm. The losses are objectives:
//
//	Match         |m(x') - m(x)|_2                              representation inversion: Nanda et al. 2022, equation 4
//	Contrast      |m1(x') - m1(x)|_2 - |m2(x') - m2(x)|_2       adversarial inversion and controversial stimuli: section 2.3, equation 8
//	Misclassify   log softmax(m(x'))_y                          attacks within a ball: Madry et al. 2018
//
// The result is the best image of all steps, for each sample separately. A whole step (loss,
// gradient, update, best image) is one graph and one run of the engine:
//
//	s, err := invert.New(invert.Match(m, layer), invert.Options{})
//	defer s.Close()
//	start, err := invert.Start(invert.Noise, x, draw)
//	result, err := s.Run(ctx, invert.Problem{Images: x, Start: start})
//	result.Images // n x c x h x w: the x' of each x
//
// The paper's optimiser takes steps of fixed length along the gradient. Adam, on the same
// normalised gradient, reaches the same distance in a tenth of the steps. An interrupted search
// resumes from its checkpoint with identical results.
package invert
