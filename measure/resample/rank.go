package resample

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Cutoff describes the choice of a rank K: the smallest number of leading eigenvalues of a
// scatter matrix whose sum is at least a given fraction of the sum of all.
//
// K is an integer, so on other samples it may differ by one or more, and a score of K dimensions
// jumps when K does. To estimate this variation, FractionalRank interpolates between integers.
type Cutoff struct {
	K        int       // the rank
	Values   []float64 // eigenvalues, descending, at least K of them
	Fraction float64   // the given fraction of Total
	Total    float64   // sum of all eigenvalues
}

// CountLeading returns the smallest k for which the first k values add up to at least sum, or
// len(values) if there is none.
func CountLeading(values []float64, sum float64) int {
	var partial float64
	for i, v := range values {
		if partial += v; partial >= sum {
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

// FractionalRank returns the rank at which the partial sum of eigenvalues, interpolated linearly
// between integers, reaches the fraction: above K - 1 and at most K. It is K if all K eigenvalues
// do not reach the fraction, which happens only by rounding.
func (c Cutoff) FractionalRank() float64 {
	if c.K == 0 {
		return 0
	}
	remaining := c.Fraction * c.Total
	for _, v := range c.Values[:c.K-1] {
		remaining -= v
	}
	last := max(remaining/c.Values[c.K-1], 0)
	if last > 1-1e-6 { // the fraction is 1, or reached up to rounding
		last = 1
	}
	return float64(c.K-1) + last
}

// Influence returns the change of FractionalRank, to first order, if some observations are counted
// twice. squares[i] is the sum of the squared coordinates of these observations along eigenvector
// i, for the first K eigenvectors, and total is the sum along all eigenvectors. Coordinates are
// relative to the mean of all observations.
func (c Cutoff) Influence(squares []float64, total float64) float64 {
	last := c.FractionalRank() - float64(c.K-1)
	if last == 1 { // further eigenvalues do not matter
		return 0
	}
	remaining := c.Fraction * total
	for _, v := range squares[:c.K-1] {
		remaining -= v
	}
	return (remaining - last*squares[c.K-1]) / c.Values[c.K-1]
}

// Ranks holds the fractional ranks of two subspaces, or differences of such ranks.
type Ranks struct{ X, Y float64 }

func (r Ranks) plus(o Ranks) Ranks { return Ranks{r.X + o.X, r.Y + o.Y} }

// A RankSlope holds the derivatives of a score with respect to the smaller and the larger of the
// ranks of two subspaces. The smaller rank is the number of canonical correlations.
type RankSlope struct{ Smaller, Larger float64 }

// at returns the linear part of the score at some ranks.
func (s RankSlope) at(r Ranks) float64 { return s.Smaller*min(r.X, r.Y) + s.Larger*max(r.X, r.Y) }

// NewRankSlope returns the slope of a score by finite differences. full is the score at the ranks p
// and q, and nearby holds the scores at NearbyRanks(p, q, maxP). maxP is the largest p at which the
// score can be computed.
func NewRankSlope(p, q, maxP int, full float64, nearby [2]float64) RankSlope {
	var slopes [2]float64
	for i, k := range NearbyRanks(p, q, maxP) {
		slopes[i] = ratio(nearby[i]-full, float64(k[0]+k[1]-p-q))
	}
	return RankSlope{Smaller: slopes[0], Larger: slopes[1]}
}

// NearbyRanks returns two pairs of ranks near p and q, at which NewRankSlope needs the score. Let
// step be a fiftieth of the smaller of p and q, rounded down, but at least 1. In the first pair the
// smaller rank (q if they are equal) is reduced by step. In the second pair the larger rank is
// reduced by step, but not below the smaller one; if p and q are equal, p is increased by step
// instead, to at most maxP. If no other rank is possible, a pair is p and q themselves.
func NearbyRanks(p, q, maxP int) [2][2]int {
	step := max(1, min(p, q)/50)
	out := [2][2]int{{p, q - step}, {p + min(step, maxP-p), q}}
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

// A RankSpread is the estimated sampling distribution of the fractional ranks of two subspaces:
// normal, with the jackknife's estimate of the covariance. A replicate of the jackknife is the
// value without one group of the observations.
type RankSpread struct {
	ranks Ranks        // of all observations
	l     [3]float64   // Cholesky factor of the covariance: x = l[0] z, y = l[1] z + l[2] z'
	coord [][2]float64 // z and z' of each replicate's deviation from the mean, in units of l
}

// NewRankSpread returns the spread of the fractional ranks of all n observations. Replicate i
// leaves out left[i] observations, which changes the ranks by changes[i]. The replicates are
// weighted as by Jackknife.
func NewRankSpread(ranks Ranks, changes []Ranks, left []int, n int) RankSpread {
	s := RankSpread{ranks: ranks}
	count := float64(len(changes))
	var mean Ranks
	for _, m := range changes {
		mean = mean.plus(Ranks{m.X / count, m.Y / count})
	}
	var xx, xy, yy float64
	for i, m := range changes {
		weight := (float64(n)/float64(left[i]) - 1) / count
		x, y := m.X-mean.X, m.Y-mean.Y
		xx, xy, yy = xx+weight*x*x, xy+weight*x*y, yy+weight*y*y
	}
	s.l[0] = math.Sqrt(xx)
	s.l[1] = ratio(xy, s.l[0])
	s.l[2] = math.Sqrt(max(yy-s.l[1]*s.l[1], 0))
	if s.l[2] < 1e-3*math.Sqrt(yy) { // the ranks are perfectly correlated
		s.l[2] = 0
	}
	for _, m := range changes {
		z := ratio(m.X-mean.X, s.l[0])
		s.coord = append(s.coord, [2]float64{z, ratio(m.Y-mean.Y-s.l[1]*z, s.l[2])})
	}
	return s
}

// ratio returns a / b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// at returns the fractional ranks at z and z' (z1).
func (s RankSpread) at(z, z1 float64) Ranks {
	return s.ranks.plus(Ranks{s.l[0] * z, s.l[1]*z + s.l[2]*z1})
}

// Shifts returns corrections to add to the replicates of a score, so that its interval includes the
// variation of the integer ranks over samples. They add the variance a - b. a is the variance of
// the score at ranks that are drawn with twice the variance of the spread, and rounded up: the
// observed ranks vary too, which doubles the variance of their difference from ranks on other
// samples. b is the variance of the score at fractional ranks drawn from the spread, which the
// replicates already contain. The correction of a replicate is proportional to the change of the
// score that the replicate's ranks cause to first order.
func (s RankSpread) Shifts(score RankSlope) []float64 {
	const points = 61     // number of points of the numeric integrals over z and over z'
	var z [points]float64 // quantiles of the standard normal distribution
	for i := range z {
		z[i] = distuv.UnitNormal.Quantile((float64(i) + 0.5) / points)
	}
	var fractional, rounded moments
	var gradient [2]float64 // slopes of the score along z and z'

	for _, a := range z {
		for _, b := range z {
			v := score.at(s.at(a, b)) - score.at(s.ranks)
			// The mean of v z is the slope of v along z, since z is standard normal.
			gradient[0] += v * a / (points * points)
			gradient[1] += v * b / (points * points)
			fractional.add(v)
			other := s.at(math.Sqrt2*a, math.Sqrt2*b)
			rounded.add(score.at(Ranks{math.Ceil(other.X), math.Ceil(other.Y)}))
		}
	}
	out := make([]float64, len(s.coord))
	scale := ratio(math.Sqrt(max(rounded.variance()-fractional.variance(), 0)), math.Hypot(gradient[0], gradient[1]))
	for i, c := range s.coord {
		out[i] = scale * (gradient[0]*c[0] + gradient[1]*c[1])
	}
	return out
}

// moments holds the count of some values, their sum and the sum of their squares.
type moments struct{ n, sum, square float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.square = m.n+1, m.sum+v, m.square+v*v }

func (m *moments) variance() float64 { return m.square/m.n - m.sum*m.sum/(m.n*m.n) }
