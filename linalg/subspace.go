package linalg

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// ErrNotConverged is returned where an eigenvalue or singular value iteration fails.
var ErrNotConverged = errors.New("linalg: the decomposition does not converge")

// noiseFloor is the part of the largest eigenvalue below which an eigenvalue of a sum of float32 products is rounding.
// It binds only where more than 99.9 % of the variance is asked for, or where there is hardly any.
const noiseFloor = 1e-7

// A Subspace is spanned by the leading eigenvectors of a scatter.
type Subspace struct {
	Basis  *mat.Dense // D x K, orthonormal columns; nil where K is 0
	Values []float64  // K eigenvalues, descending
}

// K is the dimension.
func (s Subspace) K() int { return len(s.Values) }

// Leading returns the fewest leading eigenvectors of a scatter that hold at least the given fraction of the sum of its
// eigenvalues. scatter is d x d, row-major, upper triangle; it is overwritten. Eigenvalues that are zero but for rounding are left out,
// so a scatter of constants has a subspace of dimension 0.
func Leading(scatter []float64, d int, fraction float64) (Subspace, error) {
	if len(scatter) != d*d {
		panic(fmt.Sprintf("linalg: a scatter of %d values for %d variables", len(scatter), d))
	}
	values := make([]float64, d)
	a := blas64.Symmetric{Uplo: blas.Upper, N: d, Stride: d, Data: scatter}
	want := make([]float64, 1)
	lapack64.Syev(lapack.EVCompute, a, values, want, -1)
	work := make([]float64, int(want[0]))
	if !lapack64.Syev(lapack.EVCompute, a, values, work, len(work)) {
		return Subspace{}, fmt.Errorf("eigenvectors of a %d x %d scatter: %w", d, d, ErrNotConverged)
	}
	k := leadingCount(values, fraction)
	if k == 0 {
		return Subspace{}, nil
	}
	s := Subspace{Basis: mat.NewDense(d, k, nil), Values: make([]float64, k)}
	for j := range k {
		s.Values[j] = values[d-1-j]
	}
	for i := range d {
		row, vectors := s.Basis.RawRowView(i), scatter[i*d:(i+1)*d]
		for j := range row {
			row[j] = vectors[d-1-j]
		}
	}
	return s, nil
}

// leadingCount is how many of the ascending eigenvalues, from the largest down, reach the fraction of their sum.
func leadingCount(ascending []float64, fraction float64) int {
	var total float64
	for _, v := range ascending {
		total += max(v, 0)
	}
	var sum float64
	d := len(ascending)
	floor := noiseFloor * ascending[d-1]
	for k := range d {
		v := ascending[d-1-k]
		if v <= floor || v <= 0 {
			return k
		}
		if sum += v; sum >= fraction*total {
			return k + 1
		}
	}
	return d
}
