package similarity

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

// An estimate is the value of a statistic with its null, its jackknife replicates and its warnings.
type estimate struct {
	value, null float64
	replicates  []measure.Replicate
	warnings    []string
}

// undefinedEstimate returns the estimate of a statistic that has no value, and says why.
func undefinedEstimate(why string) estimate {
	return estimate{value: math.NaN(), null: math.NaN(), warnings: []string{why}}
}

// ratio returns a / sqrt(b c), the similarity from an inner product and two squared norms. It is 1
// if neither norm is positive, as for two constant representations, and 0 if one is not. Unbiased
// estimates of the norms may also be negative.
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

// constantEstimate returns the similarity where x, y or both do not vary; ok is false where both
// vary.
func constantEstimate(x, y bool) (e estimate, ok bool) {
	nan := math.NaN()
	switch {
	case x && y:
		return estimate{value: 1, null: nan, warnings: []string{"both representations are constant: 1 by convention"}}, true
	case x || y:
		return estimate{value: 0, null: nan, warnings: []string{"one representation is constant: 0 by convention"}}, true
	}
	return estimate{}, false
}

// eachGroup calls f for each group that a replicate leaves out, with its number of observations.
func (m *pairMoments) eachGroup(f func(group, left int)) {
	for g, part := range m.groups {
		if part.N > 0 && part.N < m.xy.N {
			f(g, part.N)
		}
	}
}

// linearCKA returns |Sxy|^2 / (|Sxx| |Syy|) in Frobenius norms (Kornblith et al. 2019, section
// 3.2). Its mean over all shuffles of the pairs is tr Sxx tr Syy / ((n - 1) |Sxx| |Syy|).
func (m *pairMoments) linearCKA() estimate {
	if e, ok := constantEstimate(m.x.constant(), m.y.constant()); ok {
		return e
	}
	xx, yy := packedNorm(m.x.all.Data, m.x.all.P), packedNorm(m.y.all.Data, m.y.all.P)
	e := estimate{
		value: ratio(floats.Dot(m.xy.Data, m.xy.Data), xx, yy),
		null:  ratio(trace(m.x.all)*trace(m.y.all), xx, yy) / float64(m.xy.N-1),
	}
	m.eachGroup(func(g, left int) {
		e.replicates = append(e.replicates, replicate(ratio(m.crossWithout(g), m.x.normWithout(g), m.y.normWithout(g)), left))
	})
	return e
}

// debiasedCKA returns the ratio of unbiased estimates of HSIC (Song et al. 2012; Nguyen et al.
// 2021, equation 3), from moments. Its mean over all shuffles of the pairs is 0.
func (m *pairMoments) debiasedCKA() estimate {
	if e, ok := constantEstimate(m.x.constant(), m.y.constant()); ok {
		return e
	}
	n := m.xy.N
	e := estimate{value: ratio(
		unbiasedHSIC(n, floats.Dot(m.xy.Data, m.xy.Data), *m.fourth[0]),
		unbiasedHSIC(n, packedNorm(m.x.all.Data, m.x.all.P), *m.x.fourth[0]),
		unbiasedHSIC(n, packedNorm(m.y.all.Data, m.y.all.P), *m.y.fourth[0]),
	)}
	m.eachGroup(func(g, left int) {
		if n-left < 4 {
			return
		}
		fourth := m.fourth[0].without(m.fourth[1+g], viewOfJoint(m.xy), viewOfJoint(m.groups[g]))
		v := ratio(unbiasedHSIC(n-left, m.crossWithout(g), fourth), m.x.unbiasedWithout(g), m.y.unbiasedWithout(g))
		e.replicates = append(e.replicates, replicate(v, left))
	})
	return e
}

// unbiasedHSIC returns n (n - 3) times the unbiased estimate of HSIC. norm is |C|^2 for
// C = sum_i u_i v_iᵀ, where u_i and v_i are the deviations of observation i from the means of x and y.
// K and L are the centred Gram matrices, u_i.u_j and v_i.v_j; t has the sums over their diagonals (see
// fourthMoments). With K' being K without its diagonal, and L' likewise, the estimate is
//
//	tr K'L' + 1ᵀK'1 1ᵀL'1 / ((n-1)(n-2)) - 2 1ᵀK'L'1 / (n-2),   where K1 = L1 = 0.
func unbiasedHSIC(n int, norm float64, t fourthMoments) float64 {
	f := float64(n)
	return norm - t.ab + t.a*t.b/((f-1)*(f-2)) - 2*t.ab/(f-2)
}

func (s *ownMoments) unbiasedWithout(g int) float64 {
	part := s.groups[g]
	fourth := s.fourth[0].without(s.fourth[1+g], viewOfScatter(s.all), viewOfScatter(part))
	return unbiasedHSIC(s.all.N-part.N, s.normWithout(g), fourth)
}

// A removal says how the moments of n observations change when m of them are left out:
// S = S_n - S_m - n m / (n - m) (b - a)(b - a)ᵀ, for means a of all and b of the part.
// Between two representations x and y the last factors are (b_x - a_x)(b_y - a_y)ᵀ.
type removal struct {
	factor float64
	x, y   []float64 // b - a
}

func removalOf(n, m int, ax, bx, ay, by []float64) removal {
	return removal{float64(n) * float64(m) / float64(n-m), difference(bx, ax), difference(by, ay)}
}

func (s *ownMoments) removal(g int) removal {
	part := s.groups[g]
	return removalOf(s.all.N, part.N, s.all.Mean, part.Mean, s.all.Mean, part.Mean)
}

func (m *pairMoments) removal(g int) removal {
	part := m.groups[g]
	return removalOf(m.xy.N, part.N, m.xy.MeanX, part.MeanX, m.xy.MeanY, part.MeanY)
}

// difference returns a - b.
func difference(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }

// sumOf returns a + b.
func sumOf(a, b []float64) []float64 { return floats.AddTo(make([]float64, len(a)), a, b) }

// normWithout returns the squared norm of the scatter without a group.
func (s *ownMoments) normWithout(g int) float64 {
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

// traceWithout returns the trace of the scatter without a group.
func (s *ownMoments) traceWithout(g int) float64 {
	r := s.removal(g)
	return trace(s.all) - trace(s.groups[g]) - r.factor*floats.Dot(r.x, r.x)
}

// crossWithout returns the squared norm of Sxy without a group.
func (m *pairMoments) crossWithout(g int) float64 {
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

// packedNorm returns the squared Frobenius norm of a symmetric p x p matrix. data holds the rows of
// its upper triangle, one after another.
func packedNorm(data []float64, p int) float64 {
	sum := 2 * floats.Dot(data, data)
	for width := p; width > 0; width-- {
		sum -= data[0] * data[0]
		data = data[width:]
	}
	return sum
}

// fullMatrix returns a scatter as a full symmetric matrix: p x p, row-major.
func fullMatrix[T float32 | float64](s *linalg.Scatter[T]) []T {
	p, out := s.P, s.Square(0, s.P)
	for i := range p {
		for j := range i {
			out[i*p+j] = out[j*p+i]
		}
	}
	return out
}
