package similarity

import (
	"math"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

// An estimate is a statistic with what makes up its score.
type estimate struct {
	value, null float64
	replicates  []measure.Replicate
	warnings    []string
}

// undefined is the estimate of what has no value, and why.
func undefined(why string) estimate {
	return estimate{value: math.NaN(), null: math.NaN(), warnings: []string{why}}
}

// ratio is a / sqrt(b c): similarity from an inner product and two squared norms. Where both representations are constant it
// is 1, where one is, 0.
func ratio(a, b, c float64) float64 {
	switch {
	case b <= 0 && c <= 0:
		return 1
	case b <= 0 || c <= 0:
		return 0
	}
	// Two square roots, since the product may overflow.
	return a / math.Sqrt(b) / math.Sqrt(c)
}

// constants is the similarity where a representation does not vary; ok is false where both do.
func constants(x, y bool) (e estimate, ok bool) {
	nan := math.NaN()
	switch {
	case x && y:
		return estimate{value: 1, null: nan, warnings: []string{"both representations are constant: 1 by convention"}}, true
	case x || y:
		return estimate{value: 0, null: nan, warnings: []string{"one representation is constant: 0 by convention"}}, true
	}
	return estimate{}, false
}

// leaves lists the groups that a replicate leaves out, for each how many observations it has.
func (m *pair) leaves(each func(group, left int)) {
	for g, part := range m.groups {
		if part.N > 0 && part.N < m.xy.N {
			each(g, part.N)
		}
	}
}

// linearCKA is |Sxy|^2 / (|Sxx| |Syy|) in Frobenius norms (Kornblith et al. 2019, equation 3 in feature space). Its mean over
// all shuffles of the pairs is tr Sxx tr Syy / ((n - 1) |Sxx| |Syy|).
func (m *pair) linearCKA() estimate {
	if e, ok := constants(m.x.constant(), m.y.constant()); ok {
		return e
	}
	xx, yy := packedNorm(m.x.all.Data, m.x.all.P), packedNorm(m.y.all.Data, m.y.all.P)
	e := estimate{
		value: ratio(sumSquares(m.xy.Data), xx, yy),
		null:  ratio(trace(m.x.all)*trace(m.y.all), xx, yy) / float64(m.xy.N-1),
	}
	m.leaves(func(g, left int) {
		v := ratio(m.crossWithout(g), m.x.normWithout(g), m.y.normWithout(g))
		e.replicates = append(e.replicates, measure.Replicate{Value: v, Left: left})
	})
	return e
}

// debiasedCKA is the ratio of unbiased estimates of HSIC (Song et al. 2012; Nguyen et al. 2021, equation 3), from moments. Its mean
// over all shuffles is 0.
func (m *pair) debiasedCKA() estimate {
	if e, ok := constants(m.x.constant(), m.y.constant()); ok {
		return e
	}
	n := m.xy.N
	e := estimate{value: ratio(
		unbiasedHSIC(n, sumSquares(m.xy.Data), *m.norms),
		unbiasedHSIC(n, packedNorm(m.x.all.Data, m.x.all.P), *m.x.norms),
		unbiasedHSIC(n, packedNorm(m.y.all.Data, m.y.all.P), *m.y.norms),
	)}
	m.leaves(func(g, left int) {
		if n-left < 4 {
			return
		}
		norms := without(m.norms, m.groupNorms[g], jointMoments(m.xy), jointMoments(m.groups[g]))
		v := ratio(unbiasedHSIC(n-left, m.crossWithout(g), norms), m.x.unbiasedWithout(g), m.y.unbiasedWithout(g))
		e.replicates = append(e.replicates, measure.Replicate{Value: v, Left: left})
	})
	return e
}

// unbiasedHSIC is n (n - 3) times the unbiased estimate of HSIC, from the squared norm of C = sum u_i v_iᵀ and the diagonals
// of the centred Gram matrices, K' being K without its diagonal:
//
//	tr K'L' + 1ᵀK'1 1ᵀL'1 / ((n-1)(n-2)) - 2 1ᵀK'L'1 / (n-2),   with K1 = L1 = 0.
func unbiasedHSIC(n int, norm float64, q quartic) float64 {
	f := float64(n)
	return norm - q.ab + q.a*q.b/((f-1)*(f-2)) - 2*q.ab/(f-2)
}

// without is the quartic of all observations but a group's.
func without(all, group *quartic, m, part moments) quartic {
	rest := float64(m.n - part.n)
	away := func(mean, of []float64, from []float64) []float64 { // from a mean to that of the rest
		d := make([]float64, len(mean))
		for i := range d {
			d[i] = mean[i] - float64(part.n)/rest*(of[i]-mean[i]) - from[i]
		}
		return d
	}
	a := all.moved(m, away(m.meanX, part.meanX, m.meanX), away(m.meanY, part.meanY, m.meanY))
	b := group.moved(part, away(m.meanX, part.meanX, part.meanX), away(m.meanY, part.meanY, part.meanY))
	return quartic{ab: a.ab - b.ab, a: a.a - b.a, b: a.b - b.b}
}

func (s *side) unbiasedWithout(g int) float64 {
	part := s.groups[g]
	return unbiasedHSIC(s.all.N-part.N, s.normWithout(g), without(s.norms, s.groupNorms[g], scatterMoments(s.all), scatterMoments(part)))
}

// A removal is how the moments of n observations change when m of them are left out:
// S = S_n - S_m - n m / (n - m) (b - a)(b - a)ᵀ, for means a of all and b of the part.
type removal struct {
	factor float64
	x, y   []float64 // b - a
}

func removalOf(n, m int, ax, bx, ay, by []float64) removal {
	return removal{float64(n) * float64(m) / float64(n-m), difference(bx, ax), difference(by, ay)}
}

func (s *side) removal(g int) removal {
	part := s.groups[g]
	return removalOf(s.all.N, part.N, s.all.Mean, part.Mean, s.all.Mean, part.Mean)
}

func (m *pair) removal(g int) removal {
	part := m.groups[g]
	return removalOf(m.xy.N, part.N, m.xy.MeanX, part.MeanX, m.xy.MeanY, part.MeanY)
}

// normWithout is the squared norm of the scatter without a group.
func (s *side) normWithout(g int) float64 {
	r := s.removal(g)
	all, part := s.all.Data, s.groups[g].Data
	var diagonal, above float64
	for i := range s.all.P {
		width := s.all.P - i
		f := r.factor * r.x[i]
		for k, v := range all[:width] {
			d := v - float64(part[k]) - f*r.x[i+k]
			if k == 0 {
				diagonal += d * d
			} else {
				above += d * d
			}
		}
		all, part = all[width:], part[width:]
	}
	return diagonal + 2*above
}

// traceWithout is the trace of the scatter without a group.
func (s *side) traceWithout(g int) float64 {
	r := s.removal(g)
	return trace(s.all) - trace(s.groups[g]) - r.factor*dot(r.x, r.x)
}

// crossWithout is the squared norm of Sxy without a group.
func (m *pair) crossWithout(g int) float64 {
	r := m.removal(g)
	q := m.xy.Q
	var sum float64
	for i := range m.xy.P {
		part, f := m.groups[g].Data[i*q:(i+1)*q], r.factor*r.x[i]
		for j, v := range m.xy.Data[i*q : (i+1)*q] {
			d := v - float64(part[j]) - f*r.y[j]
			sum += d * d
		}
	}
	return sum
}

// packedNorm is the squared Frobenius norm of a symmetric matrix, of which the rows of the upper triangle follow each other.
func packedNorm(data []float64, p int) float64 {
	sum := 2 * sumSquares(data)
	for width := p; width > 0; width-- {
		sum -= data[0] * data[0]
		data = data[width:]
	}
	return sum
}

func sumSquares(data []float64) float64 {
	var a, b float64
	for ; len(data) >= 2; data = data[2:] {
		a += data[0] * data[0]
		b += data[1] * data[1]
	}
	for _, v := range data {
		a += v * v
	}
	return a + b
}

// symmetric copies a scatter out as a full square matrix.
func symmetric[T float32 | float64](s *linalg.Scatter[T]) []T {
	p, out := s.P, s.Square(0, s.P)
	for i := range p {
		for j := range i {
			out[i*p+j] = out[j*p+i]
		}
	}
	return out
}
