package similarity

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// A whitening turns p variables into r uncorrelated ones of unit scatter: Tᵀ S T = I. S is the
// scatter of the variables, the sums of products of their deviations from the mean.
type whitening struct {
	t    *mat.Dense // p x r; nil where r is 0
	rank int        // r
	// reliable is false where variables are so nearly linearly dependent that rounding errors hide
	// how they depend on each other.
	reliable bool
	// cut says where leading principal components are cut off, and more whitens these and a few
	// further ones. Both are nil for a whitening of all variables.
	cut  *resample.Cutoff
	more *mat.Dense
}

// truncated returns the whitening of the first k principal components.
func (w whitening) truncated(k int) whitening {
	p, _ := w.more.Dims()
	return whitening{t: mat.DenseCopyOf(w.more.Slice(0, p, 0, k)), rank: k, reliable: w.reliable}
}

// wellConditioned is a bound on the reciprocal condition number of the variables' correlations.
// Above it, whitening by their Cholesky factor is right to eight digits or more.
const wellConditioned = 1e-8

// whiten returns the whitening of a scatter: p x p, row-major, upper triangle. Variables that do
// not vary get coefficients of 0.
func whiten(scatter []float64, p int) (whitening, error) {
	scale := deviationsOf(scatter, p)
	kept := scale.varying()
	if len(kept) == 0 {
		return whitening{reliable: true}, nil
	}
	r := correlations(scatter, p, scale, kept)
	upper, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: len(kept), Stride: len(kept), Data: append([]float64(nil), r...)})
	if ok && reciprocalCondition(upper) > wellConditioned {
		return whitening{t: unscale(inverse(upper), scale, kept), rank: len(kept), reliable: true}, nil
	}
	// By eigenvectors, without those that are rounding errors.
	values, vectors, err := linalg.Eigen(r, len(kept))
	if err != nil {
		return whitening{}, err
	}
	rank := 0
	for rank < len(values) && values[rank] > noise*values[0] {
		rank++
	}
	return whitening{t: unscale(scaledColumns(vectors, values[:rank]), scale, kept), rank: rank, reliable: rank == len(kept) && values[rank-1] > wellConditioned*values[0]}, nil
}

// scaledColumns returns the first len(values) columns of a matrix, each divided by the square root
// of its value.
func scaledColumns(m *mat.Dense, values []float64) *mat.Dense {
	rows, _ := m.Dims()
	out := mat.DenseCopyOf(m.Slice(0, rows, 0, len(values)))
	for i := range rows {
		row := out.RawRowView(i)
		for j := range row {
			row[j] /= math.Sqrt(values[j])
		}
	}
	return out
}

// noise is a fraction of the largest eigenvalue of a correlation matrix in float64. Eigenvalues
// below it are rounding errors.
const noise = 1e-11

// deviations holds the square root of each variable's sum of squares about its mean.
type deviations []float64

// deviationsOf returns the deviations of p variables from their scatter: p x p, row-major.
func deviationsOf(scatter []float64, p int) deviations {
	s := make(deviations, p)
	for i := range s {
		s[i] = sqrt(scatter[i*p+i])
	}
	return s
}

// varying returns the indices of the variables that vary.
func (s deviations) varying() []int {
	var out []int
	for i, v := range s {
		if v > 0 {
			out = append(out, i)
		}
	}
	return out
}

// correlations returns the correlations of the kept variables: square, row-major, upper triangle.
func correlations(scatter []float64, p int, s deviations, kept []int) []float64 {
	n := len(kept)
	out := make([]float64, n*n)
	for a, i := range kept {
		out[a*n+a] = 1
		for b := a + 1; b < n; b++ {
			j := kept[b]
			out[a*n+b] = scatter[i*p+j] / s[i] / s[j]
		}
	}
	return out
}

// unscale returns the coefficients of all variables from those of the scaled, kept variables.
func unscale(t *mat.Dense, s deviations, kept []int) *mat.Dense {
	_, r := t.Dims()
	out := mat.NewDense(len(s), r, nil)
	for a, i := range kept {
		row := out.RawRowView(i)
		for j, v := range t.RawRowView(a) {
			row[j] = v / s[i]
		}
	}
	return out
}

// inverse returns the inverse of an upper triangular matrix.
func inverse(upper blas64.Triangular) *mat.Dense {
	out := identity(upper.N)
	blas64.Trsm(blas.Left, blas.NoTrans, 1, upper, out.RawMatrix())
	return out
}

func identity(n int) *mat.Dense {
	out := mat.NewDense(n, n, nil)
	for i := range n {
		out.Set(i, i, 1)
	}
	return out
}

// reciprocalCondition estimates the reciprocal condition number of Uᵀ U, such as a correlation
// matrix, from the condition number of U, an upper triangle.
func reciprocalCondition(upper blas64.Triangular) float64 {
	n := upper.N
	work, iwork := make([]float64, 3*n), make([]int, n)
	r := lapack64.Trcon(lapack.MaxColumnSum, upper, work, iwork)
	return r * r
}

