package distance

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/onnx"
)

// reduction computes the sums of pairs of vectors (pairSums) in the graph of a model, by standard
// operators in float32: a graphics processor then adds up what it has computed.
var reduction = paired.Reduction{Name: "pair sums", Width: reducedSums, Build: buildSums, Columns: reducedColumns}

// The sums that the reduction computes for a sample: of its clean vector a and its transformed
// vector b, and of the clean vector of its partner (see measure.Layout.Partners) and b. A direction
// is a vector divided by its length. The sum of the squared differences of directions takes the
// place of the dot product, which in float32 does not suffice for small angles.
const (
	reducedAA = iota
	reducedBB
	reducedDirections // sum (a/|a| - b/|b|)^2 = 2 (1 - a.b / (|a| |b|))
	reducedAbs
	reducedSqr
	partnerDirections
	partnerAbs
	partnerSqr
	reducedSums // their number
)

// buildSums adds the sums to a graph, b x reducedSums. A device adds each run of a vector on other
// cores, and then the sums of the runs.
func buildSums(b *onnx.Builder, n int, clean, transformed, partners onnx.Value) onnx.Value {
	run := runLength(n)
	inRuns := func(z onnx.Value) onnx.Value { return b.Reshape(z, 0, n/run, run) }
	x, y := inRuns(clean), inRuns(transformed)
	sum := func(op string, z onnx.Value) onnx.Value { // the first axis stays
		return b.ReduceSum(b.Reduce(op, z, false, 2), true, 1)
	}
	sums := make([]onnx.Value, reducedSums)
	sums[reducedAA], sums[reducedBB] = sum("ReduceSumSquare", x), sum("ReduceSumSquare", y)
	direction := func(z, squares onnx.Value) onnx.Value { // zero for a zero vector
		length := b.Sqrt(b.Op("Max", nil, squares, b.Scalar(leastSquares)))
		return b.Mul(z, b.Reshape(b.Div(b.Scalar(1), length), 0, 1, 1))
	}
	u, v := direction(x, sums[reducedAA]), direction(y, sums[reducedBB])
	sums[reducedDirections] = sum("ReduceSumSquare", b.Sub(u, v))
	sums[partnerDirections] = sum("ReduceSumSquare", b.Sub(b.Gather(u, partners, 0), v))
	own, shuffled := b.Sub(x, y), b.Sub(b.Gather(x, partners, 0), y)
	sums[reducedAbs], sums[reducedSqr] = sum("ReduceL1", own), sum("ReduceSumSquare", own)
	sums[partnerAbs], sums[partnerSqr] = sum("ReduceL1", shuffled), sum("ReduceSumSquare", shuffled)
	return b.Concat(1, sums...)
}

// runLength returns the number of values of the runs in which a vector of n values is added: the
// divisor of n that is nearest to, and at least, 1024.
func runLength(n int) int {
	for run := 1024; run < n; run++ {
		if n%run == 0 {
			return run
		}
	}
	return n
}

// reducedColumns computes distances from sums of the reduction, see paired.Reduction.
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

// suffices reports whether sums in float32 suffice: none of them overflows, and squares that
// underflow do not matter. A vector whose squares are all below 1e-38 counts as zero.
func (m pairSums) suffices() bool {
	large := func(v float64) bool { return v == 0 || v >= leastSquares }
	return finite(m.aa+m.bb+m.dot+m.abs+m.sqr) && large(m.aa) && large(m.bb) && (m.sqr >= leastSquares || m.abs == 0)
}
