package similarity

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The names of the statistics in study files, commands and scores.
const (
	LinearCKA        = "linear-cka"
	DebiasedCKA      = "debiased-cka"
	MinibatchCKA     = "minibatch-cka"
	RBFCKA           = "rbf-cka"
	CCA              = "cca"
	SVCCA            = "svcca"
	PWCCA            = "pwcca"
	Procrustes       = "procrustes"
	LinearRegression = "linear-regression"
	RSA              = "rsa"
	MutualKNN        = "mutual-knn"
)

// A statistic says what the computation of a statistic needs.
type statistic struct {
	name       string
	minSamples int
	input      input
	double     bool // products in float64, since small eigenvalues matter
	drawnNull  bool // the null has no closed form: it is a mean over drawn shuffles
}

// An input is what a statistic is computed from.
type input int

const (
	momentInput    input = iota // p x p moments, or n x n Gram matrices where those are smaller
	pairwiseInput               // n x n values, one for each pair of samples
	minibatchInput              // Gram matrices of minibatches
)

// statistics returns all statistics in the order in which they are reported.
func statistics() []statistic {
	return []statistic{
		{name: LinearCKA, minSamples: 2},
		{name: DebiasedCKA, minSamples: 4},
		{name: MinibatchCKA, minSamples: 4, input: minibatchInput},
		{name: RBFCKA, minSamples: 2, input: pairwiseInput},
		{name: CCA, minSamples: 3, double: true, drawnNull: true},
		{name: SVCCA, minSamples: 3, double: true, drawnNull: true},
		{name: PWCCA, minSamples: 3, double: true, drawnNull: true},
		{name: Procrustes, minSamples: 2, double: true, drawnNull: true},
		{name: LinearRegression, minSamples: 3, double: true},
		{name: RSA, minSamples: 3, input: pairwiseInput},
		{name: MutualKNN, minSamples: 3, input: pairwiseInput},
	}
}

// Names returns the names of the statistics in the order in which they are reported.
func Names() []string {
	var out []string
	for _, s := range statistics() {
		out = append(out, s.name)
	}
	return out
}

// Settings configure the measure, and comparisons of arrays.
type Settings struct {
	Statistics []string `key:"statistics" json:"statistics" default:"[minibatch-cka]" doc:"linear-cka, debiased-cka, minibatch-cka, rbf-cka, cca, svcca, pwcca, procrustes, linear-regression, rsa, mutual-knn"`
	Pool       string   `key:"pool" json:"pool" default:"none" enum:"none|mean" doc:"variables of feature maps: none, every channel at every position; mean, the mean of each channel over positions"`
	Variance   float64  `key:"variance" json:"variance" default:"0.99" min:"0" max:"1" doc:"svcca: fraction of the variance that the leading components hold"`
	Bandwidth  float64  `key:"bandwidth" json:"bandwidth" default:"0.4" min:"0" doc:"rbf-cka: width of the kernel, as a fraction of the median distance"`
	Neighbours int      `key:"neighbours" json:"neighbours" default:"10" min:"1" doc:"mutual-knn: number of nearest neighbours of a sample"`
	Samples    int      `key:"samples" json:"samples" default:"4096" min:"4" max:"32768" doc:"largest number of samples for statistics of n x n matrices, taken in random order; memory grows with the square"`
}

// Defaults returns the default settings.
func Defaults() Settings {
	return Settings{Statistics: []string{MinibatchCKA}, Pool: "none", Variance: 0.99, Bandwidth: 0.4, Neighbours: 10, Samples: 4096}
}

// check returns an error that names the first invalid setting.
func (s Settings) check() error {
	names := Names()
	if len(s.Statistics) == 0 {
		return fmt.Errorf("no statistics: name some of %s", strings.Join(names, ", "))
	}
	for i, name := range s.Statistics {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown statistic %q: there are %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(s.Statistics[:i], name) {
			return fmt.Errorf("the statistic %s is named twice", name)
		}
	}
	switch {
	case s.Pool != "none" && s.Pool != "mean":
		return fmt.Errorf("unknown pool %q: use none or mean", s.Pool)
	case !(s.Variance > 0 && s.Variance <= 1):
		return fmt.Errorf("variance is %v; it must be above 0 and at most 1", s.Variance)
	case !(s.Bandwidth > 0) || math.IsInf(s.Bandwidth, 0):
		return fmt.Errorf("bandwidth is %v; it must be above 0", s.Bandwidth)
	case s.Neighbours < 1:
		return fmt.Errorf("neighbours is %d; it must be at least 1", s.Neighbours)
	case s.Samples < 4:
		return fmt.Errorf("samples is %d; it must be at least 4", s.Samples)
	}
	return nil
}

// selected returns the chosen statistics that have one of the given inputs, or any input where none
// is given, in the order in which they are reported.
func (s Settings) selected(inputs ...input) []statistic {
	return slices.DeleteFunc(statistics(), func(k statistic) bool {
		return !slices.Contains(s.Statistics, k.name) || len(inputs) > 0 && !slices.Contains(inputs, k.input)
	})
}

// inDouble returns the statistics that take products in float64: canonical correlations, the
// Procrustes similarity and linear regression.
func inDouble(all []statistic) []statistic {
	return slices.DeleteFunc(slices.Clone(all), func(k statistic) bool { return !k.double })
}
