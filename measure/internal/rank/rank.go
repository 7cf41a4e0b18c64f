// Package rank says what scores that count patterns up to a fraction of the variance gain and lose by the jumps of their ranks.
package rank

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Pair is two numbers of patterns, those of one representation and of another, or differences of them.
type Pair struct{ X, Y float64 }

func (p Pair) plus(o Pair) Pair { return Pair{p.X + o.X, p.Y + o.Y} }

// A Slope is what a score gains with the smaller and with the larger of two ranks: the smaller one counts the correlations.
type Slope struct{ Smaller, Larger float64 }

func (s Slope) at(r Pair) float64 { return s.Smaller*min(r.X, r.Y) + s.Larger*max(r.X, r.Y) }

// SlopeOf is the slope of a score that is full at the ranks p and q, and seen at their neighbours.
func SlopeOf(p, q, most int, full float64, seen [2]float64) Slope {
	var by [2]float64
	for i, k := range Neighbours(p, q, most) {
		by[i] = ratio(seen[i]-full, float64(k[0]+k[1]-p-q))
	}
	return Slope{Smaller: by[0], Larger: by[1]}
}

// Neighbours are the ranks at which to look for what the smaller and the larger of p and q are worth: a fiftieth fewer of the smaller, or of q where they
// are equal, and fewer of the larger, or more of p, of which there are most. They are p and q themselves where there are none.
func Neighbours(p, q, most int) [2][2]int {
	step := max(1, min(p, q)/50)
	out := [2][2]int{{p, q - step}, {p + min(step, most-p), q}}
	switch {
	case p < q:
		out = [2][2]int{{p - step, q}, {p, q - min(step, q-p)}}
	case q < p:
		out[1] = [2]int{p - min(step, p-q), q}
	}
	if min(out[0][0], out[0][1]) < 1 {
		out[0] = [2]int{p, q}
	}
	return out
}

// A Spread is how far from where these samples reach the fraction of the variance others do: normal, with the covariance of
// the replicates. l is its Cholesky factor: x = l[0] z, y = l[1] z + l[2] z'.
type Spread struct {
	reach Pair
	l     [3]float64
	where [][2]float64 // z and z' of the replicates
}

// SpreadOf is the spread around a reach. Replicates without left of n observations, in turn, move it by moves; they weigh as
// measure.Jackknife weighs them.
func SpreadOf(reach Pair, moves []Pair, left []int, n int) Spread {
	s := Spread{reach: reach}
	count := float64(len(moves))
	var mean Pair
	for _, m := range moves {
		mean = mean.plus(Pair{m.X / count, m.Y / count})
	}
	var xx, xy, yy float64
	for i, m := range moves {
		weight := (float64(n)/float64(left[i]) - 1) / count
		x, y := m.X-mean.X, m.Y-mean.Y
		xx, xy, yy = xx+weight*x*x, xy+weight*x*y, yy+weight*y*y
	}
	s.l[0] = math.Sqrt(xx)
	s.l[1] = ratio(xy, s.l[0])
	s.l[2] = math.Sqrt(max(yy-s.l[1]*s.l[1], 0))
	if s.l[2] < 1e-3*math.Sqrt(yy) { // both views move alike
		s.l[2] = 0
	}
	for _, m := range moves {
		z := ratio(m.X-mean.X, s.l[0])
		s.where = append(s.where, [2]float64{z, ratio(m.Y-mean.Y-s.l[1]*z, s.l[2])})
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
func (s Spread) at(z, z1 float64) Pair {
	return s.reach.plus(Pair{s.l[0] * z, s.l[1]*z + s.l[2]*z1})
}

// Drifts are what the replicates are to differ by for the ranks that other samples have, for a score of a slope. Ranks are whole numbers, so a score
// jumps where the fraction is reached near one, and stays where it is not, however many the samples. How far other samples' ranks lie
// from these has twice the variance of where they reach the fraction: these samples' reach is not the true one either. What that adds
// where ranks are not rounded is taken off again.
func (s Spread) Drifts(score Slope) []float64 {
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
			whole.add(score.at(Pair{math.Ceil(far.X), math.Ceil(far.Y)}))
		}
	}
	out := make([]float64, len(s.where))
	scale := ratio(math.Sqrt(max(whole.variance()-smooth.variance(), 0)), math.Hypot(along[0], along[1]))
	for i, h := range s.where {
		out[i] = scale * (along[0]*h[0] + along[1]*h[1])
	}
	return out
}

// moments are the sums of numbers and of their squares.
type moments struct{ n, sum, square float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.square = m.n+1, m.sum+v, m.square+v*v }

func (m *moments) variance() float64 { return m.square/m.n - m.sum*m.sum/(m.n*m.n) }
