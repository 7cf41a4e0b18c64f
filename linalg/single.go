package linalg

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// A PairSingle is a Pair in float32, for replicates: they differ from the whole by far more than float32 rounds, and
// many are wanted.
type PairSingle struct {
	XX, YY  blas32.General // p x p and q x q, symmetric, both triangles
	XY      blas32.General // p x q
	Overlap blas32.General // p x q: the inner products of the axes of x with those of y
}

// Correlations returns what Pair.Correlations does. The variables are scaled to unit variance
// first, so that rounding is as small beside a pattern of little variance as beside one of much. XX, YY and XY are used up.
func (p PairSingle) Correlations() (rho, cos []float64, err error) {
	sx, sy := scales(p.XX), scales(p.YY)
	l, okx := factorSingle(scale(p.XX, sx, sx))
	m, oky := factorSingle(scale(p.YY, sy, sy))
	if !okx || !oky {
		return nil, nil, notDefinite(p.XX.Rows, p.YY.Rows)
	}
	k := scale(p.XY, sx, sy)
	blas32.Trsm(blas.Left, blas.Trans, 1, l, k)
	blas32.Trsm(blas.Right, blas.NoTrans, 1, m, k)
	left, rho, right, err := decomposeSingle(k)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", p.XX.Rows, p.YY.Rows, err)
	}
	blas32.Trsm(blas.Right, blas.Trans, 1, l, left)
	blas32.Trsm(blas.Right, blas.Trans, 1, m, right)
	rho, cos = turned(left, rho, right, sx, sy, p.Overlap)
	return rho, cos, nil
}

// A PrincipalSingle is a Principal in float32, but for the diagonals.
type PrincipalSingle struct {
	XX, YY      []float64
	XY, Overlap blas32.General
}

// Correlations returns what Pair.Correlations does. XY is used up.
func (p PrincipalSingle) Correlations() (rho, cos []float64, err error) {
	sx, sy := scalesOf(p.XX), scalesOf(p.YY)
	scale(p.XY, sx, sy)
	left, rho, right, err := decomposeSingle(p.XY)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", len(sx), len(sy), err)
	}
	rho, cos = turned(left, rho, right, sx, sy, p.Overlap)
	return rho, cos, nil
}

// turned are the correlations, descending, and the cosines of the vectors, which are rows and in the order of ascending
// correlations, once their variables are scaled back.
func turned(left blas32.General, rho []float64, right blas32.General, sx, sy []float32, overlap blas32.General) (descending, cos []float64) {
	scaleColumns(left, sx)
	scaleColumns(right, sy)
	turned := newSingle(right.Rows, overlap.Rows)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, right, overlap, 0, turned)
	cos = make([]float64, len(rho))
	for i := range cos {
		w, v, t := rowOf(left, i), rowOf(right, i), rowOf(turned, i)
		if norm := math.Sqrt(dot(w, w) * dot(v, v)); norm > 0 {
			cos[i] = min(math.Abs(dot(w, t))/norm, 1)
		}
		rho[i] = min(rho[i], 1)
	}
	slices.Reverse(rho)
	slices.Reverse(cos)
	return rho, cos
}

// decomposeSingle is decompose in float32, with the singular values ascending and the vectors as rows: r x rows and r x
// cols.
func decomposeSingle(k blas32.General) (p blas32.General, rho []float64, q blas32.General, err error) {
	if k.Rows < k.Cols {
		q, rho, p, err = decomposeSingle(transposed(k))
		return p, rho, q, err
	}
	q = newSingle(k.Cols, k.Cols)
	blas32.Syrk(blas.Trans, 1, k, 0, blas32.Symmetric{Uplo: blas.Upper, N: q.Cols, Stride: q.Stride, Data: q.Data})
	values, ok := lapack32.eigen(q.Data, q.Cols)
	if !ok {
		return p, nil, q, ErrNotConverged
	}
	p = newSingle(q.Rows, k.Rows)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, q, k, 0, p)
	rho = make([]float64, len(values))
	for i, v := range values {
		rho[i] = math.Sqrt(max(float64(v), 0))
	}
	floor := smallestSingle * rho[len(rho)-1]
	for i, r := range rho {
		var scale float32
		if r > floor {
			scale = float32(1 / r)
		}
		blas32.Scal(scale, blas32.Vector{N: p.Cols, Inc: 1, Data: rowOf(p, i)})
	}
	return p, rho, q, nil
}

