package similarity

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/quickselect"
)

// A pairMatrix is a symmetric matrix of n x n values, one for each pair of samples, row-major.
type pairMatrix struct {
	n    int
	data []float64
}

func (s pairMatrix) row(i int) []float64 { return s.data[i*s.n : (i+1)*s.n] }

func (s pairMatrix) diagonal() []float64 {
	out := make([]float64, s.n)
	for i := range out {
		out[i] = s.row(i)[i]
	}
	return out
}

// gram returns the centred Gram matrix, in the memory of it and two chunks.
func gram(ctx context.Context, x *centredSample) (pairMatrix, error) {
	k := pairMatrix{x.n, make([]float64, x.n*x.n)}
	size := min(max(32, 1<<22/x.p), x.n) // observations in a chunk of about four million values
	left, right := make([]float64, size*x.p), make([]float64, size*x.p)
	for i := 0; i < x.n; i += size {
		rows := min(size, x.n-i)
		if err := x.read(i, i+rows, left[:rows*x.p]); err != nil {
			return pairMatrix{}, err
		}
		a := blas64.General{Rows: rows, Cols: x.p, Stride: x.p, Data: left}
		blas64.Syrk(blas.NoTrans, 1, a, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: x.n, Data: k.data[i*x.n+i:]})
		for j := i + size; j < x.n; j += size {
			if err := ctx.Err(); err != nil {
				return pairMatrix{}, err
			}
			cols := min(size, x.n-j)
			if err := x.read(j, j+cols, right[:cols*x.p]); err != nil {
				return pairMatrix{}, err
			}
			b := blas64.General{Rows: cols, Cols: x.p, Stride: x.p, Data: right}
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, a, b, 0, blas64.General{Rows: rows, Cols: cols, Stride: x.n, Data: k.data[i*x.n+j:]})
		}
	}
	k.mirror()
	return k, nil
}

// mirror copies the upper triangle to the lower one, tile by tile.
func (s pairMatrix) mirror() {
	const side = 64
	for i0 := 0; i0 < s.n; i0 += side {
		for j0 := i0; j0 < s.n; j0 += side {
			for i := i0; i < min(i0+side, s.n); i++ {
				for j := max(j0, i+1); j < min(j0+side, s.n); j++ {
					s.data[j*s.n+i] = s.data[i*s.n+j]
				}
			}
		}
	}
}

// principalComponents come from the centred Gram matrix. Those below about 1e-7 of the largest
// deviation are lost in its rounding and left out.
type principalComponents struct {
	values  []float64  // eigenvalues, descending
	vectors *mat.Dense // n x n: eigenvectors as columns, of which the first len(values) are used
}

func newPrincipalComponents(k pairMatrix) (principalComponents, error) {
	values, vectors, err := linalg.Eigen(append([]float64(nil), k.data...), k.n)
	if err != nil {
		return principalComponents{}, err
	}
	floor := values[0] * float64(k.n) * 0x1p-52 // smaller eigenvalues are rounding errors of float64
	r := 0
	for r < len(values) && values[r] > floor {
		r++
	}
	return principalComponents{values[:r], vectors}, nil
}

// sample returns the scores of the first r components: n observations of r variables.
func (c principalComponents) sample(ctx context.Context, r int) (*centredSample, error) {
	n, _ := c.vectors.Dims()
	values := make([]float64, n*max(r, 1)) // a constant representation has one component, of zeros
	for i := range n {
		for j, v := range c.vectors.RawRowView(i)[:r] {
			values[i*r+j] = v * sqrt(c.values[j])
		}
	}
	source, err := Of(values, n, max(r, 1))
	if err != nil {
		return nil, err
	}
	return newCentredSample(ctx, "", source, identityOrder(n))
}

// spans reports whether the rank is certainly n - 1, despite rounding. Every representation of the
// samples is then an affine function of this one.
func (s pairMatrix) spans() bool {
	var trace float64
	for i := range s.n {
		trace += s.row(i)[i]
	}
	if trace == 0 {
		return false
	}
	// Centring leaves no variance along (1, ..., 1). With the mean variance there, rank n - 1 has a
	// Cholesky factor.
	full := append([]float64(nil), s.data...)
	add := trace / float64(s.n) / float64(s.n)
	for i := range full {
		full[i] += add
	}
	upper, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: s.n, Stride: s.n, Data: full})
	// The rounding errors of a matrix of lower rank give a smaller number than 1e-10.
	return ok && reciprocalCondition(upper) > 1e-10
}

