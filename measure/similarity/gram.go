package similarity

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/quickselect"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

// A square is a symmetric matrix of n x n values, one for each pair of samples, row-major.
type square struct {
	n    int
	data []float64
}

func (s square) row(i int) []float64 { return s.data[i*s.n : (i+1)*s.n] }

// gram is the centred Gram matrix of a sample: inner products of observations less their mean. Memory is that of the matrix
// and two chunks.
func gram(ctx context.Context, x *sample) (square, error) {
	k := square{x.n, make([]float64, x.n*x.n)}
	size := min(max(32, 1<<22/x.p), x.n)
	left, right := make([]float64, size*x.p), make([]float64, size*x.p)
	for i := 0; i < x.n; i += size {
		rows := min(size, x.n-i)
		if err := x.read(i, i+rows, left[:rows*x.p]); err != nil {
			return square{}, err
		}
		a := blas64.General{Rows: rows, Cols: x.p, Stride: x.p, Data: left}
		blas64.Syrk(blas.NoTrans, 1, a, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: x.n, Data: k.data[i*x.n+i:]})
		for j := i + size; j < x.n; j += size {
			if err := ctx.Err(); err != nil {
				return square{}, err
			}
			cols := min(size, x.n-j)
			if err := x.read(j, j+cols, right[:cols*x.p]); err != nil {
				return square{}, err
			}
			b := blas64.General{Rows: cols, Cols: x.p, Stride: x.p, Data: right}
			blas64.Gemm(blas.NoTrans, blas.Trans, 1, a, b, 0, blas64.General{Rows: rows, Cols: cols, Stride: x.n, Data: k.data[i*x.n+j:]})
		}
	}
	k.mirror()
	return k, nil
}

// mirror copies the upper triangle to the lower, tile by tile.
func (s square) mirror() {
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

// components are the principal components of a sample, from its centred Gram matrix: eigenvalues, descending, and the coordinates of
// the observations, scaled to unit length. Of a Gram matrix no more can be told than directions down to 1e-7 of the largest.
type components struct {
	values  []float64
	vectors *mat.Dense // n x n; the first len(values) columns are meant
}

func componentsOf(k square) (components, error) {
	values, vectors, err := linalg.Eigen(append([]float64(nil), k.data...), k.n)
	if err != nil {
		return components{}, err
	}
	floor := values[0] * float64(k.n) * 0x1p-52
	r := 0
	for r < len(values) && values[r] > floor {
		r++
	}
	return components{values[:r], vectors}, nil
}

// sample is the first r components as a sample of n observations of r variables.
func (c components) sample(ctx context.Context, r int) (*sample, error) {
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
	return newSample(ctx, "", source, inOrder(n))
}

// holding is how many leading components hold a fraction of the variance.
func (c components) holding(fraction float64) int { return countLeading(c.values, fraction) }

// countLeading is how many of the descending values, from the first on, add up to at least a fraction of the sum of all.
func countLeading(values []float64, fraction float64) int {
	var total, part float64
	for _, v := range values {
		total += max(v, 0)
	}
	for i, v := range values {
		if part += v; part >= fraction*total {
			return i + 1
		}
	}
	return len(values)
}

// spans reports whether a centred Gram matrix has the rank n - 1 for certain: then the representation holds everything that n
// samples can, and any other is a linear function of it.
func (s square) spans() bool {
	var trace float64
	for i := range s.n {
		trace += s.row(i)[i]
	}
	if trace == 0 {
		return false
	}
	// The one direction that centring took gets the mean variance.
	full := append([]float64(nil), s.data...)
	add := trace / float64(s.n) / float64(s.n)
	for i := range full {
		full[i] += add
	}
	upper, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: s.n, Stride: s.n, Data: full})
	return ok && reciprocalCondition(upper) > wellConditioned*1e-2
}

// An alignment is what HSIC is made of for some of the samples: sums over pairs of them.
type alignment struct {
	m        int     // samples
	inner    float64 // sum K_ij L_ij
	kl       float64 // sum_i k_i l_i, of row sums
	k, l     float64 // sum K_ij, sum L_ij
	trk, trl float64
}

// biased is the squared norm product <HKH, HLH> that CKA is made of (Gretton et al. 2005).
func (a alignment) biased() float64 {
	m := float64(a.m)
	return a.inner - 2/m*a.kl + a.k/m*(a.l/m)
}

// unbiased is m (m - 3) times the unbiased estimate (Song et al. 2012, equation 5); the diagonals must have been left out.
func (a alignment) unbiased() float64 {
	m := float64(a.m)
	return a.inner + a.k*a.l/((m-1)*(m-2)) - 2/(m-2)*a.kl
}

