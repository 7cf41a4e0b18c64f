package seis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/linalg"
)

// The scatter of (x, y) and that of shuffled pairs, which addPairs computes together, equal those
// of linalg.Scatter.Add and linalg.CrossScatter.Add, to rounding in float32.
func TestAddPairsEqualsSeparateScatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		addPairsEqualsSeparateScatters(t, g, rapid.IntRange(1, 40).Draw(t, "d"), rapid.IntRange(1, 12).Draw(t, "quarter"))
	})
	for _, d := range []int{tile - 1, tile + 30} { // of one tile and of several
		addPairsEqualsSeparateScatters(t, rand.New(rand.NewPCG(uint64(d), 0)), d, 2)
	}
}

// addPairsEqualsSeparateScatters checks two blocks of 4 quarter observations of d variables each.
func addPairsEqualsSeparateScatters(t rapid.TB, g *rand.Rand, d, quarter int) {
	t.Helper()
	var memory scratch
	s, c, wantS, wantC := linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d), linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d)
	for range 2 {
		rows, p := gaussian(g, 4*quarter, 2*d, 2), cyclesOfFour(involution(g, quarter))
		addBlock(s, c, slices.Clone(rows), &p, &memory)
		b := linalg.Centre(rows, 2*d)
		wantS.Add(b, nil, &memory.products)
		wantC.Add(b.Columns(0, d), b.Columns(d, 2*d).Permuted(p.order), nil, &memory.products)
	}
	if s.N != 8*quarter || c.N != 8*quarter {
		t.Fatalf("%d observations and %d pairs, want %d", s.N, c.N, 8*quarter)
	}
	equal(t, "mean", s.Mean, wantS.Mean, 1e-12)
	equal(t, "mean of pairs", slices.Concat(c.MeanX, c.MeanY), slices.Concat(wantC.MeanX, wantC.MeanY), 1e-12)
	equal(t, "scatter", s.Data, wantS.Data, 1e-4)
	equal(t, "cross", c.Data, wantC.Data, 1e-4)
}

// addBlock adds observations of (x, y) to a scatter, and their shuffled pairs to that of the null.
func addBlock(s *linalg.Scatter[float64], null *linalg.CrossScatter[float64], rows []float32, p *shuffledPairs, memory *scratch) {
	b := block{Block: linalg.Centre(rows, s.P), rows: rows, d: s.P / 2}
	all := s.Begin(b.N(), b.Mean())
	b.addViews(all, linalg.Update[float32]{}, memory)
	b.addPairs(all, linalg.Update[float32]{}, null, p, memory)
	all.End()
}

// involution is a random permutation of n that is its own inverse.
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

func TestCyclesOfFourAreCyclesOfFour(t *testing.T) {
	t.Parallel()
	p := cyclesOfFour([]int{1, 0, 2})
	for i := range p.order {
		at := i
		for step := 1; step <= 4; step++ {
			if at = p.order[at]; (at == i) != (step == 4) {
				t.Fatalf("after %d steps from observation %d: %d, but the cycle should have four steps: %v", step, i, at, p.order)
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
func TestCyclesOfFourOfAViewWithItselfAreNotSymmetric(t *testing.T) {
	t.Parallel()
	const d, quarter = 30, 500
	g := rand.New(rand.NewPCG(3, 4))
	rows := gaussian(g, 4*quarter, 2*d, 0)
	for i := range 4 * quarter {
		copy(rows[i*2*d+d:(i+1)*2*d], rows[i*2*d:])
	}
	s, c := linalg.NewScatter[float64](2*d), linalg.NewCrossScatter[float64](d, d)
	p := cyclesOfFour(involution(g, quarter))
	addBlock(s, c, rows, &p, new(scratch))
	var even, odd float64
	for i := range d {
		for j := range i {
			even += math.Pow(c.Data[i*d+j]+c.Data[j*d+i], 2)
			odd += math.Pow(c.Data[i*d+j]-c.Data[j*d+i], 2)
		}
	}
	if ratio := even / odd; ratio < 0.6 || ratio > 1.6 { // 435 values of either: the deviation is about a tenth
		t.Errorf("the squared norm of the symmetric part is %v times that of the antisymmetric part, want about 1", ratio)
	}
}

// gaussian returns n x p normal values about offset.
func gaussian(g *rand.Rand, n, p int, offset float32) []float32 {
	x := make([]float32, n*p)
	for i := range x {
		x[i] = float32(g.NormFloat64()) + offset
	}
	return x
}

// The scatter of shuffled pairs equals its definition: that of x with the y that the order gives.
func TestNullPairsByTheGivenPermutation(t *testing.T) {
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
		mean := func(of [][]float32, k int) (m float64) {
			for _, v := range of {
				m += float64(v[k]) / float64(len(of))
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
