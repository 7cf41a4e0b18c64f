package linalg

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/state"
)

// textbook is the mean and the scatter of rows, in two passes and in float64.
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

func TestBlocksAddUpToTheTextbookScatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, n := rapid.IntRange(1, 12).Draw(t, "p"), rapid.IntRange(1, 60).Draw(t, "n")
		// A mean a thousand deviations away costs nothing: products are formed around it.
		rows := gaussian(g, n, p, rapid.SampledFrom([]float32{0, 3, 1000}).Draw(t, "offset"))
		mean, want := textbook(rows, p)
		var scratch Scratch
		parts := []*Scatter[float64]{NewScatter[float64](p), NewScatter[float64](p)}
		groups := []*Scatter[float32]{NewScatter[float32](p), NewScatter[float32](p)}
		for at := 0; at < n; {
			size := min(rapid.IntRange(1, 20).Draw(t, "block"), n-at)
			i := rapid.IntRange(0, 1).Draw(t, "part")
			b := append([]float32(nil), rows[at*p:(at+size)*p]...)
			parts[i].Add(Centre(b, p), groups[i], &scratch)
			at += size
		}
		parts[0].Merge(parts[1])
		groups[0].Merge(groups[1])
		if parts[0].N != n || groups[0].N != n {
			t.Fatalf("%d and %d observations, want %d", parts[0].N, groups[0].N, n)
		}
		equal(t, "mean", parts[0].Mean, mean, 1e-9)
		tolerance := 3e-5 * float64(n)
		square, between := parts[0].Square(0, p), parts[0].Between(0, p/2, p)
		for i := range p {
			for j := i; j < p; j++ {
				if got := square[i*p+j]; math.Abs(got-want[i*p+j]) > tolerance {
					t.Fatalf("scatter[%d, %d] = %v, want %v", i, j, got, want[i*p+j])
				}
				if got := groups[0].Square(i, j+1)[j-i]; math.Abs(float64(got)-want[i*p+j]) > tolerance {
					t.Fatalf("float32 scatter[%d, %d] = %v, want %v", i, j, got, want[i*p+j])
				}
				if i < p/2 && j >= p/2 && between[i*(p-p/2)+j-p/2] != square[i*p+j] {
					t.Fatalf("between and square differ at [%d, %d]", i, j)
				}
			}
		}
	})
}

func TestCentreShowsWhatIsNotFinite(t *testing.T) {
	t.Parallel()
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		rows := []float32{1, 2, 3, 4, 5, 6}
		rows[3] = float32(bad)
		b := Centre(rows, 2)
		if b.mean[0] != 3 || !(math.IsNaN(b.mean[1]) || math.IsInf(b.mean[1], 0)) {
			t.Errorf("means %v with %v among the second variable", b.mean, bad)
		}
	}
}

func TestCrossPairsByTheGivenPermutation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		d := rapid.IntRange(1, 5).Draw(t, "d")
		var scratch Scratch
		crosses := []*Cross{NewCross(d), NewCross(d)}
		var paired []float32 // the pairs as observations of (x, y)
		for block := range 4 {
			n := rapid.IntRange(1, 9).Draw(t, "n")
			rows, partner := gaussian(g, n, 2*d, 2), g.Perm(n)
			for i, j := range partner {
				paired = append(paired, rows[i*2*d:i*2*d+d]...)
				paired = append(paired, rows[j*2*d+d:(j+1)*2*d]...)
			}
			crosses[block%2].Add(Centre(rows, 2*d), partner, &scratch)
		}
		c := crosses[0]
		c.Merge(crosses[1])
		mean, want := textbook(paired, 2*d)
		equal(t, "mean", c.Mean, mean, 1e-12)
		for i := range d {
			equal(t, "cross", c.Data[i*d:(i+1)*d], want[i*2*d+d:(i+1)*2*d], 1e-4)
		}
	})
}

