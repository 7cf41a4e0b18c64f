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

// checkEqual checks that elements differ by at most tolerance.
func checkEqual(t rapid.TB, what string, got, want []float64, tolerance float64) {
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}
