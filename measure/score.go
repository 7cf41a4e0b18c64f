package measure

import "math"

// A Score is the value of one statistic with its interval, null and warnings.
type Score struct {
	Statistic string // its name in scores.csv, for instance "equivariance"
	Variant   string // version of the statistic, such as a kind of probe; usually empty
	// Parameter is the transformation's if the measure returns several; else it is empty.
	Parameter string
	Factor    string  // known property of the samples, or a subset such as "class=cat"; usually empty
	Value     float64 // NaN if the statistic is undefined; a warning then says why
	Low, High float64 // 95 % confidence interval; NaN if there is none
	Null      float64 // the statistic by chance, as on x and T of another sample; NaN: none
	Min, Max  float64 // range of the statistic, infinite if unbounded; both 0 if unknown
	N         int     // number of observations, in most measures samples
	// Warnings are what the measure says of the value. A run adds doubts about the model and samples
	// that were left out (internal/study/plan), scores those of small groups and of the parts of
	// means.
	Warnings []string
	// Replicates are for a jackknife, nil if there are none. Intervals derived from several scores
	// of the same samples, which correlate, use them.
	Replicates []Replicate
	// Spread is the half-width of the part of the interval that Replicates do not contain, such as
	// the spread over probes trained with other seeds; 0: none.
	Spread float64
	// Freedom is the degrees of freedom of Spread, or of an interval without Replicates; 0:
	// unknown.
	Freedom float64
}

// A Replicate is the value of a statistic without one or several groups of the samples.
type Replicate struct {
	Value float64
	Left  int // number of observations left out
}

// Plain returns a score of n observations without interval, null and range.
func Plain(statistic string, value float64, n int) Score {
	nan := math.NaN()
	return Score{Statistic: statistic, Value: value, Low: nan, High: nan, Null: nan, N: n}
}

// Undefined returns a score of the same statistic with value NaN and a warning that says why.
func (s Score) Undefined(why string) Score {
	out := Plain(s.Statistic, math.NaN(), 0)
	out.Variant, out.Parameter, out.Factor, out.Warnings = s.Variant, s.Parameter, s.Factor, []string{why}
	return out
}

// A SampleScore is a statistic of one sample, stored with "samples: true".
type SampleScore struct {
	Index     int // of the sample in the data set
	Statistic string
	Value     float64
}

// A Sampler is an accumulator that with Site.KeepSamples stores the values of single samples.
type Sampler interface {
	// Samples returns these values in the order of the sample indices.
	Samples() []SampleScore
}
