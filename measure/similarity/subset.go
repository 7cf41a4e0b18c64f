package similarity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// A subsetPair is the argument of statistic.compute: all samples, those outside a jackknife group,
// or shuffled pairs.
type subsetPair struct {
	ctx      context.Context
	settings Settings
	x, y     *subset
	place    []int           // position of each sample of x in the order of all samples; determines its cross-validation fold
	seed     uint64          // for ties among neighbours
	warnings []string        // of the value, or why it is NaN
	near     *neighbourhoods // result of the method neighbourhoods
}

func (v *subsetPair) warn(format string, args ...any) {
	v.warnings = append(v.warnings, fmt.Sprintf(format, args...))
}

func (v *subsetPair) undefined(format string, args ...any) (float64, error) {
	v.warn(format, args...)
	return math.NaN(), nil
}

func (v *subsetPair) n() int { return len(v.place) }

// A subset is a representation on some samples in some order, computed when needed.
type subset struct {
	of *representation // of all samples
	at []int           // positions of the samples in of
	// results of the methods gram, points and coordinates, for each centring
	grams   [2]*pairMatrix
	point   [2]**mat.Dense
	factors [2]**coordinates
}

// The centrings of a subset: about the mean of its samples, or as given.
const (
	centred = iota
	raw
)

func (v *subsetPair) centring() int {
	if v.settings.Centre == "none" {
		return raw
	}
	return centred
}

// unit turns values of points and coordinates into the source's; its square Gram matrices.
func (s *subset) unit() float64 { return 1 / s.of.scale }

// gram returns scaled inner products, not to be changed.
func (s *subset) gram(ctx context.Context, centring int) (pairMatrix, error) {
	return cached(&s.grams[centring], func() (pairMatrix, error) {
		all, err := s.of.grams(ctx, centring)
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
		if centring == centred && len(s.at) < all.n {
			k.centre()
		}
		return k, nil
	})
}

func (r *representation) grams(ctx context.Context, centring int) (pairMatrix, error) {
	if centring == centred {
		return r.gram(ctx)
	}
	return cached(&r.rawGram, func() (pairMatrix, error) {
		own := *r.centredSample
		own.mean = make([]float64, own.p)
		return gram(ctx, &own)
	})
}

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

// distances returns new Euclidean distances of both, in units of the source or scaled.
func (v *subsetPair) distances(units bool) (x, y pairMatrix, err error) {
	return v.each(func(s *subset) (pairMatrix, error) { return s.distances(v.ctx, units) })
}

// distances returns new Euclidean distances, in units of the source or scaled.
func (s *subset) distances(ctx context.Context, units bool) (pairMatrix, error) {
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

func (v *subsetPair) each(f func(*subset) (pairMatrix, error)) (x, y pairMatrix, err error) {
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

// points returns samples x variables, scaled.
func (s *subset) points(ctx context.Context, centring int) (*mat.Dense, error) {
	return cached(&s.point[centring], func() (*mat.Dense, error) {
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
		if centring == centred {
			linalg.Centre64(out, x.p)
		}
		return m, nil
	})
}

// coordinates are the samples along their principal axes: u diag(s), n x k.
type coordinates struct {
	u *mat.Dense // n x k, orthonormal columns
	s []float64  // k values, descending, above rounding
	p int        // number of variables
}

func (s *subset) coordinates(ctx context.Context, centring int) (*coordinates, error) {
	return cached(&s.factors[centring], func() (*coordinates, error) {
		m, err := s.points(ctx, centring)
		if err != nil {
			return nil, err
		}
		n, p := m.Dims()
		u, values, _, err := linalg.SVD(mat.DenseCopyOf(m))
		if err != nil {
			return nil, err
		}
		k := 0
		for k < len(values) && values[k] > values[0]*float64(max(n, p))*0x1p-52 { // smaller ones are rounding errors of float64
			k++
		}
		if centring == centred {
			k = min(k, n-1) // the rest is rounding errors
		}
		if k == 0 {
			return &coordinates{p: p}, nil
		}
		return &coordinates{mat.DenseCopyOf(u.Slice(0, n, 0, k)), values[:k], p}, nil
	})
}

// coordinates also returns m = Uxᵀ Uy, nil if one subset is constant.
func (v *subsetPair) coordinates(centring int) (x, y *coordinates, m *mat.Dense, err error) {
	if x, err = v.x.coordinates(v.ctx, centring); err != nil {
		return nil, nil, nil, err
	}
	if y, err = v.y.coordinates(v.ctx, centring); err != nil || len(x.s) == 0 || len(y.s) == 0 {
		return x, y, nil, err
	}
	m = new(mat.Dense)
	m.Mul(x.u.T(), y.u)
	return x, y, m, nil
}
