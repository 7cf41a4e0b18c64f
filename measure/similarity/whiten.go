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

// A whitening turns p variables into r uncorrelated ones: Tᵀ S T = I for the scatter S.
type whitening struct {
	t    *mat.Dense // p x r; nil where r is 0
	rank int        // r
	// reliable: rounding does not hide dependencies of variables.
	reliable bool
	// cut says where components are cut off, more whitens a few further ones; nil for all
	// variables.
	cut  *resample.Cutoff
	more *mat.Dense
}

func (w whitening) truncated(k int) whitening {
	p, _ := w.more.Dims()
	return whitening{t: mat.DenseCopyOf(w.more.Slice(0, p, 0, k)), rank: k, reliable: w.reliable}
}

// wellConditioned bounds the reciprocal condition number of correlations: above it, a Cholesky
// factor whitens to eight digits.
const wellConditioned = 1e-8

// whiten takes a p x p scatter, upper triangle. Constant variables get coefficients of 0.
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

// scaledColumns divides the first columns by the roots of values.
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

// noise is the fraction of the largest eigenvalue below which, in float64 correlations, one is
// rounding.
const noise = 1e-11

type deviations []float64

func deviationsOf(scatter []float64, p int) deviations {
	s := make(deviations, p)
	for i := range s {
		s[i] = sqrt(scatter[i*p+i])
	}
	return s
}

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

// reciprocalCondition estimates that of Uᵀ U from the triangle U.
func reciprocalCondition(upper blas64.Triangular) float64 {
	n := upper.N
	work, iwork := make([]float64, 3*n), make([]int, n)
	r := lapack64.Trcon(lapack.MaxColumnSum, upper, work, iwork)
	return r * r
}

// orthonormal whitens observations X too nearly dependent for whiten: coefficients B give X B
// orthonormal columns. Directions lost to rounding are of order 1 in the next round's scatter, so
// two or three suffice (Cholesky QR, Yamamoto et al. 2015). Those below the rounding of X are left
// out.
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

// normalise scales columns of b to unit scatter g, without those whose coefficients have a norm
// above 1/floor, which amplify rounding; nil if none is left.
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

type projected struct {
	of *centredSample
	b  *mat.Dense
}

func (s *projected) Dims() (n, p int) {
	_, r := s.b.Dims()
	return s.of.n, r
}

func (s *projected) Single() bool { return false }

// index counts in the sample's order.
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

// A standardised divides variables by their deviations; constant ones are 0.
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

func (s *standardised) Single() bool { return false }

// index counts in the sample's order.
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
