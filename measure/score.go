package measure

import "math"

// A Score is the value of one statistic with its interval, null and warnings.
type Score struct {
	Statistic string // the name in scores.csv, for instance "equivariance"
	Variant   string // distinguishes variants of one measure; usually empty
	// Parameter is the value of the transformation's parameter where one method has scores for
	// several values. It is usually empty, and the cell has the parameter.
	Parameter string
	Factor    string  // the factor or the part of the data, for instance "class=cat"; usually empty
	Value     float64 // NaN where the statistic is undefined; a warning then says why
	Low, High float64 // a 95 % interval; NaN where there is none
	Null      float64 // the same statistic on shuffled pairs; NaN where chance alone gives zero
	Min, Max  float64 // the range of the statistic, infinite where it is unbounded; both 0 if unknown
	N         int     // number of observations
	Warnings  []string
	// Replicates are leave-one-group-out values; see package resample. Values derived from several
	// scores on the same samples need them for their intervals, since such scores are correlated.
	// Nil if there are none.
	Replicates []Replicate
}

// A Replicate is a statistic with one jackknife group left out, or with one set of them.
type Replicate struct {
	Value float64
	Left  int // observations left out
}

// Plain returns a score without interval or null.
func Plain(statistic string, value float64, n int) Score {
	nan := math.NaN()
	return Score{Statistic: statistic, Value: value, Low: nan, High: nan, Null: nan, N: n}
}

// A SampleScore is the value of a statistic for one sample (samples: true).
type SampleScore struct {
	Index     int
	Statistic string
	Value     float64
}

// A Sampler is an accumulator of means over samples. It keeps the terms if Site.KeepSamples is set.
type Sampler interface {
	// Samples returns the terms in the order of the sample indices.
	Samples() []SampleScore
}
