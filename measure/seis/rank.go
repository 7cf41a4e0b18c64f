package seis

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/linalg"
)

// ranks are two numbers of patterns, those of the clean view and of the moved one, or differences of them.
type ranks struct{ x, y float64 }

func (r ranks) plus(o ranks) ranks { return ranks{r.x + o.x, r.y + o.y} }

// A slope is what a score gains with the smaller and with the larger of the two ranks: their smaller one counts the correlations.
type slope struct{ smaller, larger float64 }

func (s slope) at(r ranks) float64 { return s.smaller*min(r.x, r.y) + s.larger*max(r.x, r.y) }

// slopesOf computes both scores with a few patterns fewer in the smaller subspace, or in either where they are equal, and in the larger one,
// or with more in either. full are the scores as they are.
func slopesOf(w linalg.Whole, u, v linalg.Subspace, full result) (equivariance, invariance slope, err error) {
	p, q := u.K, v.K
	step := max(1, min(p, q)/50)
	smaller, larger := [2]int{p, q - step}, [2]int{p + min(step, len(u.Values)-p), q}
	switch {
	case p < q:
		smaller, larger = [2]int{p - step, q}, [2]int{p, q - min(step, q-p)}
	case q < p:
		larger = [2]int{p - min(step, p-q), q}
	}
	for i, k := range [][2]int{smaller, larger} {
		by := float64(k[0] + k[1] - p - q)
		if by == 0 || k[0] < 1 || k[1] < 1 {
			continue
		}
		s, err := scoresOfPair(w.At(k[0], k[1]))
		if err != nil {
			return slope{}, slope{}, err
		}
		e, n := (s.equivariance-full.equivariance)/by, (s.invariance-full.invariance)/by
		if i == 0 {
			equivariance.smaller, invariance.smaller = e, n
		} else {
			equivariance.larger, invariance.larger = e, n
		}
	}
	return equivariance, invariance, nil
}

// A spread is how far from where these samples reach the fraction of the variance others do: normal, with the covariance of the
// halves. l is its Cholesky factor: x = l[0] z, y = l[1] z + l[2] z'.
type spread struct {
	reach ranks
	l     [3]float64
	halfs [][2]float64 // z and z' of the halves
}

func spreadOf(reach ranks, replicates []replicate, n int) spread {
	s := spread{reach: reach}
	count := float64(len(replicates))
	var mean ranks
	for _, r := range replicates {
		mean = mean.plus(ranks{r.move.x / count, r.move.y / count})
	}
	var xx, xy, yy float64
	for _, r := range replicates {
		weight := (float64(n)/float64(r.left) - 1) / count // as measure.Jackknife has it
		x, y := r.move.x-mean.x, r.move.y-mean.y
		xx, xy, yy = xx+weight*x*x, xy+weight*x*y, yy+weight*y*y
	}
	s.l[0] = math.Sqrt(xx)
	s.l[1] = ratio(xy, s.l[0])
	s.l[2] = math.Sqrt(max(yy-s.l[1]*s.l[1], 0))
	if s.l[2] < 1e-3*math.Sqrt(yy) { // both views move alike
		s.l[2] = 0
	}
	for _, r := range replicates {
		z := ratio(r.move.x-mean.x, s.l[0])
		s.halfs = append(s.halfs, [2]float64{z, ratio(r.move.y-mean.y-s.l[1]*z, s.l[2])})
	}
	return s
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// at is the ranks at z and z', were they not whole.
func (s spread) at(z, z1 float64) ranks {
	return s.reach.plus(ranks{s.l[0] * z, s.l[1]*z + s.l[2]*z1})
}

// drifts are what the halves are to differ by for the ranks that other samples have, for a score of a slope. Ranks are whole numbers, so a score
// jumps where the fraction is reached near one, and stays where it is not, however many the samples. How far other samples' ranks lie
// from these has twice the variance of where they reach the fraction: these samples' reach is not the true one either. What that adds
// where ranks are not rounded is taken off again.
func (s spread) drifts(score slope) []float64 {
	const side = 61
	var z [side]float64
	for i := range z {
		z[i] = distuv.UnitNormal.Quantile((float64(i) + 0.5) / side)
	}
	var smooth, whole moments
	var along [2]float64
	for _, a := range z {
		for _, b := range z {
			v := score.at(s.at(a, b)) - score.at(s.reach)
			along[0] += v * a / (side * side)
			along[1] += v * b / (side * side)
			smooth.add(v)
			far := s.at(math.Sqrt2*a, math.Sqrt2*b)
			whole.add(score.at(ranks{math.Ceil(far.x), math.Ceil(far.y)}))
		}
	}
	out := make([]float64, len(s.halfs))
	scale := ratio(math.Sqrt(max(whole.variance()-smooth.variance(), 0)), math.Hypot(along[0], along[1]))
	for i, h := range s.halfs {
		out[i] = scale * (along[0]*h[0] + along[1]*h[1])
	}
	return out
}

// moments are the sums of numbers and of their squares.
type moments struct{ n, sum, square float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.square = m.n+1, m.sum+v, m.square+v*v }

func (m *moments) variance() float64 { return m.square/m.n - m.sum*m.sum/(m.n*m.n) }
