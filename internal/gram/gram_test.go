package gram

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func draw(g *rand.Rand, t *rapid.T, n, cols int) Rows {
	r := Rows{Stride: cols + rapid.IntRange(0, 3).Draw(t, "beyond"), N: n, Shift: make([]float32, cols)}
	r.Data = make([]float32, n*r.Stride)
	for i := range r.Data {
		r.Data[i] = float32(g.NormFloat64()) + 2
	}
	for i := range r.Shift {
		r.Shift[i] = float32(g.NormFloat64()) / 10
	}
	if rapid.Bool().Draw(t, "ordered") {
		r.Order = g.Perm(n)
	}
	return r
}

// centred is the matrix of the observations, variable after variable.
func (r Rows) centred() [][]float64 {
	out := make([][]float64, r.cols())
	for i := range out {
		for t := range r.N {
			out[i] = append(out[i], r.at(t, i))
		}
	}
	return out
}

func (r Rows) at(t, i int) float64 {
	if r.Order != nil {
		t = r.Order[t]
	}
	return float64(r.Data[t*r.Stride+i] - r.Shift[i])
}

func noise(g *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = g.NormFloat64()
	}
	return out
}

func single(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// Sizes around those of panels, of blocks and of the depth that is multiplied at once, by one worker and several.
func TestSumsAreThoseOfTheTextbook(t *testing.T) {
	if !Available() {
		t.Skip("no kernel for this processor")
	}
	sizes := rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{95, 96, 97, 239, 240, 241}))
	var w Work
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.OneOf(rapid.IntRange(1, 20), rapid.SampledFrom([]int{95, 96, 97, 191, 192, 193, 400})).Draw(t, "n")
		p, q, workers := sizes.Draw(t, "p"), sizes.Draw(t, "q"), rapid.IntRange(1, 3).Draw(t, "workers")
		x, y := draw(g, t, n, p), draw(g, t, n, q)
		triangle := rapid.Bool().Draw(t, "triangle")
		if triangle {
			y, q = x, p
		}
		cx, cy := x.centred(), y.centred()
		var want []float64
		u, v, u1, v1 := noise(g, p), noise(g, q), noise(g, p), noise(g, q)
		var plus, plus1 []float64
		for i := range p {
			from := 0
			if triangle {
				from = i
			}
			for j := from; j < q; j++ {
				var sum float64
				for k, v := range cx[i] {
					sum += v * cy[j][k]
				}
				want = append(want, sum)
				plus, plus1 = append(plus, u[i]*v[j]), append(plus1, u1[i]*v1[j])
			}
		}
		start := noise(g, len(want))
		wide := Sums[float64]{append([]float64(nil), start...), u, v}
		narrow := Sums[float32]{single(start), u1, v1}
		which := rapid.IntRange(0, 2).Draw(t, "which sums")
		if which == 1 {
			wide = Sums[float64]{}
		} else if which == 2 {
			narrow = Sums[float32]{}
		}
		if triangle {
			w.AddTriangle(x, wide, narrow, workers)
		} else {
			w.AddProducts(x, y, wide, narrow, workers)
		}
		tolerance := 1e-5 * float64(n+10) // products are about 4
		for i, s := range want {
			if wide.Data != nil && !(math.Abs(wide.Data[i]-start[i]-s-plus[i]) < tolerance) {
				t.Fatalf("float64 sum %d of %d x %d grows by %v, want %v", i, p, q, wide.Data[i]-start[i], s+plus[i])
			}
			if narrow.Data != nil && !(math.Abs(float64(narrow.Data[i])-start[i]-s-plus1[i]) < tolerance) {
				t.Fatalf("float32 sum %d of %d x %d grows by %v, want %v", i, p, q, float64(narrow.Data[i])-start[i], s+plus1[i])
			}
		}
	})
}