// An hsicSum holds the sums for HSIC of Gram matrices K and L, with row sums k_i and l_i.
type hsicSum struct {
	m        int     // samples
	inner    float64 // sum_ij K_ij L_ij
	kl       float64 // sum_i k_i l_i
	k, l     float64 // sum_ij K_ij, sum_ij L_ij
	trk, trl float64 // traces of K and L; 0 in sums without the diagonals
}

// biased returns <HKH, HLH>, with H the centring, up to a factor (Gretton et al. 2005).
func (a hsicSum) biased() float64 {
	m := float64(a.m)
	return a.inner - 2/m*a.kl + a.k/m*(a.l/m)
}

// unbiased returns m (m - 3) times it (Song et al. 2012, equation 5), from sums without diagonals.
func (a hsicSum) unbiased() float64 {
	m := float64(a.m)
	return a.inner + a.k*a.l/((m-1)*(m-2)) - 2/(m-2)*a.kl
}

// hsicSums are those of all samples, and those without each group.
type hsicSums struct {
	all  hsicSum
	rest []hsicSum
}

// newHSICSums takes groups from cuts[g] to cuts[g+1]-1; nil: none.
func newHSICSums(k, l pairMatrix, cuts []int, diagonal bool) hsicSums {
	n, groups := k.n, max(0, len(cuts)-1)
	parts := max(1, groups) // in which each row is summed: the groups, or all samples
	bounds := cuts
	if groups == 0 {
		bounds = []int{0, n}
	}
	groupOf := make([]int, n)
	for g := range parts {
		for i := bounds[g]; i < bounds[g+1]; i++ {
			groupOf[i] = g
		}
	}
	ks, ls := make([]float64, n*parts), make([]float64, n*parts) // sums of a row over each group
	touching := make([]float64, parts)                           // sum K_ij L_ij over pairs with i or j in the group
	out := hsicSums{hsicSum{m: n}, make([]hsicSum, groups)}
	all := &out.all
	for i := range n {
		krow, lrow := k.row(i), l.row(i)
		if diagonal {
			all.trk, all.trl = all.trk+krow[i], all.trl+lrow[i]
		}
		for g := range parts {
			var inner, sk, sl float64
			for j := bounds[g]; j < bounds[g+1]; j++ {
				if j == i && !diagonal {
					continue
				}
				inner += krow[j] * lrow[j]
				sk += krow[j]
				sl += lrow[j]
			}
			all.inner += inner
			ks[i*parts+g], ls[i*parts+g] = sk, sl
			touching[g] += inner
			if own := groupOf[i]; own != g {
				touching[own] += inner
			}
		}
	}
	for i := range n {
		sk, sl := floats.Sum(ks[i*parts:(i+1)*parts]), floats.Sum(ls[i*parts:(i+1)*parts])
		all.k, all.l, all.kl = all.k+sk, all.l+sl, all.kl+sk*sl
		for g := range out.rest {
			if groupOf[i] == g {
				continue
			}
			r, a, b := &out.rest[g], sk-ks[i*parts+g], sl-ls[i*parts+g]
			r.k, r.l, r.kl = r.k+a, r.l+b, r.kl+a*b
			if diagonal {
				r.trk, r.trl = r.trk+k.row(i)[i], r.trl+l.row(i)[i]
			}
		}
	}
	for g := range out.rest {
		out.rest[g].m, out.rest[g].inner = n-(cuts[g+1]-cuts[g]), all.inner-touching[g]
	}
	return out
}

// squaredDistances turns a Gram matrix into squared Euclidean distances in place.
func (s pairMatrix) squaredDistances() {
	diagonal := s.diagonal()
	for i := range s.n {
		row := s.row(i)
		for j := range row {
			row[j] = max(diagonal[i]+diagonal[j]-2*row[j], 0)
		}
		row[i] = 0
	}
}

// radial replaces d^2 by exp(-d^2 / (2 s^2)), with s fraction times the median of d, or returns
// false if that is 0.
func (s pairMatrix) radial(fraction float64) bool {
	distances := make([]float64, 0, s.n*(s.n-1)/2)
	for i := range s.n {
		distances = append(distances, s.row(i)[i+1:]...)
	}
	sigma := fraction * medianRoot(distances)
	if !(sigma > 0) {
		return false
	}
	for i, d := range s.data {
		s.data[i] = math.Exp(-d / (2 * sigma * sigma))
	}
	return true
}

// medianRoot returns the median of the square roots of the values. It reorders the values.
func medianRoot(values []float64) float64 {
	n := len(values)
	upper := math.Sqrt(quickselect.Nth(values, n/2))
	if n%2 == 1 {
		return upper
	}
	lower := values[0]
	for _, v := range values[:n/2] { // Nth has moved the smaller values here
		lower = max(lower, v)
	}
	return (math.Sqrt(lower) + upper) / 2
}
