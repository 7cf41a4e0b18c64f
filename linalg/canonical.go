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
	W, V *mat.Dense // p x r and q x r: the canonical variates are Wᵀ x and Vᵀ y, of unit variance; those of correlations below 1e-8 may be zero
}

// A Pair holds the scatters of p variables x and q variables y, and how the axes of x and y lie to each other.
type Pair struct {
	XX, YY  *mat.SymDense // p x p and q x q
	XY      *mat.Dense    // p x q
	Overlap *mat.Dense    // p x q: the inner products of the axes of x with those of y
}

// Canonical returns the canonical correlations of x and y, and their canonical vectors; XX and YY must be positive
// definite. With their Cholesky factors XX = L Lᵀ and YY = M Mᵀ,
//
//	L⁻¹ XY M⁻ᵀ = P diag(rho) Qᵀ,  W = L⁻ᵀ P,  V = M⁻ᵀ Q.
//
// It is an error if a scatter is not positive definite, that is, if its variables depend on each other.
func (p Pair) Canonical() (CCA, error) {
	rows, cols := p.XY.Dims()
	l, okx := factor(p.XX)
	m, oky := factor(p.YY)
	if !okx || !oky {
		return CCA{}, notDefinite(rows, cols)
	}
	k := mat.DenseCopyOf(p.XY)
	blas64.Trsm(blas.Left, blas.Trans, 1, l, k.RawMatrix())
	blas64.Trsm(blas.Right, blas.NoTrans, 1, m, k.RawMatrix())
	var c CCA
	var err error
	if c.W, c.Rho, c.V, err = decompose(k); err != nil {
		return CCA{}, fmt.Errorf("canonical correlations of %d and %d variables: %w", rows, cols, err)
	}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, l, c.W.RawMatrix())
	blas64.Trsm(blas.Left, blas.NoTrans, 1, m, c.V.RawMatrix())
	return c.clipped(), nil
}

func notDefinite(p, q int) error {
	return fmt.Errorf("canonical correlations of %d and %d variables: their scatter is not positive definite", p, q)
}

// Correlations returns the canonical correlations, descending, and the cosine of each pair of canonical vectors.
func (p Pair) Correlations() (rho, cos []float64, err error) {
	c, err := p.Canonical()
	if err != nil {
		return nil, nil, err
	}
	return c.Rho, c.Cosines(p.Overlap), nil
}

// A Principal is a Pair whose x are uncorrelated with each other, and y likewise, as coordinates in the axes of principal
// subspaces are: XX and YY are given by their diagonals.
type Principal struct {
	XX, YY  []float64
	XY      *mat.Dense
	Overlap *mat.Dense
}

// Correlations returns what Pair.Correlations does; whitening takes a scaling of the axes in place of Cholesky factors.
func (p Principal) Correlations() (rho, cos []float64, err error) {
	sx, sy := inverseRoots(p.XX), inverseRoots(p.YY)
	k := mat.DenseCopyOf(p.XY)
	scaleRows(k, sx)
	for i := range sx {
		for j, row := 0, k.RawRowView(i); j < len(row); j++ {
			row[j] *= sy[j]
		}
	}
	var c CCA
	if c.W, c.Rho, c.V, err = decompose(k); err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", len(sx), len(sy), err)
	}
	scaleRows(c.W, sx)
	scaleRows(c.V, sy)
	return c.clipped().Rho, c.Cosines(p.Overlap), nil
}

func inverseRoots(variances []float64) []float64 {
	out := make([]float64, len(variances))
	for i, v := range variances {
		out[i] = 1 / math.Sqrt(v)
	}
	return out
}

func scaleRows(m *mat.Dense, by []float64) {
	for i, s := range by {
		row := m.RawRowView(i)
		for j := range row {
			row[j] *= s
		}
	}
}

// clipped is the CCA with correlations that rounding may have carried a little beyond [0, 1] put back.
func (c CCA) clipped() CCA {
	for i, rho := range c.Rho {
		c.Rho[i] = min(max(rho, 0), 1)
	}
	return c
}

// decompose returns the thin singular value decomposition P diag(rho) Qᵀ of a matrix by way of the eigenvectors of
// its smaller Gram matrix, which takes half the time. Singular values are right to about 1e-8 of the largest; the
// vectors on one side of smaller ones are zero.
func decompose(k *mat.Dense) (p *mat.Dense, rho []float64, q *mat.Dense, err error) {
	rows, cols := k.Dims()
	if rows < cols {
		q, rho, p, err = decompose(mat.DenseCopyOf(k.T()))
		return p, rho, q, err
	}
	gram := make([]float64, cols*cols)
	blas64.Syrk(blas.Trans, 1, k.RawMatrix(), 0, blas64.Symmetric{Uplo: blas.Upper, N: cols, Stride: cols, Data: gram})
	values, err := eigen(gram, cols)
	if err != nil {
		return nil, nil, nil, err
	}
	rho, q, p = reversed(values), largest(gram, cols, cols), new(mat.Dense)
	p.Mul(k, q)
	scale := make([]float64, cols)
	for i, v := range rho {
		rho[i] = math.Sqrt(max(v, 0))
		if rho[i] > smallest*rho[0] {
			scale[i] = 1 / rho[i]
		}
	}
	for i := range rows {
		row := p.RawRowView(i)
		for j := range row {
			row[j] *= scale[j]
		}
	}
	return p, rho, q, nil
}

// smallest is the part of the largest singular value below which decompose cannot tell one from zero.
const smallest = 1e-8

// factor returns the Cholesky factor of a symmetric matrix as its transpose, upper triangular; ok is false where the
// matrix is not positive definite.
func factor(a mat.Symmetric) (t blas64.Triangular, ok bool) {
	s := mat.NewSymDense(a.SymmetricDim(), nil)
	s.CopySym(a)
	return lapack64.Potrf(s.RawSymmetric())
}

// Cosines returns the absolute cosines of the canonical vectors in the space that the axes of x and y share: for
// orthonormal axes A and B, of which the overlap Aᵀ B (p x q) is all that is needed, |<A w_i, B v_i>| / (|w_i| |v_i|).
// Where a vector is zero, so is its cosine.
func (c CCA) Cosines(overlap *mat.Dense) []float64 {
	var turned mat.Dense
	turned.Mul(overlap, c.V) // p x r
	ww, vv, wv := columnDots(c.W, c.W), columnDots(c.V, c.V), columnDots(c.W, &turned)
	cos := make([]float64, len(c.Rho))
	for i := range cos {
		if norm := math.Sqrt(ww[i]) * math.Sqrt(vv[i]); norm > 0 {
			cos[i] = min(math.Abs(wv[i])/norm, 1)
		}
	}
	return cos
}

// columnDots are the inner products of each column of a with that of b.
func columnDots(a, b *mat.Dense) []float64 {
	rows, cols := a.Dims()
	out := make([]float64, cols)
	for i := range rows {
		x, y := a.RawRowView(i), b.RawRowView(i)
		for j := range out {
			out[j] += x[j] * y[j]
		}
	}
	return out
}
