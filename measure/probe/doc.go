// Package probe asks what a small network can read from a representation, and what disturbs it: the four axes of Plachouras et
// al. 2025, "Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks".
//
// A probe g is trained on the representations z = f(x) of some samples, chosen on others and judged on a third part. With T a
// transformation of the input with parameter p, z' = f(T_p(x)):
//
//	informativeness              g(z) = F, a factor of variation (section II-B1)
//	parameter-equivariance       g(z, z') = p (equation 1)
//	representation-equivariance  g(z, p) = z' (equation 2), z and z' of unit length, p first embedded in 32 dimensions
//	invariance                   cos(z, z') against p (section III-C); there is no probe
//	disentanglement              of g trained for F on z, RMSE(g(z')) - RMSE(g(z)) for each quarter of p's range (section III-B)
//
// A probe is a single linear layer ("slp"), a network of two hidden layers with ReLU ("mlp"), or linear least squares in closed form
// ("ridge"), which serves as a fast check. The networks are trained by Adam (rate 1e-3, coupled weight decay 1e-3, batches of 32) until
// the validation loss has not fallen for ten epochs, a hundred at most; the weights of the best epoch are kept. Numbers are
// predicted by squared error, classes by cross-entropy.
//
// Every score is a mean over seeds of the network, with an interval that has the spread over seeds and over samples (a jackknife over
// groups of test samples) in it, half widths added in quadrature. Its null is what the same probe comes to when it was trained on
// shuffled targets; beside it stands the baseline of the mean, or of the most frequent class.
//
// Probes of one layer are trained side by side, each on one core and several steps in a run of the engine; probes of one form use the
// same graphs one after the other. The numbers do not depend on how many there are.
package probe
