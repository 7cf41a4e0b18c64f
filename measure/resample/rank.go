package resample

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Cutoff is where the eigenvalues of a scatter are cut off: the K largest hold a fraction of
// their sum.
//
// Ranks are whole numbers, so a score of K dimensions jumps where the fraction is reached near a
// whole number, and other samples may have another K. To account for that, eigenvalues are counted
// in parts.
type Cutoff struct {
	K        int
	Values   []float64 // eigenvalues, descending, K of them or more
	Fraction float64   // of the sum that was asked for
	Total    float64   // the sum of all eigenvalues
}

// CountLeading returns how many of the values, from the first on, add up to at least sum: all of
// them where they do not.
func CountLeading(values []float64, sum float64) int {
	var part float64
	for i, v := range values {
		if part += v; part >= sum {
			return i + 1
		}
	}
	return len(values)
}

// SumPositive returns the sum of the values above 0.
func SumPositive(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += max(v, 0)
	}
	return sum
}

// FractionalRank returns where the fraction is reached if eigenvalues are counted in parts: above K
// - 1 and at most K. It is K where the fraction is not reached, for what is left is rounding.
func (c Cutoff) FractionalRank() float64 {
	if c.K == 0 {
		return 0
	}
	lacking := c.Fraction * c.Total
	for _, v := range c.Values[:c.K-1] {
		lacking -= v
	}
	last := max(lacking/c.Values[c.K-1], 0)
	if last > 1-1e-6 { // for instance where the fraction is 1
		last = 1
	}
	return float64(c.K-1) + last
}

// Influence returns what some observations add to FractionalRank, to first order, where they are
// counted twice. squares holds the summed squares of their coordinates in the first K axes, and
// total is their summed variance, both about the mean of all observations.
func (c Cutoff) Influence(squares []float64, total float64) float64 {
	last := c.FractionalRank() - float64(c.K-1)
	if last == 1 { // further eigenvalues do not matter
		return 0
	}
	lacking := c.Fraction * total
	for _, v := range squares[:c.K-1] {
		lacking -= v
	}
	return (lacking - last*squares[c.K-1]) / c.Values[c.K-1]
}

// Ranks are the numbers of dimensions of two subspaces, counted in parts, or differences of them.
type Ranks struct{ X, Y float64 }

func (r Ranks) plus(o Ranks) Ranks { return Ranks{r.X + o.X, r.Y + o.Y} }

// A RankSlope is what a score gains for each dimension of the smaller and of the larger of two
// subspaces. The smaller one says how many canonical correlations there are.
type RankSlope struct{ Smaller, Larger float64 }

func (s RankSlope) at(r Ranks) float64 { return s.Smaller*min(r.X, r.Y) + s.Larger*max(r.X, r.Y) }

// NewRankSlope returns the slope of a score that is full at the ranks p and q, and nearby at their
// NearbyRanks.
func NewRankSlope(p, q, most int, full float64, nearby [2]float64) RankSlope {
	var by [2]float64
	for i, k := range NearbyRanks(p, q, most) {
		by[i] = ratio(nearby[i]-full, float64(k[0]+k[1]-p-q))
	}
	return RankSlope{Smaller: by[0], Larger: by[1]}
}

// NearbyRanks returns the ranks at which to compute a score for NewRankSlope: a fiftieth fewer of
// the smaller of p and q, or of q where they are equal; and fewer of the larger, or more of p, of
// which there are most. They are p and q themselves where there are none.
func NearbyRanks(p, q, most int) [2][2]int {
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

// A RankSpread is how far the fractional ranks of other samples lie from those of these: normal,
// with the covariance of the replicates.
type RankSpread struct {
	ranks Ranks
	l     [3]float64   // Cholesky factor of the covariance: x = l[0] z, y = l[1] z + l[2] z'
	where [][2]float64 // z and z' of the replicates
}

// NewRankSpread returns the spread around the fractional ranks of all n observations. Replicate i
// leaves out left[i] of them, which changes the ranks by moves[i]. They weigh as Jackknife weighs
// them.
func NewRankSpread(ranks Ranks, moves []Ranks, left []int, n int) RankSpread {
	s := RankSpread{ranks: ranks}
	count := float64(len(moves))
	var mean Ranks
	for _, m := range moves {
		mean = mean.plus(Ranks{m.X / count, m.Y / count})
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
	if s.l[2] < 1e-3*math.Sqrt(yy) { // both ranks vary together
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

// at returns the fractional ranks at z and z'.
func (s RankSpread) at(z, z1 float64) Ranks {
	return s.ranks.plus(Ranks{s.l[0] * z, s.l[1]*z + s.l[2]*z1})
}

// Shifts returns what is to be added to the replicates of a score for the ranks that other samples
// have. How far their ranks lie from these has twice the variance of the spread, since the ranks of
// these samples vary too. What that would add if ranks were not rounded is subtracted again, for
// the replicates show it already.
func (s RankSpread) Shifts(score RankSlope) []float64 {
	const side = 61
	var z [side]float64
	for i := range z {
		z[i] = distuv.UnitNormal.Quantile((float64(i) + 0.5) / side)
	}
	var smooth, whole moments
	var along [2]float64
	for _, a := range z {
		for _, b := range z {
			v := score.at(s.at(a, b)) - score.at(s.ranks)
			along[0] += v * a / (side * side)
			along[1] += v * b / (side * side)
			smooth.add(v)
			far := s.at(math.Sqrt2*a, math.Sqrt2*b)
			whole.add(score.at(Ranks{math.Ceil(far.X), math.Ceil(far.Y)}))
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
