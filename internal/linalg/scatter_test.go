package linalg

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/state"
)

// textbook returns the mean of rows, n x p, and their scatter matrix, p x p: the sum of products of
// deviations from the mean. It takes two passes in float64.
func textbook(rows []float32, p int) (mean, scatter []float64) {
	n := len(rows) / p
	mean, scatter = make([]float64, p), make([]float64, p*p)
	for i := range n {
		for j := range p {
			mean[j] += float64(rows[i*p+j]) / float64(n)
		}
	}
	for i := range n {
		for j := range p {
			for k := range p {
				scatter[j*p+k] += (float64(rows[i*p+j]) - mean[j]) * (float64(rows[i*p+k]) - mean[k])
			}
		}
	}
	return mean, scatter
}

func gaussian(g *rand.Rand, n, p int, offset float32) []float32 {
	x := make([]float32, n*p)
	for i := range x {
		x[i] = float32(g.NormFloat64()) + offset
	}
	return x
}

// centrings are the functions that centre n x p rows on their mean and return them as a Block.
var centrings = []func(rows []float32, p int) Block{Centre, summed}

// summed is CentreSummed with the sum of the rows.
func summed(rows []float32, p int) Block {
	sum := make([]float64, p)
	SumRows(sum, rows)
	return CentreSummed(rows, sum)
}

// TestScatterOfBlocks adds each block of rows to one of two scatters, which are merged at the end.
// Add updates a scatter in float64 (parts) and another in float32 (parts32). A Scratch is memory
// for products. Square returns the scatter of a range of variables, and Between that of two ranges.
func TestScatterOfBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, n := rapid.IntRange(1, 12).Draw(t, "p"), rapid.IntRange(1, 60).Draw(t, "n")
		// A mean of 1000 standard deviations costs no precision, since products are computed about
		// the mean.
		rows := gaussian(g, n, p, rapid.SampledFrom([]float32{0, 3, 1000}).Draw(t, "offset"))
		mean, want := textbook(rows, p)
		var scratch Scratch
		parts := []*Scatter[float64]{NewScatter[float64](p), NewScatter[float64](p)}
		parts32 := []*Scatter[float32]{NewScatter[float32](p), NewScatter[float32](p)}
		for at := 0; at < n; {
			size := min(rapid.IntRange(1, 20).Draw(t, "block"), n-at)
			i := rapid.IntRange(0, 1).Draw(t, "part")
			b := append([]float32(nil), rows[at*p:(at+size)*p]...)
			parts[i].Add(rapid.SampledFrom(centrings).Draw(t, "centring")(b, p), parts32[i], &scratch)
			at += size
		}
		parts[0].Merge(parts[1])
		parts32[0].Merge(parts32[1])
		if parts[0].N != n || parts32[0].N != n {
			t.Fatalf("%d and %d observations, want %d", parts[0].N, parts32[0].N, n)
		}
		checkEqual(t, "mean", parts[0].Mean, mean, 1e-9)
		tolerance := 3e-5 * float64(n)
		square, between := parts[0].Square(0, p), parts[0].Between(0, p/2, p)
		for i := range p {
			for j := i; j < p; j++ {
				if got := square[i*p+j]; math.Abs(got-want[i*p+j]) > tolerance {
					t.Fatalf("scatter[%d, %d] = %v, want %v", i, j, got, want[i*p+j])
				}
				if got := parts32[0].Square(i, j+1)[j-i]; math.Abs(float64(got)-want[i*p+j]) > tolerance {
					t.Fatalf("float32 scatter[%d, %d] = %v, want %v", i, j, got, want[i*p+j])
				}
				if i < p/2 && j >= p/2 && between[i*(p-p/2)+j-p/2] != square[i*p+j] {
					t.Fatalf("between and square differ at [%d, %d]", i, j)
				}
			}
		}
	})
}

// TestCentreKeepsNonFinite checks that the mean of a variable with a NaN or infinite value is not
// finite, and that the mean of the other variable is not affected.
func TestCentreKeepsNonFinite(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		rows := []float32{1, 2, 3, 4, 5, 6}
		rows[3] = float32(bad)
		b := Centre(rows, 2)
		if b.mean[0] != 3 || !(math.IsNaN(b.mean[1]) || math.IsInf(b.mean[1], 0)) {
			t.Errorf("mean with a value %v of the second variable = %v, want 3 and a value that is not finite", bad, b.mean)
		}
	}
}

