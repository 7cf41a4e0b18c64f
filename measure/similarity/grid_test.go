package similarity

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

func newMeasure(t testing.TB, s Settings) measure.Comparison {
	t.Helper()
	m, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tensors returns random activations that share latent variables, one tensor for each shape, of n
// samples. normal(g, n, p) returns n x p standard normal values, product the product of matrices.
func tensors(seed uint64, n int, shapes ...[]int) []tensor.Tensor {
	g := rand.New(rand.NewPCG(seed, 11))
	z := normal(g, n, 4)
	var out []tensor.Tensor
	for _, shape := range shapes {
		p := tensor.Size(shape)
		x := product(z, normal(g, 4, p))
		x.Add(x, normal(g, n, p))
		y := tensor.New(append([]int{n}, shape...)...)
		for i, v := range x.RawMatrix().Data {
			y.Data[i] = max(0, float32(v)+0.5)
		}
		out = append(out, y)
	}
	return out
}

// layers returns layers of the given names, separated by spaces, and shapes without the batch axis.
// Those of vectors have the axes NC, the others the given ones.
func layers(axes tensor.Axes, names string, shapes ...[]int) []tensor.Layer {
	var out []tensor.Layer
	for i, name := range strings.Fields(names) {
		a := axes
		if len(shapes[i]) == 1 {
			a = "NC"
		}
		out = append(out, tensor.Layer{Name: name, Shape: shapes[i], Axes: a})
	}
	return out
}

// everyPair returns all pairs of a layers on one side and b on the other. A side of a grid is a
// model on its inputs.
func everyPair(a, b int) [][2]int {
	var out [][2]int
	for i := range a {
		for j := range b {
			out = append(out, [2]int{i, j})
		}
	}
	return out
}

// TestGridContract checks that the scores of a grid of pairs of layers do not depend on the batch
// size, on how samples are divided into shards, on the order of merges, on interruptions or on
// other pairs of the grid. The accumulator of a grid stores, for each pair, the activations of
// samples (subtest "values"), or second moments of the activations (subtests "moments"), or
// neither, if minibatches are enough.
func TestGridContract(t *testing.T) {
	t.Parallel()
	shapesA, shapesB := [][]int{{3, 2, 2}, {5}}, [][]int{{6}, {2, 3, 1}}
	const n = 123
	grid := measure.Grid{
		A: layers("NCHW", "a b", shapesA...), B: layers("NCHW", "c d", shapesB...), Pairs: everyPair(2, 2), Layout: measure.NewLayout(n),
	}
	settings := func(statistics ...string) Settings {
		s := Defaults()
		s.Statistics, s.Neighbours, s.Samples = statistics, 4, 60 // at most 60 samples where all pairs of them count
		return s
	}
	moments := []string{LinearCKA, DebiasedCKA, CCA, SVCCA, PWCCA, Procrustes, LinearRegression}
	for name, c := range map[string]measuretest.GridCase{
		"minibatches": {Comparison: newMeasure(t, settings(MinibatchCKA)), Grid: grid},
		"values":      {Comparison: newMeasure(t, settings(append(moments, RSA, RBFCKA, MutualKNN, MinibatchCKA)...)), Grid: grid, Tolerance: 1e-6},
		// Within 8000 bytes, values of pairs with layer a do not fit, but moments without those of
		// jackknife groups do. Pairs with layer b store values.
		"moments":        {Comparison: newMeasure(t, settings(moments...)), Grid: bounded(grid, 8000), Tolerance: 1e-5},
		"moments of CKA": {Comparison: newMeasure(t, settings(LinearCKA, DebiasedCKA)), Grid: bounded(grid, 8000), Tolerance: 1e-5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.A, c.B = tensors(1, n, shapesA...), tensors(2, n, shapesB...)
			measuretest.RunGrid(t, c)
		})
	}
	t.Run("layers of one model", func(t *testing.T) {
		t.Parallel()
		self := grid
		self.B, self.Self = grid.A, true
		z := tensors(1, n, shapesA...)
		measuretest.RunGrid(t, measuretest.GridCase{Comparison: newMeasure(t, settings(MinibatchCKA, LinearCKA)), Grid: self, A: z, B: z, Tolerance: 1e-6})
	})
}

