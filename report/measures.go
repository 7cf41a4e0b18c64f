package report

import (
	"math"

	"github.com/noether-ml/noether/scores"
)

// A Direction says which way a statistic points.
type Direction int

const (
	Neutral Direction = iota // neither end is more invariant: a rank, the accuracy on clean data
	Higher                   // higher is more invariant, or more equivariant
	Lower                    // lower is more invariant
)

// A Statistic describes one statistic of a measure to a reader.
type Statistic struct {
	Name      string
	Title     string  // in a sentence: "effective invariance"
	About     string  // one sentence
	Min, Max  float64 // the range of its values; NaN where it has no bound
	Direction Direction
}

// A Measure describes a measure to a reader.
type Measure struct {
	Name       string
	Title      string
	Question   string // what it asks, in one sentence
	Reading    string // how to read its numbers
	Leads      string // the kind of chart that a report shows first, if the rows suit it
	Probed     bool   // by probes, which its variants are; its factors stand side by side
	Statistics []Statistic
}

var unbounded = math.NaN()

// known describes the measures that come with Noether, in the order in which a report shows them.
var known = []Measure{
	{
		Name: "accuracy", Title: "Accuracy",
		Question: "Is the class still right when the input is transformed?",
		Reading:  "The share of samples whose top class is the label: on the data as they are, on the transformed data, and the difference.",
		Statistics: []Statistic{
			{"moved", "accuracy on transformed data", "The share of transformed samples classified as labelled.", 0, 1, Higher},
			{"drop", "drop in accuracy", "Accuracy on the data as they are, minus accuracy on the transformed data.", -1, 1, Lower},
			{"clean", "accuracy", "The share of samples classified as labelled, untransformed.", 0, 1, Neutral},
		},
	},
	{
		Name: "effective-invariance", Title: "Effective invariance",
		Question: "Does the prediction hold when the input is transformed, and hold with confidence?",
		Reading:  "1 where both predictions name the same class with full confidence, 0 where they name different classes. It needs no labels. The null pairs each sample with another one.",
		Statistics: []Statistic{
			{"ei", "effective invariance", "The geometric mean of the two confidences where the classes agree, else 0; averaged over samples.", 0, 1, Higher},
		},
	},
	{
		Name: "prediction-divergence", Title: "Prediction divergence",
		Question: "How far do the predicted probabilities move when the input is transformed?",
		Reading:  "Divergences are 0 where nothing moves; agreement is the plain share of samples whose top class stays. The null pairs each sample with another one.",
		Statistics: []Statistic{
			{"js", "Jensen-Shannon divergence", "Between the two probability vectors, in nats; at most ln 2 = 0.693.", 0, math.Ln2, Lower},
			{"kl", "Kullback-Leibler divergence", "Of the clean probabilities from the moved ones, in nats; has no upper bound.", 0, unbounded, Lower},
			{"l2", "distance of probabilities", "The Euclidean distance between the two probability vectors.", 0, math.Sqrt2, Lower},
			{"agreement", "agreement", "The share of samples whose top class stays the same.", 0, 1, Higher},
		},
	},
	{
		Name: "seis", Title: "SEIS: spatial equivariance and invariance",
		Question: "Is the spatial information of a layer still there after the transformation, and is it still in the same place?",
		Reading:  "Equivariance near 1: the layer's maps move in a way that one linear map undoes. Invariance near 1: they stay where they are. The null is what shuffled pairs give: a score at its null is chance.",
		Statistics: []Statistic{
			{"equivariance", "equivariance", "Mean canonical correlation between the clean and the moved feature maps.", 0, 1, Higher},
			{"invariance", "invariance", "How far the matching spatial patterns coincide in place.", 0, 1, Higher},
			{"rank", "rank", "Dimensions of the spatial subspace that holds the variance asked for.", 0, unbounded, Neutral},
			{"null-equivariance", "equivariance of shuffled pairs", "What chance alone gives for equivariance.", 0, 1, Neutral},
			{"null-invariance", "invariance of shuffled pairs", "What chance alone gives for invariance.", 0, 1, Neutral},
		},
	},
	{
		Name: "distance", Title: "Distance between representations",
		Question: "How far does a layer's whole activation vector move when the input is transformed?",
		Reading:  "0: the layer stays as it is. The null is the distance between unrelated samples; after a ReLU it can be small, so read a distance against it. l1 and l2 are in the units of the layer: compare them within one layer only. A large distance need not mean that information is lost.",
		Statistics: []Statistic{
			{"cosine", "cosine distance", "1 minus the cosine of the angle between the two activation vectors: 0 for the same direction, 1 for a right angle.", 0, 2, Lower},
			{"relative-l2", "relative l2 distance", "The Euclidean distance, divided by the root mean square length of the two vectors.", 0, 2, Lower},
			{"l1", "l1 distance", "The sum of absolute differences, in the units of the layer.", 0, unbounded, Lower},
			{"l2", "l2 distance", "The Euclidean distance, in the units of the layer.", 0, unbounded, Lower},
		},
	},
	{
		Name: "similarity", Title: "Similarity of representations",
		Question: "Do two layers see the same inputs alike: two of different models, two of one model, or one on x and on T(x)?",
		Reading:  "1: one representation is the other, up to what the statistic disregards (rotation and scale for CKA, any invertible linear map for CCA). The null pairs each sample with another one: a similarity at its null is chance. A high similarity on the data does not say that two models are invariant to the same things.",
		Statistics: []Statistic{
			{"linear-cka", "linear CKA", "The cosine between the two centred Gram matrices.", 0, 1, Higher},
			{"debiased-cka", "debiased CKA", "Linear CKA from unbiased estimates: 0 on average for representations that have nothing in common.", -1, 1, Higher},
			{"minibatch-cka", "minibatch CKA", "Debiased CKA from the averages over minibatches.", -1, 1, Higher},
			{"rbf-cka", "RBF CKA", "CKA of Gram matrices of a Gaussian kernel, which looks at near neighbours.", 0, 1, Higher},
			{"svcca", "SVCCA", "Mean canonical correlation of the principal subspaces that hold most of the variance.", 0, 1, Higher},
			{"pwcca", "PWCCA", "Mean canonical correlation, weighted by how much of the first representation each direction accounts for.", 0, 1, Higher},
			{"cca", "mean canonical correlation", "Disregards every invertible linear map.", 0, 1, Higher},
			{"procrustes", "Procrustes similarity", "What is left of the second representation after the best rotation and scaling onto the first.", 0, 1, Higher},
			{"linear-regression", "linear regression", "The share of the first representation's variance that a linear map of the second explains.", 0, 1, Higher},
			{"rsa", "representational similarity", "Rank correlation of the dissimilarities of all pairs of samples.", -1, 1, Higher},
			{"mutual-knn", "mutual nearest neighbours", "The share of nearest neighbours that samples have in common.", 0, 1, Higher},
		},
	},
	{
		Name: "stir", Title: "STIR: shared invariances",
		Question: "Which inputs are the same to the first model, and are they the same to the second?",
		Reading:  "For each sample another input is sought that the first model, the reference, maps to the same representation. STIR is 1 where the second model maps the two alike as well: it ignores whatever the reference ignores. It has a direction. CKA compares the two models on the data alone, and knows nothing of invariances.",
		Statistics: []Statistic{
			{"stir", "STIR", "Similarity of the second model's representations of the samples and of the inputs that are the same to the reference.", 0, 1, Higher},
			{"stir-adversarial", "adversarial STIR", "The same with inputs that are sought to differ to the second model as well: the worst case.", 0, 1, Higher},
			{"cka", "linear CKA", "Of the two models' representations of the samples.", 0, 1, Higher},
			{"similarity", "similarity", "Of the two models' representations of the samples, by the variant's statistic.", unbounded, 1, Higher},
			{"agreement", "agreement", "The share of inputs found to which both models give the same class.", 0, 1, Higher},
			{"representation-distance", "distance reached", "Of the reference's representations of a sample and of the input found for it, relative to the length of the former.", 0, unbounded, Neutral},
			{"missed", "share that missed", "Of inputs whose representation did not come near enough to the sample's.", 0, 1, Neutral},
			{"input-distance", "distance of inputs", "Between a sample and the input found for it, in the l2 norm of images in [0, 1].", 0, unbounded, Neutral},
		},
	},
	{
		Name: "firing", Title: "Firing-rate invariance",
		Question: "Does a single unit keep firing for its feature while the input is transformed?",
		Reading:  "A unit fires for about one input in a hundred. Invariance is how much more often it fires on the trajectories around the inputs that drive it most: 1 is chance, and the reciprocal of the global rate, about 100, is the most. The null follows trajectories around inputs drawn at random.",
		Statistics: []Statistic{
			{"invariance", "firing-rate invariance", "Local over global firing rate, the mean over the best share of a layer's units.", 0, unbounded, Higher},
			{"local-rate", "local firing rate", "The share of the trajectories around their strongest inputs on which these units fire.", 0, 1, Neutral},
			{"global-rate", "global firing rate", "The share of all inputs at which these units fire.", 0, 1, Neutral},
			{"selective", "share of selective units", "Of units that are not constant on the data.", 0, 1, Neutral},
			{"normalised-variance", "normalised variance", "Deviation over transformations, relative to that over samples, the mean over units: 0 is invariant.", 0, unbounded, Lower},
			{"same-equivariance", "same-equivariance", "The same after the feature maps are moved back: 0 where they move with the input.", 0, unbounded, Lower},
			{"goodfellow-normal", "invariance by a normal threshold", "Firing on all trajectories over firing on all inputs, thresholds by mean and deviation.", 0, unbounded, Higher},
			{"mutual-information", "information about the class", "Between firing and class, in nats, the mean over the best share of units.", 0, unbounded, Neutral},
			{"transformational-variance", "transformational variance", "Deviation over transformations, in the units of the layer.", 0, unbounded, Neutral},
			{"sample-variance", "sample variance", "Deviation over samples, in the units of the layer.", 0, unbounded, Neutral},
		},
	},
	{
		Name: "informativeness", Title: "Informativeness", Leads: "bars", Probed: true,
		Question: "What can a small probe read of a factor from a layer?",
		Reading:  "A probe is trained to predict the factor from the layer's vectors, and judged on samples that it has not seen. What an mlp reads and an slp does not is there, and not linearly. The null is a probe trained on shuffled targets: a score at its null is chance.",
		Statistics: []Statistic{
			{"r2", "R²", "The share of the factor's variance that the probe predicts; below 0 it does worse than the mean.", unbounded, 1, Neutral},
			{"rmse", "error of the probe", "Root of the mean squared error, in units of the factor divided by its scale.", 0, unbounded, Neutral},
			{"accuracy", "accuracy of the probe", "The share of samples whose class the probe predicts.", 0, 1, Neutral},
			{"f1", "F1 of the probe", "The mean over classes.", 0, 1, Neutral},
			{"baseline-rmse", "error of the mean", "What predicting the mean of the training samples comes to.", 0, unbounded, Neutral},
			{"baseline-accuracy", "accuracy of the most frequent class", "What naming the most frequent class of the training samples comes to.", 0, 1, Neutral},
		},
	},
	{
		Name: "parameter-equivariance", Title: "Parameter equivariance", Leads: "bars", Probed: true,
		Question: "Can a probe tell from the representations before and after what the transformation did?",
		Reading:  "R² near 1: the layer holds what the transformation did. R² near 0: it does not show, or not to a probe of this size. Errors are in shares of the parameter's range.",
		Statistics: []Statistic{
			{"r2", "R²", "The share of the parameter's variance that the probe predicts.", unbounded, 1, Neutral},
			{"rmse", "error of the probe", "In shares of the parameter's range; the mean predicts to 0.289.", 0, unbounded, Neutral},
			{"accuracy", "accuracy of the probe", "The share of samples for which it names the right value.", 0, 1, Neutral},
			{"f1", "F1 of the probe", "The mean over values.", 0, 1, Neutral},
			{"baseline-rmse", "error of the mean", "What predicting the mean parameter comes to.", 0, unbounded, Neutral},
			{"baseline-accuracy", "accuracy of the most frequent value", "What naming the most frequent value comes to.", 0, 1, Neutral},
		},
	},
	{
		Name: "representation-equivariance", Title: "Representation equivariance", Leads: "bars", Probed: true,
		Question: "Can a probe predict the transformed representation from the clean one and the parameter?",
		Reading:  "A gain near 1: the layer moves predictably. A gain near 0: predicting that nothing moves is as good. Read the cosine against that of the clean representation itself.",
		Statistics: []Statistic{
			{"gain", "gain over the clean representation", "The share of the squared move that the probe predicts; below 0 it does worse than predicting no move.", unbounded, 1, Higher},
			{"cosine", "cosine of the prediction", "Between the predicted and the transformed representation.", -1, 1, Higher},
			{"mse", "error of the prediction", "Mean squared error over the numbers of a vector of unit length.", 0, unbounded, Lower},
			{"identity-cosine", "cosine of the clean representation", "Between the clean and the transformed representation.", -1, 1, Neutral},
			{"identity-mse", "error of the clean representation", "What predicting that nothing moves comes to.", 0, unbounded, Neutral},
		},
	},
	{
		Name: "invariance", Title: "Invariance", Leads: "parameter",
		Question: "Does a layer's pooled vector stay where it is, for each value of the parameter?",
		Reading:  "A cosine of 1: the vector keeps its direction. The null pairs unrelated samples: after a ReLU its cosine is far from 0, so read a cosine against it.",
		Statistics: []Statistic{
			{"cosine", "cosine", "Between the clean and the transformed vector, the mean over samples.", -1, 1, Higher},
			{"l2", "distance", "Between the clean and the transformed vector, in the units of the layer.", 0, unbounded, Lower},
		},
	},
	{
		Name: "disentanglement", Title: "Disentanglement", Leads: "heat", Probed: true,
		Question: "Does a probe for one factor still read it when the transformation changes another?",
		Reading:  "0: the probe reads the factor as well as before. The parameter names the middle of a quarter of the transformation's range. A factor that the transformation itself changes is disturbed rightly, and one that was never read cannot be disturbed.",
		Statistics: []Statistic{
			{"rmse-change", "change of the probe's error", "Error on transformed samples minus error on the same samples as they are.", unbounded, unbounded, Neutral},
			{"accuracy-change", "loss of the probe's accuracy", "Accuracy on samples as they are minus accuracy on the same samples transformed.", -1, 1, Neutral},
		},
	},
	{
		Name: "robust-accuracy", Title: "Robust accuracy",
		Question: "Is the class still right after the worst small change of the image?",
		Reading:  "Projected gradient descent looks for a change within a ball around the image that makes the class wrong. What withstands it may still fall to a stronger search.",
		Statistics: []Statistic{
			{"robust", "robust accuracy", "The share of samples whose class stays right throughout the ball, as far as the search finds.", 0, 1, Higher},
			{"clean", "accuracy", "The share of samples classified as labelled, unchanged.", 0, 1, Neutral},
		},
	},
}

