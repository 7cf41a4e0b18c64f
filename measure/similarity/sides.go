package similarity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/linalg"
)

// sides are two representations of the same samples, the argument of statistic.of: all samples, the
// samples without a group, or shuffled pairs.
type sides struct {
	ctx      context.Context
	settings Settings
	x, y     *side
	place    []int    // of each sample in the order of all samples
	seed     uint64   // for ties among neighbours
	warnings []string // of the value, or why it is NaN
	near     *neighbourhoods
}

// warn notes a warning.
func (v *sides) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

// undefined returns NaN and notes why.
func (v *sides) undefined(format string, args ...any) (float64, error) {
	v.warn(format, args...)
	return math.NaN(), nil
}

// n returns the number of samples.
func (v *sides) n() int { return len(v.place) }

// A side is a representation of some of its samples, in some order. Values are computed when they
// are first needed.
type side struct {
	of      *representation
	at      []int // positions of the samples
	grams   [2]*pairMatrix
	point   [2]**mat.Dense
	factors [2]**coordinates
}

// centred and raw are indices of the forms of a side: about the mean of the samples, or as given.
const (
	centred = iota
	raw
)

// form returns the form that the setting centre asks for.
func (v *sides) form() int {
	if v.settings.Centre == "none" {
		return raw
	}
	return centred
}

// unit returns the factor from the units of Gram matrices, points and coordinates to those of the
// source.
func (s *side) unit() float64 { return 1 / s.of.scale }

// gram returns the inner products of the samples, scaled as the representation is. The caller must
// not change them.
func (s *side) gram(ctx context.Context, form int) (pairMatrix, error) {
	return cached(&s.grams[form], func() (pairMatrix, error) {
		all, err := s.of.grams(ctx, form)
		if err != nil {
			return pairMatrix{}, err
		}
		if isIdentity(s.at, all.n) {
			return all, nil
		}
		k := pairMatrix{len(s.at), make([]float64, len(s.at)*len(s.at))}
		for i, p := range s.at {
			from, to := all.row(p), k.row(i)
			for j, q := range s.at {
				to[j] = from[q]
			}
		}
		if form == centred && len(s.at) < all.n {
			k.centre()
		}
		return k, nil
	})
}

// grams returns the Gram matrix of all samples, centred or raw.
func (r *representation) grams(ctx context.Context, form int) (pairMatrix, error) {
	if form == centred {
		return r.gram(ctx)
	}
	return cached(&r.rawGram, func() (pairMatrix, error) {
		own := *r.centredSample
		own.mean = make([]float64, own.p)
		return gram(ctx, &own)
	})
}

// centre subtracts the means of rows and columns.
func (s pairMatrix) centre() {
	mean, n := make([]float64, s.n), float64(s.n)
	var all float64
	for i := range mean {
		for _, v := range s.row(i) {
			mean[i] += v / n
		}
		all += mean[i] / n
	}
	for i := range s.n {
		row := s.row(i)
		for j := range row {
			row[j] += all - mean[i] - mean[j]
		}
	}
}

// distances returns new matrices of the Euclidean distances of the samples of both sides, in units
// of the source or scaled.
func (v *sides) distances(units bool) (x, y pairMatrix, err error) {
	return v.each(func(s *side) (pairMatrix, error) { return s.distances(v.ctx, units) })
}

// distances returns a new matrix of the Euclidean distances of the samples, in units of the source or
// scaled.
func (s *side) distances(ctx context.Context, units bool) (pairMatrix, error) {
	k, err := s.gram(ctx, centred)
	if err != nil {
		return k, err
	}
	k.data = slices.Clone(k.data)
	norms, unit := k.diagonal(), 1.
	if units {
		unit = s.unit()
	}
	k.squaredDistances()
	for i := range k.n {
		row := k.row(i)
		for j, d := range row {
			if d <= tieTolerance*(norms[i]+norms[j]) { // equal samples but for rounding
				d = 0
			}
			row[j] = math.Sqrt(d) * unit
		}
	}
	return k, nil
}

// each calls f for both sides.
func (v *sides) each(f func(*side) (pairMatrix, error)) (x, y pairMatrix, err error) {
	if x, err = f(v.x); err == nil {
		y, err = f(v.y)
	}
	return x, y, err
}

var (
	errTooWide  = errors.New("too many variables for a matrix in memory: set pool: mean, or a smaller limit")
	errSingular = errors.New("the covariance of the second representation is singular: set ridge above 0")
)

// maxPoints bounds the values of a matrix of samples and variables in memory: 1 GiB.
const maxPoints = 1 << 27

// points returns the samples as a matrix of n x p, scaled as the representation is.
func (s *side) points(ctx context.Context, form int) (*mat.Dense, error) {
	return cached(&s.point[form], func() (*mat.Dense, error) {
		x, n := s.of.at(s.at), len(s.at)
		out := make([]float64, n*x.p)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := x.source.Read(x.order, out); err != nil {
			return nil, err
		}
		m := mat.NewDense(n, x.p, out)
		if x.scale != 1 {
			m.Scale(x.scale, m)
		}
		if form == centred {
			linalg.Centre64(out, x.p)
		}
		return m, nil
	})
}

// coordinates are the samples along their principal axes: u diag(s), n x k.
type coordinates struct {
	u *mat.Dense
	s []float64 // descending, above rounding
	p int       // variables
}

// coordinates returns the principal coordinates of the samples.
func (s *side) coordinates(ctx context.Context, form int) (*coordinates, error) {
	return cached(&s.factors[form], func() (*coordinates, error) {
		m, err := s.points(ctx, form)
		if err != nil {
			return nil, err
		}
		n, p := m.Dims()
		u, values, _, err := linalg.SVD(mat.DenseCopyOf(m))
		if err != nil {
			return nil, err
		}
		k := 0
		for k < len(values) && values[k] > values[0]*float64(max(n, p))*0x1p-52 {
			k++
		}
		if form == centred {
			k = min(k, n-1) // the rest is rounding
		}
		if k == 0 {
			return &coordinates{p: p}, nil
		}
		return &coordinates{mat.DenseCopyOf(u.Slice(0, n, 0, k)), values[:k], p}, nil
	})
}

// coordinates returns the principal coordinates of both sides and their products: m = Uxᵀ Uy, nil
// if one is constant.
func (v *sides) coordinates(form int) (x, y *coordinates, m *mat.Dense, err error) {
	if x, err = v.x.coordinates(v.ctx, form); err != nil {
		return nil, nil, nil, err
	}
	if y, err = v.y.coordinates(v.ctx, form); err != nil || len(x.s) == 0 || len(y.s) == 0 {
		return x, y, nil, err
	}
	m = new(mat.Dense)
	m.Mul(x.u.T(), y.u)
	return x, y, m, nil
}
