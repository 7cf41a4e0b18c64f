package similarity

import (
	"context"
	"math"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TestGridOfNarrowAndWideLayers checks pairs of narrow layers, whose products are computed as one
// product of matrices, pairs of wide layers, and pairs of one of each kind. Their scores must equal
// those of Value, which compares two matrices. In grid_test.go are tensors, which returns random
// activations of n samples, one tensor for each shape, and layers, which makes layers of these
// names. The first list of statistics computes in float32, the second in float64.
func TestGridOfNarrowAndWideLayers(t *testing.T) {
	t.Parallel()
	const n = 2000
	shapes := [][]int{{5}, {widestNarrow + 1}, {8}}
	a, b := tensors(3, n, shapes...), tensors(4, n, shapes...)
	g := measure.Grid{A: layers("NC", "a b c", shapes...), B: layers("NC", "d e f", shapes...), Pairs: everyPair(3, 3), Layout: measure.NewLayout(n)}
	for _, names := range [][]string{{LinearCKA}, {DebiasedCKA, Procrustes}} {
		s := Defaults()
		s.Statistics, s.Interval, s.Null = names, false, false
		m := newMeasure(t, s)
		acc, err := m.New(g)
		if err != nil {
			t.Fatal(err)
		}
		// pairs[4] is of the two wide layers. at is negative for a layer that is not narrow.
		if in := acc.(*accumulator); in.pairs[4] == nil || len(in.narrow[0].layers) != 2 || in.narrow[0].at[1] >= 0 {
			t.Fatalf("narrow layers %v; want the first and the third, and moments of all pairs", in.narrow[0].layers)
		}
		for pair, scores := range scoresOf(t, m, g, a, b) {
			i, j := pair[0], pair[1]
			x, y := source(t, a[i].Data, tensor.Size(shapes[i])), source(t, b[j].Data, tensor.Size(shapes[j]))
			for _, name := range names {
				want, err := Value(context.Background(), name, x, y, s)
				if got := scores[name].Value; err != nil || !(math.Abs(got-want) <= 1e-6) {
					t.Errorf("%s of %v: %v, want %v (error %v)", name, pair, got, want, err)
				}
			}
		}
	}
}