func TestStatesComeBack(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 1))
	s, f, c := NewScatter[float64](6), NewScatter[float32](6), NewCross(3)
	b := Centre(gaussian(g, 10, 6, 1), 6)
	s.Add(b, f, new(Scratch))
	c.Add(b, g.Perm(10), new(Scratch))
	w := state.NewWriter("test", 1)
	s.Write(w)
	f.Write(w)
	c.Write(w)
	s2, f2, c2 := NewScatter[float64](6), NewScatter[float32](6), NewCross(3)
	r, err := state.NewReader(w.Bytes(), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	s2.Read(r)
	f2.Read(r)
	c2.Read(r)
	if err := r.Close(); err != nil {
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
		t.Fatal("a state read back differs")
	}
	r, err = state.NewReader(w.Bytes(), "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	NewScatter[float64](7).Read(r)
	if r.Close() == nil {
		t.Fatal("a scatter of 6 variables was read as one of 7")
	}
}

func TestLeadingKeepsTheFraction(t *testing.T) {
	t.Parallel()
	// A known spectrum in a known basis: rotations of diag(50, 30, 15, 4, 1).
	spectrum := []float64{50, 30, 15, 4, 1}
	for _, c := range []struct {
		fraction float64
		k        int
	}{{0.4, 1}, {0.49, 1}, {0.51, 2}, {0.79, 2}, {0.94, 3}, {0.99, 4}, {0.991, 5}, {1, 5}} {
		a, basis := rotated(spectrum)
		s, err := Leading(a, 5, c.fraction)
		if err != nil {
			t.Fatal(err)
		}
		if s.K != c.k {
			t.Errorf("fraction %v: dimension %d, want %d", c.fraction, s.K, c.k)
			continue
		}
		for j := range s.K {
			if math.Abs(s.Values[j]-spectrum[j]) > 1e-12 {
				t.Errorf("eigenvalue %d is %v, want %v", j, s.Values[j], spectrum[j])
			}
			if dot := math.Abs(mat.Dot(s.Basis.ColView(j), basis.ColView(j))); math.Abs(dot-1) > 1e-12 {
				t.Errorf("eigenvector %d has cosine %v with the true one", j, dot)
			}
		}
	}
}

// rotated is Q diag(spectrum) Qᵀ, upper triangle, for a random orthogonal Q.
func rotated(spectrum []float64) ([]float64, *mat.Dense) {
	d := len(spectrum)
	g := rand.New(rand.NewPCG(3, 4))
	x := mat.NewDense(d, d, nil)
	for i := range d * d {
		x.Set(i/d, i%d, g.NormFloat64())
	}
	var qr mat.QR
	qr.Factorize(x)
	var q, a mat.Dense
	qr.QTo(&q)
	a.Product(&q, mat.NewDiagDense(d, spectrum), q.T())
	out := make([]float64, d*d)
	for i := range d {
		for j := i; j < d; j++ {
			out[i*d+j] = a.At(i, j)
		}
	}
	return out, &q
}

func TestLeadingLeavesZerosOut(t *testing.T) {
	t.Parallel()
	a, _ := rotated([]float64{2, 1, 0, 0, 0, 0})
	if s, err := Leading(a, 6, 1); err != nil || s.K != 2 {
		t.Errorf("rank 2, all of the variance: dimension %d, %v", s.K, err)
	}
	if s, err := Leading(make([]float64, 9), 3, 0.99); err != nil || s.K != 0 || s.Basis != nil {
		t.Errorf("no variance: %+v, %v", s, err)
	}
}

// canonicalOf is the CCA of observations laid end to end.
func canonicalOf(x, y *mat.Dense) (CCA, error) {
	_, p := x.Dims()
	_, q := y.Dims()
	centre := func(m *mat.Dense) {
		rows, cols := m.Dims()
		for j := range cols {
			mean := mat.Sum(m.ColView(j)) / float64(rows)
			for i := range rows {
				m.Set(i, j, m.At(i, j)-mean)
			}
		}
	}
	centre(x)
	centre(y)
	xx, yy := mat.NewSymDense(p, nil), mat.NewSymDense(q, nil)
	var xy mat.Dense
	xx.SymOuterK(1, x.T())
	yy.SymOuterK(1, y.T())
	xy.Mul(x.T(), y)
	return Pair{XX: xx, YY: yy, XY: &xy}.Canonical()
}

func normal(g *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows * cols {
		m.Set(i/cols, i%cols, g.NormFloat64())
	}
	return m
}

func TestCanonicalCorrelationsDoNotSeeLinearMaps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, q := rapid.IntRange(1, 5).Draw(t, "p"), rapid.IntRange(1, 5).Draw(t, "q")
		x := normal(g, 40, p)
		y := normal(g, 40, q)
		for i := range 40 {
			y.Set(i, 0, y.At(i, 0)+2*x.At(i, 0))
		}
		before, err := canonicalOf(mat.DenseCopyOf(x), mat.DenseCopyOf(y))
		if err != nil {
			t.Fatal(err)
		}
		m := normal(g, p, p)
		for i := range p {
			m.Set(i, i, m.At(i, i)+6) // well away from singular
		}
		var mixed mat.Dense
		mixed.Mul(x, m)
		after, err := canonicalOf(&mixed, y)
		if err != nil {
			t.Fatal(err)
		}
		if len(before.Rho) != min(p, q) {
			t.Fatalf("%d correlations for %d and %d variables", len(before.Rho), p, q)
		}
		equal(t, "correlations after a linear map", after.Rho, before.Rho, 1e-9)
	})
}

