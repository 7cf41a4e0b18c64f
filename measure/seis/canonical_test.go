package seis

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/linalg"
)

// TestLeadingKeepsTheFraction checks that leading returns the fewest leading eigenvectors of a
// matrix that hold a fraction of the sum of its eigenvalues.
func TestLeadingKeepsTheFraction(t *testing.T) {
	t.Parallel()
	// The eigenvalues sum to 100, so the first two hold 0.8 of the sum.
	spectrum := []float64{50, 30, 15, 4, 1}
	for _, c := range []struct {
		fraction float64
		k        int // dimension of the subspace
	}{{0.4, 1}, {0.49, 1}, {0.51, 2}, {0.79, 2}, {0.94, 3}, {0.99, 4}, {0.991, 5}, {1, 5}} {
		a, basis := rotated(spectrum)
		s, err := leading(a, 5, c.fraction)
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
			if dot := math.Abs(mat.Dot(s.basis.ColView(j), basis.ColView(j))); math.Abs(dot-1) > 1e-12 {
				t.Errorf("eigenvector %d has cosine %v with the true one", j, dot)
			}
		}
	}
}

// rotated returns the upper triangle of Q diag(spectrum) Qᵀ for a random orthogonal Q, and Q.
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
	if s, err := leading(a, 6, 1); err != nil || s.K != 2 {
		t.Errorf("rank 2, all of the variance: dimension %d, %v", s.K, err)
	}
	if s, err := leading(make([]float64, 9), 3, 0.99); err != nil || s.K != 0 || s.basis != nil {
		t.Errorf("no variance: %+v, %v", s, err)
	}
}

// normal returns independent standard normal values.
func normal(g *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows * cols {
		m.Set(i/cols, i%cols, g.NormFloat64())
	}
	return m
}

func TestCosinesAreTakenInTheCommonSpace(t *testing.T) {
	t.Parallel()
	// x and y vary in two orthogonal planes that share their first axis. w is at 30 degrees to it
	// in the plane of x, and v is a negative multiple of it in the plane of y. overlap holds the
	// inner products of the axes of x with those of y.
	w, v := mat.NewDense(2, 1, []float64{math.Cos(math.Pi / 6), math.Sin(math.Pi / 6)}), mat.NewDense(2, 1, []float64{-2, 0})
	overlap := mat.NewDense(2, 2, []float64{1, 0, 0, 0})
	if got := cosines(w, v, overlap)[0]; math.Abs(got-math.Cos(math.Pi/6)) > 1e-15 {
		t.Errorf("cosine %v, want that of 30 degrees", got)
	}
}

// Two variables that are equal have a singular scatter matrix.
func TestDependentVariablesAreAnError(t *testing.T) {
	t.Parallel()
	equalVariables := mat.NewDense(2, 2, []float64{1, 1, 1, 1})
	m := singleMoments{xx: toSingle(equalVariables), yy: toSingle(mat.NewDense(1, 1, []float64{1})), xy: toSingle(mat.NewDense(2, 1, []float64{0.5, 0.5})), work: new(workspace)}
	if _, _, err := m.correlations(); err == nil || errors.Is(err, linalg.ErrNotConverged) {
		t.Errorf("error %v, want one of a scatter matrix that is not positive definite", err)
	}
}

// With the ranks of the leading subspaces, atRanks returns in float32 what leading does in float64.
// coordinatesOf (see subsets_test.go) returns the second moments of 200 observations of x and y, 6
// variables each, in the leading subspaces, which hold 95 % of the variance.
func TestAtRanksIsLeading(t *testing.T) {
	t.Parallel()
	c, _ := coordinatesOf(t, decaying(200, 6), 6, 0.95)
	wantRho, wantCos, err := c.leading().correlations()
	if err != nil {
		t.Fatal(err)
	}
	rho, cos, err := c.atRanks(c.bases.x.K, c.bases.y.K).correlations()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "correlations", rho, wantRho, 1e-5)
	equal(t, "cosines", cos, wantCos, 1e-4)
	if rho, _, err := c.atRanks(1, 1).correlations(); err != nil || len(rho) != 1 {
		t.Errorf("%d correlations of one axis with one, want 1; error %v", len(rho), err)
	}
}

