package similarity

import (
	"fmt"
	"math"
	"strings"
)

// The statistics, by the names that they have in study files, commands and scores.
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

// A kind describes a statistic.
type kind struct {
	name     string
	min, max float64 // its range
	least    int     // observations that it needs
	form     form
	wide     bool // needs float64 products: small eigenvalues matter
	shuffle  bool // its null has no closed form
}

// A form is what a statistic is computed from.
type form int

const (
	ofMoments   form = iota // p x p moments, or n x n Gram matrices where those are smaller
	ofPairs                 // n x n values, one for each pair of observations
	ofMinibatch             // Gram matrices of a few samples at a time
)

// kinds lists the statistics in the order in which they are reported.
func kinds() []kind {
	return []kind{
		{name: LinearCKA, max: 1, least: 2},
		{name: DebiasedCKA, min: -1, max: 1, least: 4},
		{name: MinibatchCKA, min: -1, max: 1, least: 4, form: ofMinibatch},
		{name: RBFCKA, max: 1, least: 2, form: ofPairs},
		{name: CCA, max: 1, least: 3, wide: true, shuffle: true},
		{name: SVCCA, max: 1, least: 3, wide: true, shuffle: true},
		{name: PWCCA, max: 1, least: 3, wide: true, shuffle: true},
		{name: Procrustes, max: 1, least: 2, wide: true, shuffle: true},
		{name: LinearRegression, max: 1, least: 3, wide: true},
		{name: RSA, min: -1, max: 1, least: 3, form: ofPairs},
		{name: MutualKNN, max: 1, least: 3, form: ofPairs},
	}
}

// Names lists the statistics in the order in which they are reported.
func Names() []string {
	var out []string
	for _, k := range kinds() {
		out = append(out, k.name)
	}
	return out
}

func kindOf(name string) (kind, bool) {
	for _, k := range kinds() {
		if k.name == name {
			return k, true
		}
	}
	return kind{}, false
}

// Settings are those of the measure, and of comparisons of arrays.
type Settings struct {
	Statistics []string `key:"statistics" json:"statistics" default:"[minibatch-cka]" doc:"linear-cka, debiased-cka, minibatch-cka, rbf-cka, cca, svcca, pwcca, procrustes, linear-regression, rsa, mutual-knn"`
	Pool       string   `key:"pool" json:"pool" default:"none" enum:"none|mean" doc:"feature maps: none takes every channel at every position as a variable, mean the mean of each channel over positions"`
	Variance   float64  `key:"variance" json:"variance" default:"0.99" min:"0" max:"1" doc:"svcca: part of the variance that the leading components hold"`
	Bandwidth  float64  `key:"bandwidth" json:"bandwidth" default:"0.4" min:"0" doc:"rbf-cka: the kernel's width, as a fraction of the median distance"`
	Neighbours int      `key:"neighbours" json:"neighbours" default:"10" min:"1" doc:"mutual-knn: nearest neighbours of a sample"`
	Samples    int      `key:"samples" json:"samples" default:"4096" min:"4" max:"32768" doc:"samples at most for statistics of n x n matrices: the first of the random order; memory grows with the square"`
}

// Defaults are the settings where nothing else is said.
func Defaults() Settings {
	return Settings{Statistics: []string{MinibatchCKA}, Pool: "none", Variance: 0.99, Bandwidth: 0.4, Neighbours: 10, Samples: 4096}
}

// check returns an error that names the first setting that makes no sense.
func (s Settings) check() error {
	if len(s.Statistics) == 0 {
		return fmt.Errorf("no statistics: name some of %s", strings.Join(Names(), ", "))
	}
	seen := map[string]bool{}
	for _, name := range s.Statistics {
		if _, ok := kindOf(name); !ok {
			return fmt.Errorf("unknown statistic %q: there are %s", name, strings.Join(Names(), ", "))
		}
		if seen[name] {
			return fmt.Errorf("the statistic %s is named twice", name)
		}
		seen[name] = true
	}
	switch {
	case s.Pool != "none" && s.Pool != "mean":
		return fmt.Errorf("pool is %q; it is none or mean", s.Pool)
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

// wanted are the kinds of the statistics asked for, in the order in which they are reported.
func (s Settings) wanted(of ...form) []kind {
	var out []kind
	for _, k := range kinds() {
		named := false
		for _, name := range s.Statistics {
			named = named || name == k.name
		}
		for _, f := range of {
			if named && k.form == f {
				out = append(out, k)
			}
		}
	}
	return out
}