// The canonical variates Wᵀ x and Vᵀ y have unit variance, and their correlations are rho on the diagonal, zero off it.
func TestCanonicalVectorsAttainTheCorrelations(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(5, 6))
	x, y := normal(g, 50, 4), normal(g, 50, 3)
	for i := range 50 {
		y.Set(i, 1, y.At(i, 1)-x.At(i, 2))
	}
	c, err := canonicalOf(x, y)
	if err != nil {
		t.Fatal(err)
	}
	var p, q, pq, pp mat.Dense
	p.Mul(x, c.W)
	q.Mul(y, c.V)
	pq.Mul(p.T(), &q)
	pp.Mul(p.T(), &p)
	for i := range 3 {
		for j := range 3 {
			wantPQ, wantPP := 0.0, 0.0
			if i == j {
				wantPQ, wantPP = c.Rho[i], 1
			}
			if math.Abs(pq.At(i, j)-wantPQ) > 1e-12 || math.Abs(pp.At(i, j)-wantPP) > 1e-12 {
				t.Errorf("[%d, %d]: %v and %v, want %v and %v", i, j, pq.At(i, j), pp.At(i, j), wantPQ, wantPP)
			}
		}
	}
	if c.Rho[0] < c.Rho[1] || c.Rho[1] < c.Rho[2] {
		t.Errorf("not descending: %v", c.Rho)
	}
}

func TestCosinesAreTakenInTheCommonSpace(t *testing.T) {
	t.Parallel()
	// Two planes in three dimensions that share the first axis; vectors at 30 degrees within each.
	c := CCA{Rho: []float64{1}, W: mat.NewDense(2, 1, []float64{math.Cos(math.Pi / 6), math.Sin(math.Pi / 6)}), V: mat.NewDense(2, 1, []float64{-2, 0})}
	overlap := mat.NewDense(2, 2, []float64{1, 0, 0, 0})
	if got := c.Cosines(Pair{Overlap: overlap})[0]; math.Abs(got-math.Cos(math.Pi/6)) > 1e-15 {
		t.Errorf("cosine %v", got)
	}
}

func TestDependentVariablesAreAnError(t *testing.T) {
	t.Parallel()
	one := mat.NewSymDense(2, []float64{1, 1, 1, 1})
	p := Pair{XX: one, YY: mat.NewSymDense(1, []float64{1}), XY: mat.NewDense(2, 1, []float64{0.5, 0.5})}
	if _, err := p.Canonical(); err == nil || errors.Is(err, ErrNotConverged) {
		t.Errorf("error %v", err)
	}
}

