// Package probe measures what small networks, called probes, can predict from a representation, and
// how transformations of the input change the predictions. It implements the four axes of
// Plachouras et al. 2025, "Towards a Unified Representation Evaluation Framework Beyond Downstream
// Tasks": informativeness, equivariance, invariance and disentanglement.
//
// A representation z = f(x) of a sample x is the activation of a layer, pooled to one vector. A
// factor is a known property of the samples, such as hue or speaker. A probe g is trained on the
// representations of the training samples. The best epoch is chosen on the validation samples, and
// the score is computed on the test samples. T_p is a transformation of the input with parameter p,
// and z' = f(T_p(x)):
//
//	informativeness              g(z) = F, a factor of variation (section II-B1)
//	parameter-equivariance       g(z, z') = p (equation 1)
//	representation-equivariance  g(z, p) = z' (equation 2), with z and z' of unit length
//	invariance                   cos(z, z') against p (section IV-C), without a probe
//	disentanglement              RMSE(g(z')) - RMSE(g(z)) for g trained for F on z (section IV-B)
//
// A further measure, retrieval, orders the vectors z of all samples by their cosine with z', and
// scores the rank of the sample's own z.
//
// A probe is a single linear layer ("slp", a single-layer perceptron), a network with two hidden
// layers and ReLU ("mlp", a multi-layer perceptron), or ridge regression in closed form ("ridge",
// linear too, and fast). Networks are trained by Adam (rate 1e-3; weight decay 1e-3, added to
// the gradient; batches of 32) for at most 100 epochs, until the validation loss has not fallen for
// ten epochs. These are the defaults of a study file, which says what is measured. The weights of
// the best epoch are used. The loss is the squared error for quantities and the cross-entropy for
// classes.
//
// A score is the mean over networks that differ in their seed. Its interval combines the spread
// over seeds with a jackknife over groups (up to twenty parts) of the test samples, half widths
// added in quadrature. Its null is the score of the same probe trained on shuffled targets (what a
// probe learns to predict). A baseline score is that of always predicting the mean, or the most
// frequent class.
//
// For example, ridge regression for every factor of the data, as a measure for study.Measure:
//
//	m, err := probe.Informativeness(probe.InformativenessSettings{
//		Training: probe.Training{Probe: []string{probe.Ridge}, Split: []float64{0.8, 0.1, 0.1},
//			Rate: 1e-3, Batch: 32, Epochs: 100, Patience: 10, Seeds: 3},
//		Representation: probe.Representation{Pool: "mean"},
//	})
//
// A job is one run of a measure on a model and its data (procedure.Job). Probes of one layer are
// trained in parallel, each on one core, and probes of the same architecture share compiled graphs.
// Scores do not depend on the number of cores.
package probe