// align returns the alignment of all samples, and those without each of the groups that the cuts make.
func align(k, l square, cuts []int, diagonal bool) (all alignment, rest []alignment) {
	n, groups := k.n, max(0, len(cuts)-1)
	groupOf := make([]int, n)
	for g := range groups {
		for i := cuts[g]; i < cuts[g+1]; i++ {
			groupOf[i] = g
		}
	}
	rest = make([]alignment, groups)
	ks, ls := make([]float64, n*max(1, groups)), make([]float64, n*max(1, groups)) // sums of a row over each group
	touching := make([]float64, groups)                                            // sum K_ij L_ij over pairs with one end at least in the group
	all.m = n
	for i := range n {
		krow, lrow := k.row(i), l.row(i)
		if diagonal {
			all.trk, all.trl = all.trk+krow[i], all.trl+lrow[i]
		}
		for g := range max(1, groups) {
			lo, hi := 0, n
			if groups > 0 {
				lo, hi = cuts[g], cuts[g+1]
			}
			var inner, sk, sl float64
			for j := lo; j < hi; j++ {
				if j == i && !diagonal {
					continue
				}
				inner += krow[j] * lrow[j]
				sk += krow[j]
				sl += lrow[j]
			}
			all.inner += inner
			ks[i*max(1, groups)+g], ls[i*max(1, groups)+g] = sk, sl
			if groups > 0 {
				touching[g] += inner
				if own := groupOf[i]; own != g {
					touching[own] += inner
				}
			}
		}
	}
	for i := range n {
		sk, sl := sum(ks[i*max(1, groups):(i+1)*max(1, groups)]), sum(ls[i*max(1, groups):(i+1)*max(1, groups)])
		all.k, all.l, all.kl = all.k+sk, all.l+sl, all.kl+sk*sl
		for g := range groups {
			if groupOf[i] == g {
				continue
			}
			a, b := sk-ks[i*groups+g], sl-ls[i*groups+g]
			rest[g].k, rest[g].l, rest[g].kl = rest[g].k+a, rest[g].l+b, rest[g].kl+a*b
			if diagonal {
				rest[g].trk, rest[g].trl = rest[g].trk+k.row(i)[i], rest[g].trl+l.row(i)[i]
			}
		}
	}
	for g := range groups {
		rest[g].m, rest[g].inner = n-(cuts[g+1]-cuts[g]), all.inner-touching[g]
	}
	return all, rest
}

// A selfAlignment is that of a Gram matrix with itself, computed once for all its partners.
type selfAlignment struct {
	all  alignment
	rest []alignment
}

// kernelCKA is CKA of two Gram matrices, with the biased or the unbiased estimate of HSIC. The mean over all shuffles is
// tr(HKH) tr(HLH) / ((n - 1) |HKH| |HLH|), or 0.
func kernelCKA(k, l square, kk, ll selfAlignment, cuts []int, unbiased bool) estimate {
	hsic := alignment.biased
	least := 2
	if unbiased {
		hsic, least = alignment.unbiased, 4
	}
	all, rest := align(k, l, cuts, !unbiased)
	e := estimate{value: ratio(hsic(all), hsic(kk.all), hsic(ll.all))}
	if !unbiased {
		n := float64(all.m)
		e.null = ratio((all.trk-all.k/n)*(all.trl-all.l/n), hsic(kk.all), hsic(ll.all)) / (n - 1)
	}
	for g, a := range rest {
		if a.m >= least && a.m < all.m {
			v := ratio(hsic(a), hsic(kk.rest[g]), hsic(ll.rest[g]))
			e.replicates = append(e.replicates, measure.Replicate{Value: v, Left: all.m - a.m})
		}
	}
	return e
}

// squaredDistances turns a Gram matrix into squared Euclidean distances, in place.
func (s square) squaredDistances() {
	diagonal := make([]float64, s.n)
	for i := range diagonal {
		diagonal[i] = s.row(i)[i]
	}
	for i := range s.n {
		row := s.row(i)
		for j := range row {
			row[j] = max(diagonal[i]+diagonal[j]-2*row[j], 0)
		}
		row[i] = 0
	}
}

// radial turns squared distances into the kernel exp(-d^2 / (2 s^2)), s being a fraction of the median distance over pairs, in
// place. It reports false where more than half of the distances are 0.
func (s square) radial(fraction float64) bool {
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

// medianRoot is the median of the roots of the values, which it reorders.
func medianRoot(values []float64) float64 {
	n := len(values)
	upper := math.Sqrt(quickselect.Nth(values, n/2))
	if n%2 == 1 {
		return upper
	}
	lower := values[0]
	for _, v := range values[:n/2] { // Nth has put the smaller ones here
		lower = max(lower, v)
	}
	return (math.Sqrt(lower) + upper) / 2
}