// Products are computed tile by tile; a scatter of more variables than a tile has must not show it.
func TestScattersOfSeveralTiles(t *testing.T) {
	t.Parallel()
	const d, n = tile/2 + 30, 4
	g := rand.New(rand.NewPCG(7, 8))
	rows := gaussian(g, n, 2*d, 1)
	mean, want := textbook(rows, 2*d)
	s, part := NewScatter[float64](2*d), NewScatter[float32](2*d)
	s.Add(Centre(rows, 2*d), part, new(Scratch))
	for i := range 2 * d {
		if math.Abs(s.Mean[i]-mean[i]) > 1e-6 {
			t.Fatalf("mean %d is %v, want %v", i, s.Mean[i], mean[i])
		}
	}
	got, got32, between := s.Square(0, 2*d), part.Square(0, 2*d), s.Between(0, d, 2*d)
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

func TestCrossesOfSeveralTiles(t *testing.T) {
	t.Parallel()
	const d, n = tile + 30, 3
	rows := gaussian(rand.New(rand.NewPCG(7, 8)), n, 2*d, 0)
	original := append([]float32(nil), rows...)
	c := NewCross(d)
	c.Add(Centre(rows, 2*d), []int{1, 2, 0}, new(Scratch))
	mean := make([]float64, 2*d)
	for i := range n {
		for j := range mean {
			mean[j] += float64(original[i*2*d+j]) / n
		}
	}
	for _, at := range [][2]int{{0, 0}, {0, d - 1}, {d - 1, 0}, {d - 1, d - 1}, {tile - 1, tile}, {tile, tile - 1}} {
		var want float64
		for i := range n {
			partner := (i + 1) % n
			want += (float64(original[i*2*d+at[0]]) - mean[at[0]]) * (float64(original[partner*2*d+d+at[1]]) - mean[d+at[1]])
		}
		if got := c.Data[at[0]*d+at[1]]; math.Abs(got-want) > 1e-5 {
			t.Errorf("cross%v = %v, want %v", at, got, want)
		}
	}
}

// framed is a frame with all that it needs, of correlated x and y of d variables each.
func framed(t *testing.T, rows []float32, d int, fraction float64) (Frame, Whole, *Scatter[float64]) {
	t.Helper()
	s := NewScatter[float64](2 * d)
	s.Add(Centre(append([]float32(nil), rows...), 2*d), nil, new(Scratch))
	x, err := Leading(s.Square(0, d), d, fraction)
	if err != nil {
		t.Fatal(err)
	}
	y, err := Leading(s.Square(d, 2*d), d, fraction)
	if err != nil {
		t.Fatal(err)
	}
	f := NewFrame(x, y)
	return f, f.Whole(s.Between(0, d, 2*d)), s
}

// decaying is n observations of (x, y) with a decaying spectrum: y follows x in part.
func decaying(n, d int) []float32 {
	g := rand.New(rand.NewPCG(9, 9))
	rows := make([]float32, n*2*d)
	for i := range n {
		row := rows[i*2*d : (i+1)*2*d]
		for j := range d {
			scale := float32(math.Exp(-float64(j) / 3))
			row[j] = scale*float32(g.NormFloat64()) + 2
			row[d+j] = row[j] + scale*float32(g.NormFloat64())
		}
	}
	return rows
}

// While the margin reaches over the whole space, leaving a part out is exact: the same as a frame of the other observations alone.
func TestWithoutIsExactWithinTheMargin(t *testing.T) {
	t.Parallel()
	const n, d = 200, 6
	rows := decaying(n, d)
	for _, fraction := range []float64{0.8, 0.95, 1} {
		f, whole, all := framed(t, rows, d, fraction)
		for _, cut := range []int{1, 20, 60} {
			part := NewScatter[float32](2 * d)
			NewScatter[float64](2*d).Add(Centre(append([]float32(nil), rows[:cut*2*d]...), 2*d), part, new(Scratch))
			p, err := f.Without(whole, all, part)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			g, w, _ := framed(t, rows[cut*2*d:], d, fraction)
			q := g.Leading(w)
			want, err := q.Canonical()
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Rho) != len(want.Rho) {
				t.Fatalf("fraction %v, %d left out: rank %d, want %d", fraction, cut, len(got.Rho), len(want.Rho))
			}
			cos, exact := got.Cosines(p), want.Cosines(q)
			for i := range got.Rho {
				if math.Abs(got.Rho[i]-want.Rho[i]) > 1e-5 || math.Abs(cos[i]-exact[i]) > 1e-4 {
					t.Errorf("fraction %v, %d left out: correlation %v and cosine %v, want %v and %v", fraction, cut, got.Rho[i], cos[i], want.Rho[i], exact[i])
				}
			}
		}
	}
}

func TestWithoutAllVarianceIsAnError(t *testing.T) {
	t.Parallel()
	const n, d = 40, 3
	rows := decaying(n, d)
	for i := range 30 * 2 * d {
		rows[i+10*2*d] = 1 // only the first ten observations vary
	}
	f, whole, all := framed(t, rows, d, 0.99)
	part := NewScatter[float32](2 * d)
	NewScatter[float64](2*d).Add(Centre(append([]float32(nil), rows[:10*2*d]...), 2*d), part, new(Scratch))
	p, err := f.Without(whole, all, part)
	if err == nil {
		_, err = p.Canonical()
	}
	if err == nil {
		t.Error("no error where nothing varies")
	}
}

func TestDecomposeTellsBothSides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rows, cols := rapid.IntRange(1, 8).Draw(t, "rows"), rapid.IntRange(1, 8).Draw(t, "cols")
		k := normal(g, rows, cols)
		p, s, q, err := decompose(k)
		if err != nil {
			t.Fatal(err)
		}
		var back mat.Dense
		back.Product(p, mat.NewDiagDense(len(s), s), q.T())
		if len(s) != min(rows, cols) || !mat.EqualApprox(&back, k, 1e-9) {
			t.Fatalf("P diag(s) Qᵀ is not the %d x %d matrix", rows, cols)
		}
	})
}
