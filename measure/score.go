package measure

import "math"

// A Score is the value of one statistic of a measure with its interval, null and warnings. x is a
// sample, and T the transformation of the input.
type Score struct {
	Statistic string // its name in scores.csv, for instance "equivariance"
	Variant   string // version of the statistic, such as a kind of probe; usually empty
	// Parameter is the value of the transformation's parameter if the measure returns scores for
	// several values. It is usually empty: the parameter is then that of the study's cell.
	Parameter string
	Factor    string  // known property of the samples, or a subset such as "class=cat"; usually empty
	Value     float64 // NaN if the statistic is undefined; a warning then says why
	Low, High float64 // 95 % confidence interval; NaN if there is none
	Null      float64 // the statistic by chance, as on x and T of another sample; NaN: none
	Min, Max  float64 // range of the statistic, infinite if unbounded; both 0 if unknown
	N         int     // number of observations, in most measures samples
	Warnings  []string
	// Replicates are values of the statistic without some of the samples, for a jackknife. The
	// interval of a value that is derived from several scores on the same samples is computed from
	// them, since such scores are correlated. Nil if there are none.
	Replicates []Replicate
}

// A Replicate is the value of a statistic without one group of the samples, or without several. The
// groups are up to twenty parts of the samples.
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

// A SampleScore is the value of a statistic for one sample. A study stores these values if it has
// "samples: true".
type SampleScore struct {
	Index     int // of the sample in the data set
	Statistic string
	Value     float64
}

// A Sampler is an accumulator of means over samples. If Site.KeepSamples is set, it also stores the
// values of the single samples. A Site describes what an accumulator measures, such as one layer of
// a model.
type Sampler interface {
	// Samples returns these values in the order of the sample indices.
	Samples() []SampleScore
}
