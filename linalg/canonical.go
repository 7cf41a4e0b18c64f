package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// A CCA holds canonical correlations and the vectors that attain them.
type CCA struct {
	Rho  []float64  // r = min(p, q) canonical correlations, descending, in [0, 1]
	W, V *mat.Dense // p x r and q x r: the canonical variates are Wᵀ x and Vᵀ y
}

// Canonical returns the canonical correlations of p variables x and q variables y, and their canonical vectors, from their
// scatters: xx is p x p and yy is q x q, positive definite; xy is p x q. With the Cholesky factors xx = L Lᵀ and yy = M Mᵀ,
//
//	L⁻¹ xy M⁻ᵀ = P diag(rho) Qᵀ,  W = L⁻ᵀ P,  V = M⁻ᵀ Q.
//
// The inputs are kept. It is an error if a scatter is not positive definite, that is, if its variables depend on each other.
func Canonical(xx, yy mat.Symmetric, xy *mat.Dense) (CCA, error) {
	p, q := xy.Dims()
	if xx.SymmetricDim() != p || yy.SymmetricDim() != q {
		panic(fmt.Sprintf("linalg: scatters of %d, %d and %d x %d variables", xx.SymmetricDim(), yy.SymmetricDim(), p, q))
	}
	l, okx := factor(xx)
	m, oky := factor(yy)
	if !okx || !oky {
		return CCA{}, fmt.Errorf("canonical correlations of %d and %d variables: their scatter is not positive definite", p, q)
	}
	k := mat.DenseCopyOf(xy)
	blas64.Trsm(blas.Left, blas.Trans, 1, l, k.RawMatrix())
	blas64.Trsm(blas.Right, blas.NoTrans, 1, m, k.RawMatrix())
	var svd mat.SVD
	if !svd.Factorize(k, mat.SVDThin) {
		return CCA{}, fmt.Errorf("canonical correlations of %d and %d variables: %w", p, q, ErrNotConverged)
	}
	c := CCA{Rho: svd.Values(nil), W: new(mat.Dense), V: new(mat.Dense)}
	svd.UTo(c.W)
	svd.VTo(c.V)
	blas64.Trsm(blas.Left, blas.NoTrans, 1, l, c.W.RawMatrix())
	blas64.Trsm(blas.Left, blas.NoTrans, 1, m, c.V.RawMatrix())
	for i, rho := range c.Rho {
		c.Rho[i] = min(max(rho, 0), 1) // rounding may carry it a little beyond
	}
	return c, nil
}

// factor returns the Cholesky factor of a symmetric matrix as its transpose, upper triangular; ok is false where the matrix is not
// positive definite.
func factor(a mat.Symmetric) (t blas64.Triangular, ok bool) {
	s := mat.NewSymDense(a.SymmetricDim(), nil)
	s.CopySym(a)
	return lapack64.Potrf(s.RawSymmetric())
}

// Cosines returns |<A w_i, B v_i>| / (|A w_i| |B v_i|) for orthonormal bases A and B of which only the overlap Aᵀ B, p x q, is needed:
// the absolute cosines of the canonical vectors in the space that both bases lie in.
func (c CCA) Cosines(overlap *mat.Dense) []float64 {
	var turned mat.Dense
	turned.Mul(overlap, c.V) // p x r
	cos := make([]float64, len(c.Rho))
	for i := range cos {
		w, v := c.W.ColView(i), c.V.ColView(i)
		norm := mat.Norm(w, 2) * mat.Norm(v, 2)
		cos[i] = min(math.Abs(mat.Dot(w, turned.ColView(i)))/norm, 1)
	}
	return cos
}
