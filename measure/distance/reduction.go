package distance

import (
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/paired"
	"github.com/noether-ml/noether/onnx"
)

// reduction computes the sums of pairs of vectors (pairSums) in the graph of a model, by standard
// operators in float32: a graphics processor then adds up what it has computed.
var reduction = paired.Reduction{Name: "pair sums", Width: reducedSums, Build: buildSums, Columns: reducedColumns}

// The sums that the reduction computes for a sample: of its clean vector a and its transformed
// vector b, and of the clean vector of its partner (see measure.Layout.Partners) and b.
const (
	reducedAA = iota
	reducedBB
	reducedDot
	reducedAbs
	reducedSqr
	partnerDot
	partnerAbs
	partnerSqr
	reducedSums // their number
)

// buildSums adds the sums to a graph, b x reducedSums. A device adds each run of a vector on other
// cores, and then the sums of the runs.
func buildSums(b *onnx.Builder, n int, in measure.ReductionInputs) onnx.Value {
	run := runLength(n)
	inRuns := func(z onnx.Value) onnx.Value { return b.Reshape(z, 0, n/run, run) }
	x, y := inRuns(in.Clean), inRuns(in.Transformed)
	p := b.Gather(x, in.Partners, 0)
	sum := func(op string, z onnx.Value) onnx.Value { // the first axis stays
		return b.ReduceSum(b.Reduce(op, z, false, 2), true, 1)
	}
	sums := make([]onnx.Value, reducedSums)
	sums[reducedAA], sums[reducedBB] = sum("ReduceSumSquare", x), sum("ReduceSumSquare", y)
	pair := func(z onnx.Value, dot, abs, sqr int) {
		difference := b.Sub(z, y)
		sums[dot], sums[abs], sums[sqr] = sum("ReduceSum", b.Mul(z, y)), sum("ReduceL1", difference), sum("ReduceSumSquare", difference)
	}
	pair(x, reducedDot, reducedAbs, reducedSqr)
	pair(p, partnerDot, partnerAbs, partnerSqr)
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
	sums := func(clean []float32, dot, abs, sqr int) pairSums {
		return pairSums{aa: float64(clean[reducedAA]), bb: float64(values[reducedBB]), dot: float64(values[dot]), abs: float64(values[abs]), sqr: float64(values[sqr])}
	}
	m := sums(values, reducedDot, reducedAbs, reducedSqr)
	if !m.suffices() {
		return measure.ErrNeedsActivations
	}
	m.write(own)
	if shuffled == nil {
		return nil
	}
	if m = sums(partner, partnerDot, partnerAbs, partnerSqr); !m.suffices() {
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
