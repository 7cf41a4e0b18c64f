package linalg

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// normal returns a matrix of values drawn from the standard normal distribution.
func normal(g *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows * cols {
		m.Set(i/cols, i%cols, g.NormFloat64())
	}
	return m
}

func TestDecomposeReconstructs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		rows, cols := rapid.IntRange(1, 8).Draw(t, "rows"), rapid.IntRange(1, 8).Draw(t, "cols")
		k := normal(g, rows, cols)
		p, s, q, err := Decompose(k)
		if err != nil {
			t.Fatal(err)
		}
		var product mat.Dense
		product.Product(p, mat.NewDiagDense(len(s), s), q.T())
		if len(s) != min(rows, cols) || !mat.EqualApprox(&product, k, 1e-9) {
			t.Fatalf("P diag(s) Qᵀ is not the decomposed %d x %d matrix", rows, cols)
		}
	})
}

// TestSingleDecompositions checks that decompositions in single precision (float32) restore their
// matrix, whether by a native library such as OpenBLAS or by gonum in float64. fastLibrary skips
// the test if there is no such library. The last argument of cholesky is the distance between rows.
func TestSingleDecompositions(t *testing.T) {
	t.Parallel()
	native := fastLAPACK{lib: fastLibrary(t)}
	rapid.Check(t, func(t *rapid.T) {
		g := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n := rapid.IntRange(0, 9).Draw(t, "n")
		x := normal(g, n+3, max(n, 1))
		var product mat.Dense
		product.Mul(x.T(), x)
		a := make([]float32, n*n)
		for i := range a {
			a[i] = float32(product.RawMatrix().Data[i])
		}
		for _, l := range []singleLAPACK{native, viaFloat64{}} {
			c := append([]float32(nil), a...) // overwritten by the upper triangular factor T
			if !l.cholesky(c, n, max(n, 1)) {
				t.Fatalf("%T: cholesky = false for a positive definite matrix", l)
			}
			v := append([]float32(nil), a...) // overwritten by the eigenvectors V, in rows
			values, ok := l.eigen(v, n)
			if !ok {
				t.Fatalf("%T: eigen does not converge", l)
			}
			for i := range n {
				for j := i; j < n; j++ {
					var byCholesky, byEigen float64
					for k := range n {
						if k <= i {
							byCholesky += float64(c[k*n+i]) * float64(c[k*n+j])
						}
						byEigen += float64(values[k]) * float64(v[k*n+i]) * float64(v[k*n+j])
					}
					want := float64(a[i*n+j])
					if math.Abs(byCholesky-want) > 1e-4 || math.Abs(byEigen-want) > 1e-4 {
						t.Fatalf("%T: element [%d, %d] of Tᵀ T = %v and of Vᵀ diag(values) V = %v, want %v", l, i, j, byCholesky, byEigen, want)
					}
				}
			}
		}
		indefinite := []float32{1, 2, 2, 1}
		if native.cholesky(indefinite, 2, 2) {
			t.Fatal("cholesky accepted an indefinite matrix")
		}
	})
}
