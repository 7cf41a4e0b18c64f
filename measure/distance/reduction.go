package distance

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
)

// reducedSums lists the sums that an engine adds up in float32. Squared differences of directions
// replace the dot product, whose float32 does not suffice for small angles.
var reducedSums = paired.Reduction{Columns: reducedColumns, Sums: []measure.Sum{
	reducedAA:         {Of: measure.OfClean},
	reducedBB:         {Of: measure.OfTransformed},
	reducedDirections: {Of: measure.OfDifference, Directions: true},
	reducedAbs:        {Of: measure.OfDifference, Absolute: true},
	reducedSqr:        {Of: measure.OfDifference},
	partnerDirections: {Of: measure.OfShuffledDifference, Directions: true},
	partnerAbs:        {Of: measure.OfShuffledDifference, Absolute: true},
	partnerSqr:        {Of: measure.OfShuffledDifference},
}}

const (
	reducedAA = iota
	reducedBB
	reducedDirections // sum (a/|a| - b/|b|)^2 = 2 (1 - a.b / (|a| |b|))
	reducedAbs
	reducedSqr
	partnerDirections
	partnerAbs
	partnerSqr
)

func reducedColumns(own, shuffled []float64, values, partner []float32) error {
	sums := func(clean []float32, directions, abs, sqr int) pairSums {
		m := pairSums{aa: float64(clean[reducedAA]), bb: float64(values[reducedBB]), abs: float64(values[abs]), sqr: float64(values[sqr])}
		m.dot = (1 - float64(values[directions])/2) * math.Sqrt(m.aa*m.bb)
		return m
	}
	m := sums(values, reducedDirections, reducedAbs, reducedSqr)
	if !m.suffices() {
		return measure.ErrNeedsActivations
	}
	m.write(own)
	if shuffled == nil {
		return nil
	}
	if m = sums(partner, partnerDirections, partnerAbs, partnerSqr); !m.suffices() {
		return measure.ErrNeedsActivations
	}
	m.write(shuffled)
	return nil
}

// suffices reports whether sums in float32 suffice: no overflow, and no harm by squares that
// underflow. A vector whose squares are all below 1e-38 counts as zero.
func (m pairSums) suffices() bool {
	large := func(v float64) bool { return v == 0 || v >= measure.LeastSquares }
	return finite(m.aa+m.bb+m.dot+m.abs+m.sqr) && large(m.aa) && large(m.bb) && (m.sqr >= measure.LeastSquares || m.abs == 0)
}