// bounded returns the grid with a memory bound in bytes; 0 is no bound.
func bounded(g measure.Grid, bytes int64) measure.Grid {
	g.Budget = bytes
	return g
}

// scoresOf returns the scores of a grid, by pair and statistic.
func scoresOf(t *testing.T, m measure.Comparison, g measure.Grid, a, b []tensor.Tensor) map[[2]int]map[string]measure.Score {
	t.Helper()
	acc, err := m.New(g)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < g.Layout.N; from += 50 {
		to := min(from+50, g.Layout.N)
		batch := &measure.PairBatch{}
		for p := from; p < to; p++ {
			batch.Place, batch.Index, batch.Label = append(batch.Place, p), append(batch.Index, p), append(batch.Label, -1)
		}
		for _, z := range a {
			batch.A = append(batch.A, z.Slice(from, to))
		}
		for _, z := range b {
			batch.B = append(batch.B, z.Slice(from, to))
		}
		if err := acc.Update(batch); err != nil {
			t.Fatal(err)
		}
	}
	scores, err := acc.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[[2]int]map[string]measure.Score{}
	for _, s := range scores {
		key := [2]int{s.A, s.B}
		if out[key] == nil {
			out[key] = map[string]measure.Score{}
		}
		out[key][s.Statistic] = s.Score
	}
	return out
}

// TestGridEqualsMatrices checks that the scores of a pair of layers in a grid equal those that
// Value returns for the two matrices of activations. They are computed from stored activations
// ("values") or, within 12,000 bytes, from second moments. source (see golden_test.go) makes a
// matrix of rows of the given length. allStatistics returns settings with all statistics.
func TestGridEqualsMatrices(t *testing.T) {
	t.Parallel()
	const n = 400
	shapes := [][]int{{2, 2, 2}, {5}}
	a, b := tensors(3, n, shapes...), tensors(4, n, shapes[:1]...)
	s := allStatistics()
	g := measure.Grid{A: layers("NCHW", "a b", shapes...), B: layers("NCHW", "c", shapes...), Pairs: everyPair(2, 1), Layout: measure.NewLayout(n)}
	for name, budget := range map[string]int64{"values": 0, "moments": 12000} {
		got := scoresOf(t, newMeasure(t, s), bounded(g, budget), a, b)
		for pair, scores := range got {
			x, y := source(t, a[pair[0]].Data, tensor.Size(shapes[pair[0]])), source(t, b[0].Data, tensor.Size(shapes[0]))
			for _, k := range statistics() {
				if k.name == MinibatchCKA || budget > 0 && k.input == pairwiseInput {
					continue
				}
				want, err := Value(context.Background(), k.name, x, y, s)
				if err != nil {
					t.Fatal(err)
				}
				score := scores[k.name]
				if heldOut(k.name) {
					want = score.Value // not compared: its cross-validation folds depend on the order of the samples
				}
				tolerance := 1e-6
				if k.neighbours && k.compute != nil {
					tolerance = 0.01 // ties are broken at random, in the order of the samples
				}
				if math.Abs(score.Value-want) > tolerance || score.N != n || math.IsNaN(score.Null) != k.unpaired {
					t.Errorf("%s of %v from %s: %+v, want %v", k.name, pair, name, score, want)
				}
				// The lower bound of the range of the statistic may be that of its interval.
				described, _ := Descriptor().Statistic(k.name)
				if budget == 0 && !(score.Low < score.Value && score.Value < score.High) && score.Low > described.Range.Low {
					t.Errorf("%s of %v from %s: no interval: %+v", k.name, pair, name, score)
				}
			}
			// Both are unbiased estimates of the same quantity.
			if d := math.Abs(scores[MinibatchCKA].Value - scores[DebiasedCKA].Value); d > 0.1 {
				t.Errorf("minibatch and debiased CKA of %v differ by %v, want 0.1 at most", pair, d)
			}
		}
	}
}

