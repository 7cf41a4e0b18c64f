package linalg

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A scatter and a cross that are added to together are those that are added to one by one, to float32's rounding.
func TestPairedBlocksAreThoseOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		pairedIsOneByOne(t, g, rapid.IntRange(1, 40).Draw(t, "d"), rapid.IntRange(1, 12).Draw(t, "quarter"))
	})
	for _, d := range []int{tile - 1, tile + 30} { // of one tile and of several
		pairedIsOneByOne(t, rand.New(rand.NewPCG(uint64(d), 0)), d, 2)
	}
}

func pairedIsOneByOne(t rapid.TB, g *rand.Rand, d, quarter int) {
	t.Helper()
	var scratch Scratch
	for _, centring := range centrings {
		s, c, wantS, wantC := NewScatter[float64](2*d), NewCross(d), NewScatter[float64](2*d), NewCross(d)
		for range 2 {
			rows, p := gaussian(g, 4*quarter, 2*d, 2), Quarters(involution(g, quarter))
			AddPaired(s, c, centring(slices.Clone(rows), 2*d), p, &scratch)
			b := centring(rows, 2*d)
			wantS.Add(b, nil, &scratch)
			wantC.Add(b, p.Of, &scratch)
		}
		if s.N != 8*quarter || c.N != 8*quarter {
			t.Fatalf("%d observations and %d pairs of %d", s.N, c.N, 8*quarter)
		}
		equal(t, "mean", s.Mean, wantS.Mean, 1e-12)
		equal(t, "mean of pairs", c.Mean, wantC.Mean, 1e-12)
		equal(t, "scatter", s.Data, wantS.Data, 1e-4)
		equal(t, "cross", c.Data, wantC.Data, 1e-4)
	}
}

// involution is a random permutation of n that is its own inverse.
func involution(g *rand.Rand, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	order := g.Perm(n)
	for i := 0; i+1 < n; i += 1 + g.IntN(2)*2 { // some stay alone
		a, b := order[i], order[i+1]
		if out[a] == a && out[b] == b {
			out[a], out[b] = b, a
		}
	}
	return out
}

func TestQuartersAreCyclesOfFour(t *testing.T) {
	t.Parallel()
	p := Quarters([]int{1, 0, 2})
	for i := range p.Of {
		at := i
		for step := 1; step <= 4; step++ {
			if at = p.Of[at]; (at == i) != (step == 4) {
				t.Fatalf("observation %d is back after %d steps: %v", i, step, p.Of)
			}
		}
		if p.Of[i]/3 != (i/3+1)%4 {
			t.Fatalf("the partner of %d is %d, of another quarter than the next", i, p.Of[i])
		}
	}
	for _, bad := range [][]int{{1, 2, 0}, {3, 1, 2}, {-1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a match of %v was taken", bad)
				}
			}()
			Quarters(bad)
		}()
	}
}

// With its own view the pairs of a block are no more symmetric than those of unrelated ones: as many products of partners one
// way around as the other.
func TestQuartersOfAViewWithItselfAreNotSymmetric(t *testing.T) {
	t.Parallel()
	const d, quarter = 30, 500
	g := rand.New(rand.NewPCG(3, 4))
	rows := gaussian(g, 4*quarter, 2*d, 0)
	for i := range 4 * quarter {
		copy(rows[i*2*d+d:(i+1)*2*d], rows[i*2*d:])
	}
	s, c := NewScatter[float64](2*d), NewCross(d)
	AddPaired(s, c, summed(rows, 2*d), Quarters(involution(g, quarter)), new(Scratch))
	var even, odd float64
	for i := range d {
		for j := range i {
			even += math.Pow(c.Data[i*d+j]+c.Data[j*d+i], 2)
			odd += math.Pow(c.Data[i*d+j]-c.Data[j*d+i], 2)
		}
	}
	if ratio := even / odd; ratio < 0.6 || ratio > 1.6 { // 435 values of either: the deviation is about a tenth
		t.Errorf("the symmetric part of the products has %v times the square of the other", ratio)
	}
}
