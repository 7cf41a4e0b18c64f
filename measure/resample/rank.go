package resample

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Cutoff describes the choice of a rank K: the smallest number of leading eigenvalues of a
// scatter matrix whose sum is at least a given fraction of the sum of all.
//
// On other samples the integer K may differ, and a score of K dimensions jumps. FractionalRank
// interpolates to estimate this.
type Cutoff struct {
	K        int       // the rank
	Values   []float64 // eigenvalues, descending, at least K of them
	Fraction float64   // the given fraction of Total
	Total    float64   // sum of all eigenvalues
}

// CountLeading returns the smallest k whose first k values add up to sum, or len(values).
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

// FractionalRank returns where the interpolated partial sum reaches the fraction: above K - 1, at
// most K. Rounding can leave it short; then it is K.
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

// Influence returns, to first order, the change of FractionalRank if some observations count twice.
// squares[i] sums their squared coordinates, relative to the mean of all, along eigenvector i of K,
// total along all.
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

// A RankSlope holds the derivatives of a score by the smaller rank, the number of canonical
// correlations, and the larger.
type RankSlope struct{ Smaller, Larger float64 }

func (s RankSlope) at(r Ranks) float64 { return s.Smaller*min(r.X, r.Y) + s.Larger*max(r.X, r.Y) }

// NewRankSlope returns slopes by finite differences, from the score full at p, q and those at
// NearbyRanks(p, q, maxP). maxP is the largest p at which the score can be computed.
func NewRankSlope(p, q, maxP int, full float64, nearby [2]float64) RankSlope {
	var slopes [2]float64
	for i, k := range NearbyRanks(p, q, maxP) {
		slopes[i] = ratio(nearby[i]-full, float64(k[0]+k[1]-p-q))
	}
	return RankSlope{Smaller: slopes[0], Larger: slopes[1]}
}

// NearbyRanks returns two pairs of ranks near p and q. With step a fiftieth of the smaller, at
// least 1: the first pair reduces the smaller rank (q if equal), the second the larger, not below
// the smaller one; if p = q, p is increased, to at most maxP. A pair that cannot change is p and q.
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

// A RankSpread is the estimated, normal distribution of the fractional ranks of two subspaces, with
// jackknife covariance.
type RankSpread struct {
	ranks Ranks        // of all observations
	l     [3]float64   // Cholesky factor of the covariance: x = l[0] z, y = l[1] z + l[2] z'
	coord [][2]float64 // z and z' of each replicate's deviation from the mean, in units of l
}

// NewRankSpread returns the spread of the ranks of n observations. Replicate i leaves out left[i]
// of them and changes ranks by changes[i], weighted as by Jackknife.
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

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (s RankSpread) at(z, z1 float64) Ranks {
	return s.ranks.plus(Ranks{s.l[0] * z, s.l[1]*z + s.l[2]*z1})
}

// Shifts returns corrections of a score's replicates, so that its interval includes the variation
// of integer ranks: the variance a - b, with a of the score at ranks drawn with twice the spread's
// variance, since the observed ranks vary too, and rounded up, and b at fractional ranks, which
// replicates contain already. Each is proportional to the first-order effect of its ranks.
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

type moments struct{ n, sum, square float64 }

func (m *moments) add(v float64) { m.n, m.sum, m.square = m.n+1, m.sum+v, m.square+v*v }

func (m *moments) variance() float64 { return m.square/m.n - m.sum*m.sum/(m.n*m.n) }
