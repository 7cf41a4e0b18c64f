package seis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/linalg"
)

// A scatter is the sum over observations of products of centred variables: here of (x, y), and of
// shuffled pairs, from which the null is computed: the score that chance alone gives. addPairs
// computes both together. They equal those of linalg.Scatter.Add and linalg.CrossScatter.Add, to
// rounding in float32. An observation is one channel of a sample: its values x on the clean and y
// on the transformed input.
func TestAddPairsEqualsSeparateScatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		addPairsEqualsSeparateScatters(t, g, rapid.IntRange(1, 40).Draw(t, "d"), rapid.IntRange(1, 12).Draw(t, "quarter"))
	})
	for _, d := range []int{tile - 1, tile + 30} { // products of one tile and of several
		addPairsEqualsSeparateScatters(t, rand.New(rand.NewPCG(uint64(d), 0)), d, 2)
	}
}

// addPairsEqualsSeparateScatters checks two blocks of 4 x quarter observations of d variables x and
// d variables y, whose shuffled pairs form cycles of four observations.
func addPairsEqualsSeparateScatters(t rapid.TB, g *rand.Rand, d, quarter int) {
	t.Helper()
	var memory scratch
	s, null, wantS, wantNull := linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d), linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d)
	for range 2 {
		rows, p := gaussian(g, 4*quarter, 2*d, 2), cyclesOfFour(involution(g, quarter))
		addBlock(s, null, slices.Clone(rows), &p, &memory)
		b := linalg.Centre(rows, 2*d)
		wantS.Add(b, nil, &memory.products)
		wantNull.Add(b.Columns(0, d), b.Columns(d, 2*d).Permuted(p.order), nil, &memory.products)
	}
	if s.N != 8*quarter || null.N != 8*quarter {
		t.Fatalf("%d observations and %d pairs, want %d", s.N, null.N, 8*quarter)
	}
	equal(t, "mean", s.Mean, wantS.Mean, 1e-12)
	equal(t, "mean of shuffled pairs", slices.Concat(null.MeanX, null.MeanY), slices.Concat(wantNull.MeanX, wantNull.MeanY), 1e-12)
	equal(t, "scatter", s.Data, wantS.Data, 1e-4)
	equal(t, "scatter of shuffled pairs", null.Data, wantNull.Data, 1e-4)
}

// addBlock adds observations of (x, y) to the scatter s, and their shuffled pairs to null.
func addBlock(s *linalg.Scatter[float64], null *linalg.CrossScatter[float64], rows []float32, p *shuffledPairs, memory *scratch) {
	b := block{Block: linalg.Centre(rows, s.P), rows: rows, d: s.P / 2}
	all := s.Begin(b.N(), b.Mean())
	b.addViews(all, linalg.Update[float32]{}, memory)
	b.addPairs(all, linalg.Update[float32]{}, null, []*shuffledPairs{p}, memory)
	all.End()
}

// involution returns a random permutation of 0 to n - 1 that is its own inverse.
func involution(g *rand.Rand, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	order := g.Perm(n)
	for i := 0; i+1 < n; i += 1 + g.IntN(2)*2 { // some are mapped to themselves
		a, b := order[i], order[i+1]
		if out[a] == a && out[b] == b {
			out[a], out[b] = b, a
		}
	}
	return out
}

// Each observation is paired with one of the next quarter of a block, so that four steps from pair
// to pair lead back to it. The argument of cyclesOfFour is the permutation between quarters, here
// of three observations. It panics if that is not its own inverse or has a number out of range.
func TestCyclesOfFour(t *testing.T) {
	t.Parallel()
	p := cyclesOfFour([]int{1, 0, 2})
	for i := range p.order {
		last := i
		for step := 1; step <= 4; step++ {
			if last = p.order[last]; (last == i) != (step == 4) {
				t.Fatalf("after %d steps from observation %d: %d, but the cycle should have four steps: %v", step, i, last, p.order)
			}
		}
		if p.order[i]/3 != (i/3+1)%4 {
			t.Fatalf("the partner of %d is %d, which is not in the next quarter", i, p.order[i])
		}
	}
	for _, bad := range [][]int{{1, 2, 0}, {3, 1, 2}, {-1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("cyclesOfFour(%v) does not panic", bad)
				}
			}()
			cyclesOfFour(bad)
		}()
	}
}

// If y equals x, the scatter of shuffled pairs is no more symmetric than that of unrelated x and y:
// no two observations are each other's partners.
func TestScatterOfCyclesOfFourIsNotSymmetric(t *testing.T) {
	t.Parallel()
	const d, quarter = 30, 500
	g := rand.New(rand.NewPCG(3, 4))
	rows := gaussian(g, 4*quarter, 2*d, 0)
	for i := range 4 * quarter {
		copy(rows[i*2*d+d:(i+1)*2*d], rows[i*2*d:])
	}
	s, null := linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d)
	p := cyclesOfFour(involution(g, quarter))
	addBlock(s, null, rows, &p, new(scratch))
	var symmetric, antisymmetric float64 // squared norms of these parts
	for i := range d {
		for j := range i {
			symmetric += math.Pow(null.Data[i*d+j]+null.Data[j*d+i], 2)
			antisymmetric += math.Pow(null.Data[i*d+j]-null.Data[j*d+i], 2)
		}
	}
	// Each sum has 435 terms, so the standard deviation of the ratio is about 0.1.
	if ratio := symmetric / antisymmetric; ratio < 0.6 || ratio > 1.6 {
		t.Errorf("the squared norm of the symmetric part is %v times that of the antisymmetric part, want about 1", ratio)
	}
}

// gaussian returns n x p values of a normal distribution with mean offset and deviation 1.
func gaussian(g *rand.Rand, n, p int, offset float32) []float32 {
	x := make([]float32, n*p)
	for i := range x {
		x[i] = float32(g.NormFloat64()) + offset
	}
	return x
}

// The scatter of shuffled pairs equals its definition: that of x with the y that the order gives.
func TestShuffledPairsOfAnyPermutation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		d := rapid.IntRange(1, 5).Draw(t, "d")
		null := linalg.NewCrossScatter[float64](d, d)
		var x, y [][]float32
		for range 4 {
			n := rapid.IntRange(1, 9).Draw(t, "n")
			rows, order := gaussian(g, n, 2*d, 2), g.Perm(n)
			for i, j := range order {
				x = append(x, slices.Clone(rows[i*2*d:i*2*d+d]))
				y = append(y, slices.Clone(rows[j*2*d+d:(j+1)*2*d]))
			}
			addBlock(linalg.NewScatter[float64](2*d), null, rows, &shuffledPairs{order: order}, new(scratch))
		}
		mean := func(rows [][]float32, k int) (m float64) {
			for _, v := range rows {
				m += float64(v[k]) / float64(len(rows))
			}
			return m
		}
		for i := range d {
			for j := range d {
				mx, my, want := mean(x, i), mean(y, j), 0.0
				for k := range x {
					want += (float64(x[k][i]) - mx) * (float64(y[k][j]) - my)
				}
				if got := null.Data[i*d+j]; math.Abs(got-want) > 1e-4 {
					t.Fatalf("null[%d, %d] = %v, want %v", i, j, got, want)
				}
			}
		}
	})
}