// TestMomentsWithGroups checks that intervals from the moments of jackknife groups are half to
// twice as wide as those of Compare, which draws other groups.
func TestMomentsWithGroups(t *testing.T) {
	t.Parallel()
	const n = 3000
	shapes := [][]int{{4}}
	a, b := tensors(5, n, shapes...), tensors(6, n, shapes...)
	s := allStatistics()
	s.Statistics = []string{LinearCKA, DebiasedCKA, CCA, SVCCA, PWCCA, Procrustes, LinearRegression}
	g := measure.Grid{A: layers("", "a", shapes...), B: layers("", "b", shapes...), Pairs: everyPair(1, 1), Layout: measure.NewLayout(n)}
	m := newMeasure(t, s).(*comparison)
	// planOf says what is stored for a pair: moments, also of groups, and values of samples.
	if p := m.planOf(g, 0); !p.moments || !p.groups || p.stored > 0 {
		t.Fatalf("%d samples of 4 variables are planned as %+v", n, p)
	}
	scores := scoresOf(t, m, g, a, b)[[2]int{0, 0}]
	x, y := source(t, a[0].Data, 4), source(t, b[0].Data, 4)
	want, err := Compare(context.Background(), x, y, Options{Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range want {
		got := scores[w.Statistic]
		width, wanted := got.High-got.Low, w.High-w.Low
		if math.Abs(got.Value-w.Value) > 1e-6 || !(width > wanted/2 && width < wanted*2) || len(got.Replicates) != 20 {
			t.Errorf("%s: %+v from moments, %+v from the matrices", w.Statistic, got, w)
		}
	}
}

// TestPooling checks that with the setting pool: mean, feature maps with channels first or last
// have the score of the vectors of their channel means.
func TestPooling(t *testing.T) {
	t.Parallel()
	const n = 120
	s := Defaults()
	s.Pool, s.Statistics = "mean", []string{LinearCKA}
	channelsFirst := tensors(7, n, []int{3, 4, 5})[0]
	channelsLast := tensor.New(n, 4, 5, 3) // the same values
	pooled := tensor.New(n, 3)
	for i := range n {
		for c := range 3 {
			for k := range 20 { // 4 x 5 positions
				v := channelsFirst.Data[(i*3+c)*20+k]
				channelsLast.Data[(i*20+k)*3+c] = v
				pooled.Data[i*3+c] += v / 20
			}
		}
	}
	other := tensors(8, n, []int{6})
	for axes, z := range map[tensor.Axes]tensor.Tensor{"NCHW": channelsFirst, "NHWC": channelsLast, "NC": pooled} {
		g := measure.Grid{
			A: []tensor.Layer{{Name: "a", Shape: z.Shape[1:], Axes: axes}}, B: layers("", "b", []int{6}), Pairs: everyPair(1, 1), Layout: measure.NewLayout(n),
		}
		got := scoresOf(t, newMeasure(t, s), g, []tensor.Tensor{z}, other)[[2]int{0, 0}][LinearCKA].Value
		want, err := Value(context.Background(), LinearCKA, source(t, pooled.Data, 3), source(t, other[0].Data, 6), s)
		if err != nil || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v, %v", axes, got, want, err)
		}
	}
}

// TestBudget checks that a statistic whose computation does not fit the memory bound is NaN, with a
// warning that says what to do, and that the others are computed.
func TestBudget(t *testing.T) {
	t.Parallel()
	const n = 100
	const allBytes = 4 * n * 2 * (3 * 4 * 4) // of the float32 activations of n samples in two layers
	shapes := [][]int{{3, 4, 4}}
	a, b := tensors(9, n, shapes...), tensors(10, n, shapes...)
	g := measure.Grid{A: layers("NCHW", "a", shapes...), B: layers("NCHW", "b", shapes...), Pairs: everyPair(1, 1), Layout: measure.NewLayout(n)}
	s := allStatistics()
	for _, budget := range []int64{0, allBytes, allBytes - 1} {
		scores := scoresOf(t, newMeasure(t, s), bounded(g, budget), a, b)[[2]int{0, 0}]
		for _, name := range Names() {
			refused := math.IsNaN(scores[name].Value)
			if want := budget == allBytes-1 && name != MinibatchCKA; refused != want {
				t.Errorf("%s within %d bytes: %+v; want NaN: %t", name, budget, scores[name], want)
			}
			if refused && !strings.Contains(strings.Join(scores[name].Warnings, ""), "pool: mean") {
				t.Errorf("%s is undefined with the warnings %v, want one with \"pool: mean\"", name, scores[name].Warnings)
			}
		}
	}
	s.Statistics = []string{LinearCKA}
	if why := newMeasure(t, s).Skip(bounded(g, 1000)); !strings.Contains(why, "beyond the memory bound") {
		t.Errorf("the reason to skip is %q, want the memory bound", why)
	}
	few := bounded(g, 0)
	few.Layout = measure.NewLayout(40)
	if why := newMeasure(t, Defaults()).Skip(few); !strings.Contains(why, "80 samples") {
		t.Errorf("the reason to skip 40 samples is %q, want that minibatch-cka needs 80", why)
	}
}

// TestGridErrors checks the errors for batches, states and settings that do not fit the grid.
// Places must ascend, and none may come twice. The error for a value that is not finite names its
// layer and sample.
func TestGridErrors(t *testing.T) {
	t.Parallel()
	shapes := [][]int{{3}, {2}}
	g := measure.Grid{A: layers("", "a b", shapes...), B: layers("", "c d", shapes...), Pairs: everyPair(2, 2), Layout: measure.NewLayout(100)}
	fresh := func() measure.GridAccumulator {
		acc, err := newMeasure(t, Defaults()).New(g)
		if err != nil {
			t.Fatal(err)
		}
		return acc
	}
	batch := func(change func(b *measure.PairBatch)) *measure.PairBatch {
		b := &measure.PairBatch{Place: []int{5, 6}, Index: []int{14, 15}, Label: []int{-1, -1}, A: tensors(1, 2, shapes...), B: tensors(2, 2, shapes...)}
		change(b)
		return b
	}
	var e *measure.NonFiniteIn
	err := fresh().Update(batch(func(b *measure.PairBatch) { b.B[1].Data[3] = float32(math.Inf(1)) }))
	if !errors.As(err, &e) || e.Side != measure.SideB || e.Layer != 1 || e.Index != 15 {
		t.Errorf("infinity in the second layer of B on the sample 15: error %v", err)
	}
	for name, b := range map[string]*measure.PairBatch{
		"missing layer": batch(func(b *measure.PairBatch) { b.A = b.A[:1] }),
		"shape":         batch(func(b *measure.PairBatch) { b.A[0] = tensor.New(2, 4) }),
		"samples":       batch(func(b *measure.PairBatch) { b.A[0] = tensor.New(3, 3) }),
		"order":         batch(func(b *measure.PairBatch) { slices.Reverse(b.Place) }),
		"place":         batch(func(b *measure.PairBatch) { b.Place[1] = 100 }),
		"negative":      batch(func(b *measure.PairBatch) { b.Place[0] = -1 }),
	} {
		if err := fresh().Update(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	twice := fresh()
	for i := range 2 {
		if err := twice.Update(batch(func(*measure.PairBatch) {})); (err != nil) != (i == 1) {
			t.Errorf("update %d with the same samples: error %v, want one of the second update only", i+1, err)
		}
	}
	other := g
	other.Layout = measure.NewLayout(101)
	acc, err := newMeasure(t, Defaults()).New(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh().Merge(acc); err == nil {
		t.Error("states of different layouts were merged")
	}
	if _, err := New(Settings{}); err == nil {
		t.Error("empty settings were accepted")
	}
}

// TestMoreNeighboursThanSamples checks that statistics of neighbours have no value, and say why, if
// a study has too few samples for them. RSA needs no neighbours.
func TestMoreNeighboursThanSamples(t *testing.T) {
	t.Parallel()
	s := Defaults()
	s.Statistics, s.Neighbours = []string{MutualKNN, Jaccard, SecondOrderCosine, RankSimilarity, CKNNA, RSA}, 20
	shapes := [][]int{{3}}
	g := measure.Grid{A: layers("", "a", shapes...), B: layers("", "b", shapes...), Pairs: everyPair(1, 1), Layout: measure.NewLayout(20)}
	scores := scoresOf(t, newMeasure(t, s), g, tensors(1, 20, shapes...), tensors(2, 20, shapes...))[[2]int{}]
	for _, name := range s.Statistics {
		score, ok := scores[name]
		if !ok {
			t.Errorf("no score of %s", name)
		}
		if name == RSA {
			if math.IsNaN(score.Value) {
				t.Errorf("rsa has no value: %q", score.Warnings)
			}
			continue
		}
		if !math.IsNaN(score.Value) || len(score.Warnings) != 1 || !strings.Contains(score.Warnings[0], "20 neighbours of 20 samples: set fewer") {
			t.Errorf("%s is %v with the warnings %q", name, score.Value, score.Warnings)
		}
	}
}