// orthonormal returns the whitening of a sample (observations in rows, here X) whose variables are
// too nearly dependent for whiten. It works on the observations themselves, and finds coefficients
// B for which X B has orthonormal columns. Each round decomposes the scatter of X B. In it,
// directions that an earlier round lost to rounding are of the order of 1, so two or three rounds
// suffice (as in Cholesky QR, Yamamoto et al. 2015). Directions smaller than the rounding of X
// itself are left out.
func orthonormal(ctx context.Context, x *centredSample, scatter []float64) (whitening, error) {
	p := x.p
	scale := deviationsOf(scatter, p)
	b, g := identity(p), scatter
	var largest float64
	for round := range 6 { // more than are needed; g is the scatter of X B
		b, g = normalise(b, g, scale, float64(max(x.n, p))*0x1p-52*largest)
		if b == nil {
			return whitening{reliable: true}, nil
		}
		_, r := b.Dims()
		if round > 0 && offIdentity(g, r) < 1e-7 {
			break
		}
		values, turn, err := linalg.Eigen(g, r)
		if err != nil {
			return whitening{}, err
		}
		if round == 0 {
			largest = math.Sqrt(values[0])
		}
		floor := values[0] * 1e-15 * float64(r)
		for i, v := range values {
			values[i] = max(v, floor)
		}
		next := new(mat.Dense)
		next.Mul(b, scaledColumns(turn, values))
		b = next
		if g, err = gramOf(ctx, x, b); err != nil {
			return whitening{}, err
		}
	}
	_, r := b.Dims()
	last, err := whiten(g, r)
	if err != nil || last.t == nil {
		return whitening{reliable: true}, err
	}
	var t mat.Dense
	t.Mul(b, last.t)
	return whitening{t: &t, rank: last.rank, reliable: true}, nil
}

// normalise scales the columns of b, and with them their scatter g (upper triangle), to unit
// scatter. It leaves out the columns whose coefficients of scaled variables have a norm above
// 1/floor: such large coefficients amplify rounding errors. It returns nil if no column is left.
func normalise(b *mat.Dense, g []float64, s deviations, floor float64) (*mat.Dense, []float64) {
	p, r := b.Dims()
	size := deviationsOf(g, r)
	length := make([]float64, r)
	for i := range p {
		for j, v := range b.RawRowView(i) {
			length[j] += v * v * s[i] * s[i]
		}
	}
	var columns []int
	for j, l := range length {
		if size[j] > 0 && math.Sqrt(l)*floor < size[j] {
			columns = append(columns, j)
		}
	}
	if len(columns) == 0 {
		return nil, nil
	}
	out := mat.NewDense(p, len(columns), nil)
	for i := range p {
		from, row := b.RawRowView(i), out.RawRowView(i)
		for a, j := range columns {
			row[a] = from[j] / size[j]
		}
	}
	return out, correlations(g, r, size, columns)
}

// gramOf returns (X B)ᵀ (X B): square, row-major, upper triangle.
func gramOf(ctx context.Context, x *centredSample, b *mat.Dense) ([]float64, error) {
	_, r := b.Dims()
	out := make([]float64, r*r)
	rows := make([]float64, min(chunkOf(x.p), x.n)*x.p)
	err := walk(ctx, x.n, chunkOf(x.p), nil, func(from, to, _ int) error {
		n := to - from
		if err := x.read(from, to, rows[:n*x.p]); err != nil {
			return err
		}
		var xb mat.Dense
		xb.Mul(mat.NewDense(n, x.p, rows[:n*x.p]), b)
		blas64.Syrk(blas.Trans, 1, xb.RawMatrix(), 1, blas64.Symmetric{Uplo: blas.Upper, N: r, Stride: r, Data: out})
		return nil
	})
	return out, err
}

// offIdentity returns the largest difference between an upper triangle and that of the identity.
func offIdentity(g []float64, r int) float64 {
	var worst float64
	for i := range r {
		for j := i; j < r; j++ {
			v := g[i*r+j]
			if i == j {
				v--
			}
			worst = max(worst, math.Abs(v))
		}
	}
	return worst
}

// A projected is a Source, a matrix whose rows are read when needed, of the observations X B.
type projected struct {
	of *centredSample
	b  *mat.Dense
}

func (s *projected) Dims() (n, p int) {
	_, r := s.b.Dims()
	return s.of.n, r
}

// Single implements Source: the values are not exact in float32.
func (s *projected) Single() bool { return false }

// Read implements Source. index holds the numbers of observations, as the sample orders them.
func (s *projected) Read(index []int, dst []float64) error {
	p := s.of.p
	_, r := s.b.Dims()
	rows := make([]float64, len(index)*p)
	if err := s.of.at(index).read(0, len(index), rows); err != nil {
		return err
	}
	mat.NewDense(len(index), r, dst).Mul(mat.NewDense(len(index), p, rows), s.b)
	return nil
}

// A standardised is a Source of the observations of a sample with each variable divided by its
// standard deviation. Variables that do not vary are 0.
type standardised struct {
	of      *centredSample
	factor  []float64 // of each variable
	varying int       // number of variables that vary
}

func newStandardised(ctx context.Context, x *centredSample) (*standardised, error) {
	s := &standardised{of: x, factor: make([]float64, x.p)}
	rows := make([]float64, min(chunkOf(x.p), x.n)*x.p)
	err := walk(ctx, x.n, chunkOf(x.p), nil, func(from, to, _ int) error {
		if err := x.read(from, to, rows[:(to-from)*x.p]); err != nil {
			return err
		}
		for i := range to - from {
			for j, v := range rows[i*x.p : (i+1)*x.p] {
				s.factor[j] = math.Hypot(s.factor[j], v) // squares of small variables would be 0
			}
		}
		return nil
	})
	for j, norm := range s.factor {
		if norm > 0 {
			s.factor[j] = math.Sqrt(float64(x.n)) / norm
			s.varying++
		}
	}
	return s, err
}

func (s *standardised) Dims() (n, p int) { return s.of.n, s.of.p }

// Single implements Source: the values are not exact in float32.
func (s *standardised) Single() bool { return false }

// Read implements Source. index holds the numbers of observations, as the sample orders them.
func (s *standardised) Read(index []int, dst []float64) error {
	if err := s.of.at(index).read(0, len(index), dst); err != nil {
		return err
	}
	for i := range index {
		row := dst[i*s.of.p : (i+1)*s.of.p]
		for j, f := range s.factor {
			row[j] *= f
		}
	}
	return nil
}