// smallestSingle is smallest in float32.
const smallestSingle = 1e-3

// singleLAPACK are the decompositions in float32, which gonum does not have.
type singleLAPACK interface {
	// cholesky replaces the upper triangle of an n x n matrix by its factor T, A = Tᵀ T; false where there is none.
	cholesky(a []float32, n int) bool
	// eigen returns the eigenvalues, ascending, of a symmetric n x n matrix of which the upper triangle is given, and
	// puts its eigenvectors in the place of its rows.
	eigen(a []float32, n int) (values []float32, ok bool)
}

// lapack32 is what computes; Accelerate sets it.
var lapack32 singleLAPACK = byDouble{}

// byDouble computes in float64, by what is registered there.
type byDouble struct{}

func (byDouble) cholesky(a []float32, n int) bool {
	wide := widened(a)
	_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: wide})
	narrow(a, wide)
	return ok
}

func (byDouble) eigen(a []float32, n int) ([]float32, bool) {
	wide := widened(a)
	values, err := eigen(wide, n)
	if err != nil {
		return nil, false
	}
	transpose(wide, n, n)
	narrow(a, wide)
	out := make([]float32, n)
	narrow(out, values)
	return out, true
}

func widened(a []float32) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v)
	}
	return out
}

func narrow(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}

func newSingle(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
}

func rowOf(m blas32.General, i int) []float32 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// factorSingle replaces a square matrix by its Cholesky factor as factor has it.
func factorSingle(a blas32.General) (t blas32.Triangular, ok bool) {
	ok = lapack32.cholesky(a.Data, a.Cols)
	return blas32.Triangular{Uplo: blas.Upper, Diag: blas.NonUnit, N: a.Cols, Stride: a.Stride, Data: a.Data}, ok
}

// scales are 1 over the square roots of a diagonal; 0 where that is not positive.
func scales(a blas32.General) []float32 {
	diagonal := make([]float64, a.Rows)
	for i := range diagonal {
		diagonal[i] = float64(a.Data[i*a.Stride+i])
	}
	return scalesOf(diagonal)
}

func scalesOf(diagonal []float64) []float32 {
	out := make([]float32, len(diagonal))
	for i, v := range diagonal {
		if v > 0 {
			out[i] = float32(1 / math.Sqrt(v))
		}
	}
	return out
}

// scale replaces A by diag(rows) A diag(cols), and returns it.
func scale(a blas32.General, rows, cols []float32) blas32.General {
	for i, s := range rows {
		row := rowOf(a, i)
		for j, v := range row {
			row[j] = s * v * cols[j]
		}
	}
	return a
}

func scaleColumns(a blas32.General, by []float32) {
	for i := range a.Rows {
		row := rowOf(a, i)
		for j, s := range by {
			row[j] *= s
		}
	}
}

func transposed(a blas32.General) blas32.General {
	out := newSingle(a.Cols, a.Rows)
	const side = 32 // tiles that stay in the cache on both sides
	for i0 := 0; i0 < a.Rows; i0 += side {
		for j0 := 0; j0 < a.Cols; j0 += side {
			for i := i0; i < min(i0+side, a.Rows); i++ {
				for j := j0; j < min(j0+side, a.Cols); j++ {
					out.Data[j*out.Stride+i] = a.Data[i*a.Stride+j]
				}
			}
		}
	}
	return out
}

func dot(a, b []float32) float64 {
	return float64(blas32.Dot(blas32.Vector{N: len(a), Inc: 1, Data: a}, blas32.Vector{N: len(b), Inc: 1, Data: b}))
}
