package linalg

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

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
	if got := c.Cosines(overlap)[0]; math.Abs(got-math.Cos(math.Pi/6)) > 1e-15 {
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

// At the ranks that a subspace has, At is Leading in single precision.
func TestAtTheRanksIsLeading(t *testing.T) {
	t.Parallel()
	whole, _ := framed(t, decaying(200, 6), 6, 0.95)
	want, exact, err := whole.Leading().Correlations()
	if err != nil {
		t.Fatal(err)
	}
	rho, cos, err := whole.At(whole.frame.x.K, whole.frame.y.K).Correlations()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "correlations", rho, want, 1e-5)
	equal(t, "cosines", cos, exact, 1e-4)
	if rho, _, err := whole.At(1, 1).Correlations(); err != nil || len(rho) != 1 {
		t.Errorf("%d correlations of one axis with one (%v)", len(rho), err)
	}
}

func TestSingleIsWholeInSinglePrecision(t *testing.T) {
	t.Parallel()
	const n, d = 200, 6
	whole, all := framed(t, decaying(n, d), d, 0.95)
	want, exact, err := whole.Leading().Correlations()
	if err != nil {
		t.Fatal(err)
	}
	cross := all.Between(0, d, 2*d)
	for i := range cross {
		cross[i] /= 4
	}
	rho, cos, err := whole.frame.Single(cross, 4).Correlations()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "correlations", rho, want, 1e-5)
	equal(t, "cosines", cos, exact, 1e-4)
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

// The three ways to correlations agree: by Cholesky factors, by scaling what is diagonal, and in float32.
func TestCorrelationsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p, q := rapid.IntRange(1, 7).Draw(t, "p"), rapid.IntRange(1, 7).Draw(t, "q")
		x, y := normal(g, 60, p), normal(g, 60, q)
		shared := normal(g, 60, 1)
		for i := range 60 {
			x.Set(i, 0, x.At(i, 0)+2*shared.At(i, 0))
			y.Set(i, 0, y.At(i, 0)+2*shared.At(i, 0))
		}
		var xy mat.Dense
		xy.Mul(x.T(), y)
		overlap := normal(g, p, q)
		overlap.Scale(0.1, overlap)
		for i := range p { // as unequal as the patterns of a layer are
			scaleRow(&xy, i, math.Exp(-float64(i)))
		}
		diagonal := Principal{XX: make([]float64, p), YY: make([]float64, q), XY: &xy, Overlap: overlap}
		full := Pair{XX: mat.NewSymDense(p, nil), YY: mat.NewSymDense(q, nil), XY: &xy, Overlap: overlap}
		for i := range p {
			diagonal.XX[i] = 600 * math.Exp(-2*float64(i))
			full.XX.SetSym(i, i, diagonal.XX[i])
		}
		for i := range q {
			diagonal.YY[i] = 600
			full.YY.SetSym(i, i, 600)
		}
		narrowed := PairSingle{XX: toSingle(mat.DenseCopyOf(full.XX)), YY: toSingle(mat.DenseCopyOf(full.YY)), XY: toSingle(&xy), Overlap: toSingle(overlap)}
		rho, cos, err := full.Correlations()
		if err != nil {
			t.Fatal(err)
		}
		rho2, cos2, err := diagonal.Correlations()
		if err != nil {
			t.Fatal(err)
		}
		rho3, cos3, err := narrowed.Correlations()
		if err != nil {
			t.Fatal(err)
		}
		rho4, cos4, err := PrincipalSingle{XX: diagonal.XX, YY: diagonal.YY, XY: toSingle(&xy), Overlap: toSingle(overlap)}.Correlations()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "correlations by scaling", rho2, rho, 1e-9)
		equal(t, "correlations by scaling in float32", rho4, rho, 1e-4)
		equal(t, "correlations in float32", rho3, rho, 1e-4)
		for i := range rho { // a vector is as clear as its correlation is apart from its neighbours
			if gap := apart(rho, i); gap > 1e-3 && rho[i] > 1e-2 {
				equal(t, "cosine by scaling", cos2[i:i+1], cos[i:i+1], 1e-8)
				equal(t, "cosine in float32", cos3[i:i+1], cos[i:i+1], 1e-4/gap/rho[i])
				equal(t, "cosine by scaling in float32", cos4[i:i+1], cos[i:i+1], 1e-4/gap/rho[i])
			}
		}
	})
}

func scaleRow(m *mat.Dense, i int, by float64) {
	for j := range m.RawRowView(i) {
		m.RawRowView(i)[j] *= by
	}
}

// apart is how far a correlation is from the others, 1 where there are none.
func apart(values []float64, i int) float64 {
	gap := 1.0
	for j, v := range values {
		if j != i {
			gap = min(gap, math.Abs(v-values[i]))
		}
	}
	return gap
}

// The float32 decompositions of a library and those that gonum's float64 stands in for agree.
func TestSingleDecompositionsAgree(t *testing.T) {
	t.Parallel()
	fast := fastLAPACK{lib: native(t)}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(0, 9).Draw(t, "n")
		x := normal(g, n+3, max(n, 1))
		var product mat.Dense
		product.Mul(x.T(), x)
		a := toSingle(&product).Data[:n*n]
		for _, l := range []singleLAPACK{fast, byDouble{}} {
			c := append([]float32(nil), a...)
			if !l.cholesky(c, n, max(n, 1)) {
				t.Fatal("not positive definite")
			}
			v := append([]float32(nil), a...)
			values, ok := l.eigen(v, n, new(workspace))
			if !ok {
				t.Fatal("not converged")
			}
			for i := range n {
				for j := i; j < n; j++ {
					var tt, vv float64
					for k := range n {
						if k <= i {
							tt += float64(c[k*n+i]) * float64(c[k*n+j])
						}
						vv += float64(values[k]) * float64(v[k*n+i]) * float64(v[k*n+j])
					}
					want := float64(a[i*n+j])
					if math.Abs(tt-want) > 1e-4 || math.Abs(vv-want) > 1e-4 {
						t.Fatalf("%T: [%d, %d] is %v and %v, want %v", l, i, j, tt, vv, want)
					}
				}
			}
		}
		indefinite := []float32{1, 2, 2, 1}
		if fast.cholesky(indefinite, 2, 2) {
			t.Fatal("an indefinite matrix has a factor")
		}
	})
}