// Describe returns the descriptions of the measures that the rows hold, in the order to show them. A measure or a
// statistic that is not described here is shown by its own name, with no direction.
func Describe(rows []scores.Row) []Measure {
	statistics := make(map[string][]string)
	type pair struct{ measure, statistic string }
	seen := make(map[pair]bool)
	for i := range rows {
		p := pair{rows[i].Measure, rows[i].Statistic}
		if !seen[p] {
			seen[p] = true
			statistics[p.measure] = append(statistics[p.measure], p.statistic)
		}
	}
	var found []Measure
	for _, m := range known {
		if present := statistics[m.Name]; present != nil {
			found = append(found, m.restricted(present))
			delete(statistics, m.Name)
		}
	}
	for _, name := range distinct(rows, byMeasure) {
		if present := statistics[name]; present != nil {
			found = append(found, Measure{Name: name, Title: name}.restricted(present))
		}
	}
	return found
}

// restricted returns the measure with the statistics that are present: first those described, then the others.
func (m Measure) restricted(present []string) Measure {
	left := make(map[string]bool, len(present))
	for _, name := range present {
		left[name] = true
	}
	described := m.Statistics
	m.Statistics = nil
	for _, s := range described {
		if left[s.Name] {
			m.Statistics = append(m.Statistics, s)
			delete(left, s.Name)
		}
	}
	for _, name := range present {
		if left[name] {
			m.Statistics = append(m.Statistics, Statistic{Name: name, Title: name, Min: unbounded, Max: unbounded})
		}
	}
	return m
}

// Headline returns the statistics worth a line in an overview: those with a direction, or all where none has one.
func (m Measure) Headline() []Statistic {
	var pointed []Statistic
	for _, s := range m.Statistics {
		if s.Direction != Neutral {
			pointed = append(pointed, s)
		}
	}
	if pointed == nil {
		return m.Statistics
	}
	return pointed
}
