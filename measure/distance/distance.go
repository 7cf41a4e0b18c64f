// Package distance measures how much a layer's activations change when the input is transformed.
//
// Let z be the activations of one layer on x and z' those on T(x), each flattened to one vector.
// The statistics are means over samples:
//
//	cosine       1 - z.z' / (|z| |z'|)                      0 to 2: 0 same direction, 2 opposite
//	l1           sum |z_i - z'_i|
//	l2           |z - z'|
//	relative-l2  |z - z'| / sqrt((|z|^2 + |z'|^2) / 2)      0 to 2; sqrt 2 at right angles
//
// l1 and l2 depend on the scale of the activations, so they are comparable only between layers of
// the same scale. cosine does not depend on the lengths of the vectors, and relative-l2 not on a
// common factor. The denominator of relative-l2 has both lengths, so that it is finite if one
// vector is zero. Two zero vectors have distance 0. A zero vector has cosine distance 1 from any
// other.
//
// The null is the same mean over shuffled pairs, x of one sample with T(x) of another. Compare a
// distance with it. After a ReLU all activations are at least 0, so even unrelated images may have
// a distance of only 0.2.
//
// Distance 0 means invariance. A large distance does not mean that information is lost: feature
// maps that rotate with the image are far from the original ones. Package measure/seis
// distinguishes the two cases.
//
// Between two models, z is the layer of the first and z' that of the second, on the same input.
//
// Between returns the distances of two vectors:
//
//	d := distance.Between([]float32{1, 0}, []float32{0, 1}) // d.Cosine is 1
package distance

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
)

// Settings configure the measure.
type Settings struct {
	PerClass bool `key:"per-class" json:"per-class" default:"false" doc:"also compute scores for each class of labels"`
}

// New returns the measure distance. Its per-sample values have the names of its statistics.
func New(s Settings) measure.Measure {
	column := func(name string) paired.Column {
		return paired.Column{Statistic: name, Sample: name, Transformed: true}
	}
	// Version is that of the results, StateVersion that of the saved accumulators.
	return paired.New(paired.Spec{
		Descriptor: Descriptor(), Version: 1, StateVersion: 2, Settings: s, PerClass: s.PerClass, Pair: pair, PairRows: pairRows, Reduction: &reducedSums,
		Needs:   measure.Needs{Transformed: true, OtherLayers: true},
		Columns: []paired.Column{column("cosine"), column("l1"), column("l2"), column("relative-l2")},
	})
}

const columns = 4

func pair(out []float64, _ int, clean, transformed []float32) error {
	m := newPairSums(clean, transformed) // m.aa is |z|^2, and m.bb is |z'|^2
	// Squares of finite float32 values do not overflow a float64.
	if !finite(m.aa) {
		return &measure.NonFinite{View: "clean"}
	}
	if !finite(m.bb) {
		return &measure.NonFinite{View: "transformed"}
	}
	m.write(out)
	return nil
}

// pairRows is pair for several samples. shuffled, if not nil, gets the distances of z' of each
// sample and z of the one before, previous for the first. It returns false if a z or z' is not
// finite.
func pairRows(own, shuffled []float64, previous, clean, transformed []float32) bool {
	rows := len(own) / columns
	sums := make([]pairSums, 2*rows)
	next := sums[rows:]
	if shuffled == nil {
		next = nil
	}
	// next gets the sums of shuffled pairs.
	sumRows(sums[:rows], next, previous, clean, transformed)
	for i, m := range sums[:rows] {
		if !finite(m.aa) || !finite(m.bb) {
			return false
		}
		m.write(own[i*columns:])
	}
	for i, m := range next {
		m.write(shuffled[i*columns:])
	}
	return true
}

func (m pairSums) write(out []float64) {
	d := m.distances()
	out[0], out[1], out[2], out[3] = d.Cosine, d.L1, d.L2, d.RelativeL2
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
