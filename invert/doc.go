// Package invert searches for pictures: ones that a network maps to a given representation, that two networks see
// differently, or that make a network wrong.
//
// A search minimises a loss L of the image x' by steps of projected gradient descent,
//
//	x' <- P(x' - alpha u(grad L)),
//
// where P clips to [0, 1] and, if a Ball is set, projects to the images within a radius of x; u normalises the gradient
// of each sample. The losses are objectives:
//
//	Match         |m(x') - m(x)|_2                              representation inversion: Nanda et al. 2022, equation 4
//	Contrast      |m1(x') - m1(x)|_2 - |m2(x') - m2(x)|_2       adversarial inversion and controversial stimuli: section 2.3, equation 8
//	Misclassify   log softmax(m(x'))_y                          attacks within a ball: Madry et al. 2018
//
// Of all images on the way the best is kept, for each sample by itself. A whole step (loss, gradient, update, keeping
// the best) is one graph and one run of the engine; tensors are bound once and change places from step to step:
//
//	s, err := invert.New(invert.Match(m, layer), invert.Options{})
//	defer s.Close()
//	start, err := invert.Start(invert.Noise, x, draw)
//	found, err := s.Run(ctx, invert.Problem{Pictures: x, Start: start})
//	found.Images // n x c x h x w: the x' of each x
//
// The paper's optimiser takes steps of one length along the gradient; Adam (on the same normalised gradient) reaches the
// same distance in a tenth of the steps. A search that is interrupted goes on from its checkpoint, to the bits of
// one that was not.
package invert