// Tiles that a BLAS would form, in any order, add up to what the kernel's own products do; Shift takes the mean off as it does.
func TestTilesAddUp(t *testing.T) {
	if !Available() {
		t.Skip("no kernel for this processor")
	}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, p, q, side := rapid.IntRange(1, 9).Draw(t, "n"), rapid.IntRange(1, 50).Draw(t, "p"), rapid.IntRange(1, 50).Draw(t, "q"), rapid.IntRange(1, 30).Draw(t, "side")
		triangle := rapid.Bool().Draw(t, "triangle")
		x, y := draw(g, t, n, p), draw(g, t, n, q)
		x.Stride, x.Order, x.Data, y.Stride, y.Order, y.Data = p, nil, x.Data[:n*p], q, nil, y.Data[:n*q]
		if triangle {
			y, q = x, p
		}
		size := p * q
		if triangle {
			size = p * (p + 1) / 2
		}
		u, v := noise(g, p), noise(g, q)
		wide, narrow := Sums[float64]{make([]float64, size), u, v}, Sums[float32]{make([]float32, size), u, v}
		want := Sums[float64]{make([]float64, size), u, v}
		var w Work
		if triangle {
			w.AddTriangle(x, want, Sums[float32]{}, 1)
		} else {
			w.AddProducts(x, y, want, Sums[float32]{}, 1)
		}
		a, b := append([]float32(nil), x.Data...), append([]float32(nil), y.Data...)
		Shift(a, x.Shift)
		Shift(b, y.Shift)
		for top := 0; top < p; top += side {
			for left := 0; left < q; left += side {
				tile := Tile{Top: top, Bottom: min(top+side, p), Left: left, Right: min(left+side, q)}
				for i := tile.Top; i < tile.Bottom; i++ {
					for j := tile.Left; j < tile.Right; j++ {
						var sum float32
						for k := range n {
							sum += a[k*p+i] * b[k*q+j]
						}
						tile.Products = append(tile.Products, sum)
					}
				}
				if triangle {
					AddToTriangle(tile, p, wide, narrow)
				} else {
					AddToProducts(tile, p, q, wide, narrow)
				}
			}
		}
		for i, s := range want.Data {
			if !(math.Abs(wide.Data[i]-s) < 1e-4) || !(math.Abs(float64(narrow.Data[i])-s) < 1e-4) {
				t.Fatalf("sum %d of %d x %d is %v and %v, want %v", i, p, q, wide.Data[i], narrow.Data[i], s)
			}
		}
	})
}

func TestTilesOutsideTheSumsPanic(t *testing.T) {
	for _, tile := range []Tile{
		{make([]float32, 4), 0, 2, 2, 4}, {make([]float32, 3), 0, 2, 0, 2}, {make([]float32, 4), -1, 1, 0, 2}, {make([]float32, 4), 2, 2, 0, 2}, {make([]float32, 4), 2, 4, 0, 2},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", tile)
				}
			}()
			tile.check(3, 3)
		}()
	}
}

// How many share the work changes nothing, to the last bit.
func TestWorkersDoNotMatter(t *testing.T) {
	if !Available() {
		t.Skip("no kernel for this processor")
	}
	g := rand.New(rand.NewPCG(1, 2))
	const n, p = 300, 500
	x := Rows{Data: single(noise(g, n*p)), Stride: p, N: n, Shift: make([]float32, p)}
	var first []float64
	for _, workers := range []int{1, 2, 5} {
		s := Sums[float64]{make([]float64, p*(p+1)/2), make([]float64, p), make([]float64, p)}
		new(Work).AddTriangle(x, s, Sums[float32]{}, workers)
		if first == nil {
			first = s.Data
		}
		for i, v := range s.Data {
			if v != first[i] {
				t.Fatalf("%d workers: sum %d is %v, not %v", workers, i, v, first[i])
			}
		}
	}
}

func TestRowsAddUp(t *testing.T) {
	if !Available() {
		t.Skip("no kernel for this processor")
	}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, p := rapid.IntRange(0, 11).Draw(t, "n"), rapid.IntRange(1, 40).Draw(t, "p")
		rows, sum := single(noise(g, n*p)), noise(g, p)
		want := append([]float64(nil), sum...)
		for i, v := range rows {
			want[i%p] += float64(v)
		}
		AddRows(sum, rows)
		for i, v := range sum {
			if !(math.Abs(v-want[i]) < 1e-12) {
				t.Fatalf("sum %d is %v, want %v", i, v, want[i])
			}
		}
	})
}

// NaN and infinity arrive in the sums.
func TestWhatIsNotFiniteShows(t *testing.T) {
	if !Available() {
		t.Skip("no kernel for this processor")
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		x := Rows{Data: []float32{1, 2, bad, 4, 5, 6}, Stride: 3, N: 2, Shift: make([]float32, 3)}
		s := Sums[float64]{make([]float64, 6), make([]float64, 3), make([]float64, 3)}
		new(Work).AddTriangle(x, s, Sums[float32]{}, 1)
		for i, v := range s.Data {
			if column2 := i == 2 || i == 4 || i == 5; column2 == (v-v == 0) {
				t.Errorf("with %v, sum %d is %v", bad, i, v)
			}
		}
	}
}

func TestRowsThatDoNotFitPanic(t *testing.T) {
	for _, r := range []Rows{
		{Data: make([]float32, 5), Stride: 3, N: 2, Shift: make([]float32, 3)},
		{Data: make([]float32, 6), Stride: 2, N: 2, Shift: make([]float32, 3)},
		{Data: make([]float32, 6), Stride: 3, N: 2, Order: []int{0, 2}, Shift: make([]float32, 3)},
		{Data: make([]float32, 6), Stride: 3, N: 2, Order: []int{0, -1}, Shift: make([]float32, 3)},
		{Data: make([]float32, 6), Stride: 3, N: 2, Order: []int{0}, Shift: make([]float32, 3)},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is taken", r)
				}
			}()
			check(r)
		}()
	}
}