// TestStateRoundTrip checks that scatters read from a state what they wrote to it. A CrossScatter
// (c) holds the sums of products of three variables with the three others.
func TestStateRoundTrip(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 1))
	s, f, c := NewScatter[float64](6), NewScatter[float32](6), NewCrossScatter[float64](3, 3)
	b := Centre(gaussian(g, 10, 6, 1), 6)
	s.Add(b, f, new(Scratch))
	c.Add(b.Columns(0, 3), b.Columns(3, 6), nil, new(Scratch))
	data, err := state.Marshal("test", 1, func(w *state.Codec) { w.Values(s, f, c) })
	if err != nil {
		t.Fatal(err)
	}
	s2, f2, c2 := NewScatter[float64](6), NewScatter[float32](6), NewCrossScatter[float64](3, 3)
	if err := state.Unmarshal(data, "test", 1, func(r *state.Codec) {
		r.Values(s2, f2,
			c2)
	}); err != nil {
		t.Fatal(err)
	}
	same := func(a, b []float64) bool {
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return len(a) == len(b)
	}
	if s2.N != 10 || f2.N != 10 || c2.N != 10 || !same(s.Data, s2.Data) || !same(s.Mean, s2.Mean) || !same(c.Data, c2.Data) || f2.Data[3] != f.Data[3] {
		t.Fatal("the scatters that were read are not those that were written")
	}
	if data, err = state.Marshal("test", 1, s.Code); err != nil {
		t.Fatal(err)
	}
	if state.Unmarshal(data, "test", 1, NewScatter[float64](7).Code) == nil {
		t.Fatal("Unmarshal accepted a scatter of 6 variables as one of 7")
	}
}

// TestScattersOfSeveralTiles checks that a scatter of more variables than fit in a tile agrees with
// the textbook formula.
func TestScattersOfSeveralTiles(t *testing.T) {
	t.Parallel()
	const d, n = tile/2 + 30, 4
	g := rand.New(rand.NewPCG(7, 8))
	rows := gaussian(g, n, 2*d, 1)
	mean, want := textbook(rows, 2*d)
	for _, centring := range centrings {
		s, s32 := NewScatter[float64](2*d), NewScatter[float32](2*d)
		s.Add(centring(slices.Clone(rows), 2*d), s32, new(Scratch))
		compareScatters(t, s, s32, d, mean, want)
	}
}

// compareScatters compares the scatter of 2 d variables in float64 and in float32 with that of
// textbook.
func compareScatters(t *testing.T, s *Scatter[float64], s32 *Scatter[float32], d int, mean, want []float64) {
	t.Helper()
	for i := range 2 * d {
		if math.Abs(s.Mean[i]-mean[i]) > 1e-6 {
			t.Fatalf("mean %d = %v, want %v", i, s.Mean[i], mean[i])
		}
	}
	got, got32, between := s.Square(0, 2*d), s32.Square(0, 2*d), s.Between(0, d, 2*d)
	for i := range 2 * d {
		for j := i; j < 2*d; j++ {
			at := i*2*d + j
			if math.Abs(got[at]-want[at]) > 1e-4 || math.Abs(float64(got32[at])-want[at]) > 1e-4 {
				t.Fatalf("scatter[%d, %d] = %v and %v, want %v", i, j, got[at], got32[at], want[at])
			}
			if i < d && j >= d && between[i*d+j-d] != got[at] {
				t.Fatalf("between and square differ at [%d, %d]", i, j)
			}
		}
	}
}

// TestScattersInSinglePrecision checks that Add also supports a scatter in float32, not only in
// float64, and updates the second scatter (part) in the same way.
func TestScattersInSinglePrecision(t *testing.T) {
	t.Parallel()
	const p, n = 30, 100
	rows := gaussian(rand.New(rand.NewPCG(5, 6)), n, p, 1)
	_, want := textbook(rows, p)
	for _, centring := range centrings {
		s, part := NewScatter[float32](p), NewScatter[float32](p)
		for at := 0; at < n; at += n / 2 {
			s.Add(centring(slices.Clone(rows[at*p:(at+n/2)*p]), p), part, new(Scratch))
		}
		for i, got := range s.Square(0, p) {
			if i%p >= i/p && (math.Abs(float64(got)-want[i]) > 1e-3 || got != part.Square(0, p)[i]) {
				t.Fatalf("scatter[%d] = %v and part %v, want %v", i, got, part.Square(0, p)[i], want[i])
			}
		}
	}
}

// TestCrossScattersOfSeveralTiles checks that a cross scatter of more variables than fit in a tile
// agrees with the textbook formula: for x, the first d variables, and y, the other d, whose
// observations are permuted.
func TestCrossScattersOfSeveralTiles(t *testing.T) {
	t.Parallel()
	const d, n = tile + 30, 3
	rows := gaussian(rand.New(rand.NewPCG(7, 8)), n, 2*d, 0)
	original := slices.Clone(rows)
	b, cross := Centre(rows, 2*d), NewCrossScatter[float64](d, d)
	cross.Add(b.Columns(0, d), b.Columns(d, 2*d).Permuted([]int{1, 2, 0}), nil, new(Scratch))
	mean, _ := textbook(original, 2*d)
	for _, at := range [][2]int{{0, 0}, {0, d - 1}, {d - 1, 0}, {d - 1, d - 1}, {tile - 1, tile}, {tile, tile - 1}} {
		var want float64
		for i := range n {
			partner := (i + 1) % n // row of y that the permutation pairs with row i of x
			want += (float64(original[i*2*d+at[0]]) - mean[at[0]]) * (float64(original[partner*2*d+d+at[1]]) - mean[d+at[1]])
		}
		if got := cross.Data[at[0]*d+at[1]]; math.Abs(got-want) > 1e-5 {
			t.Errorf("cross scatter%v = %v, want %v", at, got, want)
		}
	}
}
