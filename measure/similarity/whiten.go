package similarity

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// A whitening turns p variables into r uncorrelated ones of unit scatter: Tᵀ S T = I.
type whitening struct {
	t    *mat.Dense // p x r; nil where r is 0
	rank int
	// sure is false where variables depend on each other so nearly that moments alone cannot tell how.
	reliable bool
	// Of leading principal components: where they were cut off, and the whitening of these and a few more; nil of others.
	cut  *resample.Cutoff
	more *mat.Dense
}

// first is the whitening of so many of the principal components.
func (w whitening) first(k int) whitening {
	p, _ := w.more.Dims()
	return whitening{t: mat.DenseCopyOf(w.more.Slice(0, p, 0, k)), rank: k, reliable: w.reliable}
}

// wellConditioned is the reciprocal condition number of the variables' correlations above which whitening by their Cholesky
// factor is right to eight digits or more.
const wellConditioned = 1e-8

// whiten finds the whitening of a scatter: p x p, row-major, upper triangle. Variables that do not vary have no part in it.
func whiten(scatter []float64, p int) (whitening, error) {
	scale := scales(scatter, p)
	kept := scale.kept()
	if len(kept) == 0 {
		return whitening{reliable: true}, nil
	}
	r := correlations(scatter, p, scale, kept)
	upper, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: len(kept), Stride: len(kept), Data: append([]float64(nil), r...)})
	if ok && reciprocalCondition(upper) > wellConditioned {
		return whitening{t: expand(inverse(upper), scale, kept), rank: len(kept), reliable: true}, nil
	}
	// By eigenvectors, without those that are rounding.
	values, vectors, err := linalg.Eigen(r, len(kept))
	if err != nil {
		return whitening{}, err
	}
	rank := 0
	for rank < len(values) && values[rank] > noise*values[0] {
		rank++
	}
	t := mat.DenseCopyOf(vectors.Slice(0, len(kept), 0, rank))
	for i := range len(kept) {
		row := t.RawRowView(i)
		for j := range row {
			row[j] /= math.Sqrt(values[j])
		}
	}
	return whitening{t: expand(t, scale, kept), rank: rank, reliable: rank == len(kept) && values[rank-1] > wellConditioned*values[0]}, nil
}

// noise is the part of the largest eigenvalue of correlations, as sums of products in float64, below which an eigenvalue is
// taken for rounding.
const noise = 1e-11

// spread holds the root of each variable's scatter.
type spread []float64

func scales(scatter []float64, p int) spread {
	s := make(spread, p)
	for i := range s {
		s[i] = sqrt(scatter[i*p+i])
	}
	return s
}

// kept lists the variables that vary.
func (s spread) kept() []int {
	var out []int
	for i, v := range s {
		if v > 0 {
			out = append(out, i)
		}
	}
	return out
}

// correlations are those of the kept variables, upper triangle.
func correlations(scatter []float64, p int, s spread, kept []int) []float64 {
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

// expand turns coefficients of scaled, kept variables into those of all variables.
func expand(t *mat.Dense, s spread, kept []int) *mat.Dense {
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

// inverse is the inverse of an upper triangular matrix.
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

// reciprocalCondition estimates the reciprocal condition number of Uᵀ U, of unit diagonal, from the singular values that U's
// inverse has at most.
func reciprocalCondition(upper blas64.Triangular) float64 {
	n := upper.N
	work, iwork := make([]float64, 3*n), make([]int, n)
	r := lapack64.Trcon(lapack.MaxColumnSum, upper, work, iwork)
	return r * r
}

// orthonormal finds the whitening of a sample whose variables depend on each other too nearly for their moments to tell,
// from the observations themselves: coefficients B for which X B has orthonormal columns. Each round decomposes the moments of
// X B, in which what was lost to rounding before is of the order of 1, so two or three settle all that float64 observations
// hold (as in Cholesky QR, Yamamoto et al. 2015). Directions smaller than the rounding of X itself are left out.
func orthonormal(ctx context.Context, x *sample, scatter []float64) (whitening, error) {
	p := x.p
	scale := scales(scatter, p)
	b := mat.NewDense(p, p, nil)
	for i := range p {
		b.Set(i, i, 1)
	}
	g := scatter
	var largest float64
	for round := range 6 {
		b, g = normalised(b, g, scale, float64(max(x.n, p))*0x1p-52*largest)
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
		for i := range r {
			row := turn.RawRowView(i)
			for j := range row {
				row[j] /= math.Sqrt(max(values[j], floor))
			}
		}
		next := new(mat.Dense)
		next.Mul(b, turn)
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

// normalised scales the columns of b, and with them their scatter g (upper triangle), so that each makes unit scatter; and leaves those
// out for which that takes coefficients of the scaled variables longer than 1 / floor: what makes unit scatter by huge coefficients
// is rounding. It is nil where none is left.
func normalised(b *mat.Dense, g []float64, s spread, floor float64) (*mat.Dense, []float64) {
	p, r := b.Dims()
	size := scales(g, r)
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

// gramOf is (X B)ᵀ (X B), upper triangle.
func gramOf(ctx context.Context, x *sample, b *mat.Dense) ([]float64, error) {
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

// offIdentity is the largest difference of an upper triangle from that of the identity.
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

// A projected sample has X B as its observations.
type projected struct {
	of *sample
	b  *mat.Dense
}

func (s *projected) Dims() (n, p int) {
	_, r := s.b.Dims()
	return s.of.n, r
}

func (s *projected) Single() bool { return false }

// Read implements Source; index holds places of the sample's order.
func (s *projected) Read(index []int, dst []float64) error {
	p := s.of.p
	_, r := s.b.Dims()
	rows := make([]float64, len(index)*p)
	order := make([]int, len(index))
	for i, at := range index {
		order[i] = s.of.order[at]
	}
	at := *s.of
	at.order = order
	if err := at.read(0, len(index), rows); err != nil {
		return err
	}
	mat.NewDense(len(index), r, dst).Mul(mat.NewDense(len(index), p, rows), s.b)
	return nil
}