// shuffled takes the cross moments of other pairs (x of one sample, y of another) and a factor. For
// a quarter of the moments of the pairs themselves and the factor 4, it returns in float32 what
// leading does in float64.
func TestShuffledIsLeadingInSinglePrecision(t *testing.T) {
	t.Parallel()
	const n, d = 200, 6
	c, scatter := coordinatesOf(t, decaying(n, d), d, 0.95)
	wantRho, wantCos, err := c.leading().correlations()
	if err != nil {
		t.Fatal(err)
	}
	cross := scatter.Between(0, d, 2*d)
	for i := range cross {
		cross[i] /= 4
	}
	rho, cos, err := c.bases.shuffled(cross, 4).correlations()
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "correlations", rho, wantRho, 1e-5)
	equal(t, "cosines", cos, wantCos, 1e-4)
}

// The implementations of canonical correlations agree: by Cholesky factors (referenceCorrelations
// in subsets_test.go), by scaling the axes where the scatter matrices xx and yy are diagonal, and
// both of these in float32.
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
		for i := range p { // variances decay as those of the principal components of a layer do
			scaleRow(&xy, i, math.Exp(-float64(i)))
		}
		diagonal := principalMoments{xx: make([]float64, p), yy: make([]float64, q), xy: &xy, overlap: overlap}
		fullX, fullY := mat.NewDense(p, p, nil), mat.NewDense(q, q, nil)
		// 600 is twice the expected scatter of the first column, so the correlations are below 1.
		for i := range p {
			diagonal.xx[i] = 600 * math.Exp(-2*float64(i))
			fullX.Set(i, i, diagonal.xx[i])
		}
		for i := range q {
			diagonal.yy[i] = 600
			fullY.Set(i, i, 600)
		}
		narrowed := singleMoments{xx: toSingle(fullX), yy: toSingle(fullY), xy: toSingle(&xy), overlap: toSingle(overlap), work: new(workspace)}
		rho, cos, err := referenceCorrelations(fullX, fullY, &xy, overlap)
		if err != nil {
			t.Fatal(err)
		}
		rho2, cos2, err := diagonal.correlations()
		if err != nil {
			t.Fatal(err)
		}
		rho3, cos3, err := narrowed.correlations()
		if err != nil {
			t.Fatal(err)
		}
		rho4, cos4, err := principalSingleMoments{xx: diagonal.xx, yy: diagonal.yy, xy: toSingle(&xy), overlap: toSingle(overlap), work: new(workspace)}.correlations()
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "correlations by scaling", rho2, rho, 1e-9)
		equal(t, "correlations by scaling in float32", rho4, rho, 1e-4)
		equal(t, "correlations in float32", rho3, rho, 1e-4)
		for i := range rho { // the vectors of close correlations are ill-conditioned
			if gap := gapAt(rho, i); gap > 1e-3 && rho[i] > 1e-2 {
				equal(t, "cosine by scaling", cos2[i:i+1], cos[i:i+1], 1e-8)
				equal(t, "cosine in float32", cos3[i:i+1], cos[i:i+1], 1e-4/gap/rho[i])
				equal(t, "cosine by scaling in float32", cos4[i:i+1], cos[i:i+1], 1e-4/gap/rho[i])
			}
		}
	})
}

// scaleRow multiplies row i of a matrix by a factor.
func scaleRow(m *mat.Dense, i int, by float64) {
	for j := range m.RawRowView(i) {
		m.RawRowView(i)[j] *= by
	}
}

// gapAt returns the distance of value i to the nearest other one, at most 1.
func gapAt(values []float64, i int) float64 {
	gap := 1.0
	for j, v := range values {
		if j != i {
			gap = min(gap, math.Abs(v-values[i]))
		}
	}
	return gap
}
