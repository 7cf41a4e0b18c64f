package linalg

import (
	"errors"
	"fmt"
	"slices"

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

// A Subspace is spanned by the K leading eigenvectors of a scatter. A few more, its margin, are kept to see what a higher rank would
// change.
type Subspace struct {
	K        int
	Basis    *mat.Dense // D x (K + margin), orthonormal columns; nil where K is 0
	Values   []float64  // K + margin eigenvalues, descending
	Fraction float64    // of the variance that was asked for
	Total    float64    // the sum of all eigenvalues
}

// margin is the number of eigenvectors beyond the first k that a Subspace keeps at most.
func margin(k int) int { return 1 + k/50 }

// Leading returns the fewest leading eigenvectors of a scatter that hold at least the given fraction of the sum of
// its eigenvalues. scatter is d x d, row-major, upper triangle; it is overwritten. Eigenvalues that are zero but for
// rounding are left out, so a scatter of constants has a subspace of dimension 0.
func Leading(scatter []float64, d int, fraction float64) (Subspace, error) {
	if len(scatter) != d*d {
		panic(fmt.Sprintf("linalg: a scatter of %d values for %d variables", len(scatter), d))
	}
	var k, all int
	var total float64
	values, basis, err := largestBy(scatter, d, func(values []float64) int {
		significant := countAbove(values, noiseFloor*values[0])
		total = sumPositive(values)
		k = countLeading(values[:significant], fraction*total)
		if k > 0 {
			all = min(k+margin(k), significant)
		}
		return all
	})
	if err != nil {
		return Subspace{}, err
	}
	if k == 0 {
		return Subspace{Fraction: fraction, Total: total}, nil
	}
	return Subspace{K: k, Basis: basis, Values: values[:all:all], Fraction: fraction, Total: total}, nil
}

// largestBy returns the eigenvalues, descending, of a symmetric n x n matrix of which the upper triangle is given and is
// overwritten, and the eigenvectors of the largest of them as columns: as many as count says, which is shown all values; nil for
// none. Accelerate sets it.
var largestBy = largestOfAll

// largestOfAll computes all eigenvectors.
func largestOfAll(a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error) {
	if values, err = eigen(a, n); err != nil {
		return nil, nil, err
	}
	if k := count(reversed(values)); k > 0 {
		vectors = largest(a, n, k)
	}
	return values, vectors, nil
}

// Reach is where the fraction of the variance is reached were eigenvectors counted in parts: above K - 1 and at most K; K where it is
// not reached, for what is left is rounding.
func (s Subspace) Reach() float64 {
	if s.K == 0 {
		return 0
	}
	lacking := s.Fraction * s.Total
	for _, v := range s.Values[:s.K-1] {
		lacking -= v
	}
	last := max(lacking/s.Values[s.K-1], 0)
	if last > 1-1e-6 { // as where all of the variance is asked for
		last = 1
	}
	return float64(s.K-1) + last
}

// Pull is what observations add to Reach, to first order, where they are counted twice. diagonal holds the squares of their coordinates in
// the first K axes, summed, and total is their variance, both about the mean of all.
func (s Subspace) Pull(diagonal []float64, total float64) float64 {
	last := s.Reach() - float64(s.K-1)
	if last == 1 { // nothing that counts lies beyond
		return 0
	}
	lacking := s.Fraction * total
	for _, v := range diagonal[:s.K-1] {
		lacking -= v
	}
	return (lacking - last*diagonal[s.K-1]) / s.Values[s.K-1]
}

// Bare is the subspace without its margin, for where no observations will be left out.
func (s Subspace) Bare() Subspace {
	if s.K > 0 {
		s.Basis, s.Values = mat.DenseCopyOf(s.Basis.Slice(0, s.Basis.RawMatrix().Rows, 0, s.K)), s.Values[:s.K]
	}
	return s
}

// countAbove is how many of the descending values exceed a floor, and zero.
func countAbove(values []float64, floor float64) int {
	n := 0
	for n < len(values) && values[n] > max(floor, 0) {
		n++
	}
	return n
}

// countLeading is how many of the values, from the first on, add up to at least the given part; all of them where
// they do not.
func countLeading(values []float64, part float64) int {
	var sum float64
	for i, v := range values {
		if sum += v; sum >= part {
			return i + 1
		}
	}
	return len(values)
}

func sumPositive(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += max(v, 0)
	}
	return sum
}

// eigen computes the eigenvalues, ascending, of a symmetric n x n matrix of which the upper triangle is given, and
// puts its eigenvectors in the place of its columns.
func eigen(a []float64, n int) ([]float64, error) {
	values := make([]float64, n)
	m := blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: a}
	want := make([]float64, 1)
	lapack64.Syev(lapack.EVCompute, m, values, want, -1)
	work := make([]float64, int(want[0]))
	if !lapack64.Syev(lapack.EVCompute, m, values, work, len(work)) {
		return nil, fmt.Errorf("eigenvectors of a symmetric %d x %d matrix: %w", n, n, ErrNotConverged)
	}
	return values, nil
}

// largest copies the eigenvectors of the k largest eigenvalues from the columns of eigen, in descending order: n x k.
func largest(columns []float64, n, k int) *mat.Dense {
	out := mat.NewDense(n, k, nil)
	for i := range n {
		row, from := out.RawRowView(i), columns[i*n:(i+1)*n]
		for j := range row {
			row[j] = from[n-1-j]
		}
	}
	return out
}

func reversed(ascending []float64) []float64 {
	slices.Reverse(ascending)
	return ascending
}
