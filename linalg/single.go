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
	XX, YY  blas32.General // p x p and q x q, symmetric, of which the upper triangles count
	XY      blas32.General // p x q
	Overlap blas32.General // p x q: the inner products of the axes of x with those of y

	work *workspace // where there is one
}

// Correlations returns what Pair.Correlations does. The variables are scaled to unit variance
// first, so that rounding is as small beside a pattern of little variance as beside one of much. XX, YY and XY are used up.
func (p PairSingle) Correlations() (rho, cos []float64, err error) {
	sx, sy := scales(p.XX), scales(p.YY)
	l, okx := factorSingle(scaleTriangle(p.XX, sx))
	m, oky := factorSingle(scaleTriangle(p.YY, sy))
	if !okx || !oky {
		return nil, nil, notDefinite(p.XX.Rows, p.YY.Rows)
	}
	k := scale(p.XY, sx, sy)
	blas32.Trsm(blas.Left, blas.Trans, 1, l, k)
	blas32.Trsm(blas.Right, blas.NoTrans, 1, m, k)
	work := orNew(p.work)
	left, rho, right, err := decomposeSingle(k, work)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", p.XX.Rows, p.YY.Rows, err)
	}
	blas32.Trsm(blas.Right, blas.Trans, 1, l, left)
	blas32.Trsm(blas.Right, blas.Trans, 1, m, right)
	rho, cos = turned(left, rho, right, sx, sy, p.Overlap, work)
	return rho, cos, nil
}

// A PrincipalSingle is a Principal in float32, but for the diagonals.
type PrincipalSingle struct {
	XX, YY      []float64
	XY, Overlap blas32.General

	work *workspace // where there is one
}

// Correlations returns what Pair.Correlations does. XY is used up.
func (p PrincipalSingle) Correlations() (rho, cos []float64, err error) {
	sx, sy := scalesOf(p.XX), scalesOf(p.YY)
	work := orNew(p.work)
	left, rho, right, err := decomposeSingle(scale(p.XY, sx, sy), work)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", len(sx), len(sy), err)
	}
	rho, cos = turned(left, rho, right, sx, sy, p.Overlap, work)
	return rho, cos, nil
}

func orNew(w *workspace) *workspace {
	if w == nil {
		return new(workspace)
	}
	return w
}

// turned are the correlations, descending, and the cosines of the vectors, which are rows and in the order of ascending
// correlations, once their variables are scaled back.
func turned(left blas32.General, rho []float64, right blas32.General, sx, sy []float32, overlap blas32.General, work *workspace) (descending, cos []float64) {
	scaleColumns(left, sx)
	scaleColumns(right, sy)
	turned := work.matrix(right.Rows, overlap.Rows)
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
func decomposeSingle(k blas32.General, work *workspace) (p blas32.General, rho []float64, q blas32.General, err error) {
	wide := k.Rows < k.Cols
	inner, outer := blas.Trans, blas.Trans
	if wide {
		inner, outer = blas.NoTrans, blas.NoTrans
	}
	r, other := min(k.Rows, k.Cols), max(k.Rows, k.Cols)
	small := work.matrix(r, r)
	blas32.Syrk(inner, 1, k, 0, blas32.Symmetric{Uplo: blas.Upper, N: r, Stride: r, Data: small.Data})
	values, ok := lapack32.eigen(small.Data, r, work)
	if !ok {
		return p, nil, q, ErrNotConverged
	}
	large := work.matrix(r, other)
	blas32.Gemm(blas.NoTrans, outer, 1, small, k, 0, large)
	rho = unscale(large, values)
	if wide {
		return small, rho, large, nil
	}
	return large, rho, small, nil
}

// unscale divides rows by the roots of their squared lengths, ascending, and returns the roots. Rows that are too short to have a
// direction become zero.
func unscale(rows blas32.General, squares []float32) []float64 {
	lengths := make([]float64, len(squares))
	for i, v := range squares {
		lengths[i] = math.Sqrt(max(float64(v), 0))
	}
	floor := smallestSingle * lengths[len(lengths)-1]
	for i, r := range lengths {
		var scale float32
		if r > floor {
			scale = float32(1 / r)
		}
		blas32.Scal(scale, blas32.Vector{N: rows.Cols, Inc: 1, Data: rowOf(rows, i)})
	}
	return lengths
}

// smallestSingle is smallest in float32.
const smallestSingle = 1e-3

// singleLAPACK are the decompositions in float32, which gonum does not have.
type singleLAPACK interface {
	// cholesky replaces the upper triangle of an n x n matrix, its rows stride apart, by its factor T, A = Tᵀ T; false where
	// there is none.
	cholesky(a []float32, n, stride int) bool
	// eigen returns the eigenvalues, ascending, of a symmetric n x n matrix of which the upper triangle is given, and
	// puts its eigenvectors in the place of its rows.
	eigen(a []float32, n int, work *workspace) (values []float32, ok bool)
}

// lapack32 is what computes; Accelerate sets it.
var lapack32 singleLAPACK = byDouble{}

// byDouble computes in float64, by what is registered there.
type byDouble struct{}

func (byDouble) cholesky(a []float32, n, stride int) bool {
	wide := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			wide[i*n+j] = float64(a[i*stride+j])
		}
	}
	_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: wide})
	for i := range n {
		narrow(a[i*stride+i:i*stride+n], wide[i*n+i:(i+1)*n])
	}
	return ok
}

func (byDouble) eigen(a []float32, n int, _ *workspace) ([]float32, bool) {
	if n == 0 {
		return nil, true
	}
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
	ok = lapack32.cholesky(a.Data, a.Cols, a.Stride)
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

// scaleTriangle replaces the upper triangle of A by that of diag(by) A diag(by), and returns it.
func scaleTriangle(a blas32.General, by []float32) blas32.General {
	for i, s := range by {
		row := rowOf(a, i)[i:]
		for j, v := range row {
			row[j] = s * v * by[i+j]
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

func dot(a, b []float32) float64 {
	return float64(blas32.Dot(blas32.Vector{N: len(a), Inc: 1, Data: a}, blas32.Vector{N: len(b), Inc: 1, Data: b}))
}
