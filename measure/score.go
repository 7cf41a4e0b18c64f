package measure

import "math"

// A Score is one statistic with what a reader needs to judge it. A number never comes alone.
type Score struct {
	Statistic string  // the name in scores.csv, for instance "equivariance"
	Variant   string  // tells variants of one measure apart; usually empty
	Parameter string  // the value of the transformation's parameter, where one method scores several of them; usually empty, and the cell tells
	Factor    string  // the part of the data or the factor that the score concerns, for instance "class=cat"; usually empty
	Value     float64 // NaN where the statistic is not defined on these data; a warning then says why
	Low, High float64 // a 95 % interval; NaN where there is none
	Null      float64 // the same statistic on shuffled pairs; NaN where chance alone gives zero
	Min, Max  float64 // the range that the statistic can have, infinite where it is open; both 0 where it is not known
	N         int     // the observations that it rests on
	Warnings  []string
	// Replicates are leave-one-group-out values (see package resample), so that what is derived from several scores on
	// the same samples has an interval that knows of their correlation. Nil where there are none.
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

// A Sampler is an accumulator whose statistics are means over samples and that keeps the terms when asked to.
type Sampler interface {
	Samples() []SampleScore
}
