package seis

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// singleMoments are float32 scatters of coordinates x and y in two orthonormal bases. They serve
// replicates: there are many, which differ by far more than float32 rounding.
type singleMoments struct {
	xx, yy  blas32.General // p x p and q x q, symmetric, upper triangles
	xy      blas32.General // p x q
	overlap blas32.General // p x q: inner products of the axes of x with those of y

	work *workspace // memory that successive computations reuse
}

// correlations implements moments: it returns the canonical correlations and the cosines of the
// canonical vectors, the columns of W and V. With the Cholesky factors xx = Lᵀ L and yy = Mᵀ M,
//
//	L⁻ᵀ xy M⁻¹ = P diag(rho) Qᵀ,  W = L⁻¹ P,  V = M⁻¹ Q.
//
// Variables are scaled to unit variance first, so that small ones have no larger relative errors.
// xx, yy and xy are overwritten. It is an error if a scatter is not positive definite.
func (p singleMoments) correlations() (rho, cos []float64, err error) {
	sx, sy := scales(p.xx), scales(p.yy)
	l, okx := factorSingle(scaleTriangle(p.xx, sx))
	m, oky := factorSingle(scaleTriangle(p.yy, sy))
	if !okx || !oky {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: their scatter is not positive definite", p.xx.Rows, p.yy.Rows)
	}
	k := scale(p.xy, sx, sy)
	blas32.Trsm(blas.Left, blas.Trans, 1, l, k)
	blas32.Trsm(blas.Right, blas.NoTrans, 1, m, k)
	work := p.work
	left, rho, right, err := decomposeSingle(k, work)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", p.xx.Rows, p.yy.Rows, err)
	}
	blas32.Trsm(blas.Right, blas.Trans, 1, l, left)
	blas32.Trsm(blas.Right, blas.Trans, 1, m, right)
	rho, cos = scaledBack(left, rho, right, sx, sy, p.overlap, work)
	return rho, cos, nil
}

// principalSingleMoments are principalMoments in float32, but for the diagonals.
type principalSingleMoments struct {
	xx, yy      []float64
	xy, overlap blas32.General

	work *workspace
}

// correlations implements moments. xy is overwritten.
func (p principalSingleMoments) correlations() (rho, cos []float64, err error) {
	sx, sy := scalesOf(p.xx), scalesOf(p.yy)
	work := p.work
	left, rho, right, err := decomposeSingle(scale(p.xy, sx, sy), work)
	if err != nil {
		return nil, nil, fmt.Errorf("canonical correlations of %d and %d variables: %w", len(sx), len(sy), err)
	}
	rho, cos = scaledBack(left, rho, right, sx, sy, p.overlap, work)
	return rho, cos, nil
}

// scaledBack returns correlations, descending, and cosines of the canonical vectors, scaling by sx
// and sy undone. The vectors are rows by ascending correlation; overlap has the inner products of
// the axes.
func scaledBack(left blas32.General, rho []float64, right blas32.General, sx, sy []float32, overlap blas32.General, work *workspace) (descending, cos []float64) {
	scaleColumns(left, sx)
	scaleColumns(right, sy)
	inX := work.matrix(right.Rows, overlap.Rows)
	blas32.Gemm(blas.NoTrans, blas.Trans, 1, right, overlap, 0, inX)
	cos = make([]float64, len(rho))
	for i := range cos {
		w, v, t := rowOf(left, i), rowOf(right, i), rowOf(inX, i)
		if norm := math.Sqrt(dot(w, w) * dot(v, v)); norm > 0 {
			cos[i] = min(math.Abs(dot(w, t))/norm, 1)
		}
		rho[i] = min(rho[i], 1)
	}
	slices.Reverse(rho)
	slices.Reverse(cos)
	return rho, cos
}

// decomposeSingle is linalg.Decompose in float32: ascending singular values, vectors as rows, r x
// rows and r x cols.
func decomposeSingle(k blas32.General, work *workspace) (p blas32.General, rho []float64, q blas32.General, err error) {
	wide := k.Rows < k.Cols
	inner, outer := blas.Trans, blas.Trans
	if wide {
		inner, outer = blas.NoTrans, blas.NoTrans
	}
	r, other := min(k.Rows, k.Cols), max(k.Rows, k.Cols)
	small := work.matrix(r, r)
	blas32.Syrk(inner, 1, k, 0, blas32.Symmetric{Uplo: blas.Upper, N: r, Stride: r, Data: small.Data})
	values, ok := linalg.EigenSingle(small.Data, r)
	if !ok {
		return p, nil, q, linalg.ErrNotConverged
	}
	large := work.matrix(r, other)
	blas32.Gemm(blas.NoTrans, outer, 1, small, k, 0, large)
	rho = unscale(large, values)
	if wide {
		return small, rho, large, nil
	}
	return large, rho, small, nil
}

// unscale divides rows by their lengths, which it returns. squares has them squared, ascending;
// rows below smallestSingle of the longest become zero.
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

// smallestSingle is the fraction of the largest singular value below which decomposeSingle finds
// zeros only.
const smallestSingle = 1e-3

func toSingle(m *mat.Dense) blas32.General {
	rows, cols := m.Dims()
	out := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
	narrow(out.Data, m.RawMatrix().Data)
	return out
}

func narrow(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}

func rowOf(m blas32.General, i int) []float32 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// factorSingle replaces the upper triangle of a square matrix by its Cholesky factor.
func factorSingle(a blas32.General) (t blas32.Triangular, ok bool) {
	ok = linalg.CholeskySingle(a.Data, a.Cols, a.Stride)
	return blas32.Triangular{Uplo: blas.Upper, Diag: blas.NonUnit, N: a.Cols, Stride: a.Stride, Data: a.Data}, ok
}

// scales returns 1 / sqrt of the diagonal elements of A, and 0 for those that are not positive.
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
