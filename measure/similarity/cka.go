package similarity

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/linalg"
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

// constantEstimate returns the similarity where a representation is constant. x and y report
// whether the first and the second one are. ok is false where neither is.
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
// pairMoments has the second moments of two representations x and y of the same observations, and
// singleMoments those of one: over all observations, and over those of each group.
func (m *pairMoments) eachGroup(f func(group, left int)) {
	for g, part := range m.groups {
		if part.N > 0 && part.N < m.xy.N {
			f(g, part.N)
		}
	}
}

// cka returns CKA from the HSIC of x and y and that of each with itself, all biased (linear CKA,
// Kornblith et al. 2019, section 3.2) or all unbiased (debiased CKA, Nguyen et al. 2021, equation
// 3). The null is the mean over all shuffles of the pairs: tr(HKH) tr(HLH) / ((n - 1) |HKH| |HLH|)
// for biased estimates, 0 for unbiased ones. K and L are the n x n Gram matrices of x and y, and H
// subtracts the mean. An hsicSum holds the sums from which HSIC is computed: m samples, the inner
// product of K and L, the sums k and l of all elements, the traces trk and trl, and kl, the inner
// product of the row sums. hsicSums has those of all samples, and those without each group (rest).
func cka(xy, xx, yy hsicSums, unbiased bool) estimate {
	hsic, minSamples := hsicSum.biased, 2
	if unbiased {
		hsic, minSamples = hsicSum.unbiased, 4
	}
	all := xy.all
	e := estimate{value: ratio(hsic(all), hsic(xx.all), hsic(yy.all))}
	if !unbiased {
		n := float64(all.m)
		e.null = ratio((all.trk-all.k/n)*(all.trl-all.l/n), hsic(xx.all), hsic(yy.all)) / (n - 1)
	}
	for g, a := range xy.rest {
		if a.m >= minSamples && a.m < all.m {
			e.replicates = append(e.replicates, replicate(ratio(hsic(a), hsic(xx.rest[g]), hsic(yy.rest[g])), all.m-a.m))
		}
	}
	return e
}

// centredSum returns the sums of HSIC of n observations. norm is |C|^2 for C = sum_i u_i v_iᵀ,
// where u_i and v_i are the deviations of observation i from the means of x and y. So it is <K, L>
// of the centred Gram matrices, whose rows have the sum 0. Unbiased estimates are of matrices
// without their diagonals, for which t has the sums over these (see fourthMoments); t is nil for
// biased ones.
func centredSum(n int, norm float64, t *fourthMoments) hsicSum {
	if t == nil {
		return hsicSum{m: n, inner: norm}
	}
	return hsicSum{m: n, inner: norm - t.ab, kl: t.ab, k: -t.a, l: -t.b}
}

// hsic returns the sums of HSIC of x and y.
func (m *pairMoments) hsic(unbiased bool) hsicSums {
	out := momentSums(m.xy.N, floats.Dot(m.xy.Data, m.xy.Data), m.fourth, unbiased, len(m.groups), func(g int) (int, float64, fourthMoments) {
		part, t := m.groups[g], fourthMoments{}
		if unbiased {
			t = m.fourth[0].without(m.fourth[1+g], viewOfCross(m.xy), viewOfCross(part))
		}
		return part.N, m.crossWithout(g), t
	})
	out.all.trk, out.all.trl = trace(m.x.all), trace(m.y.all)
	return out
}

// hsic returns the sums of HSIC of the representation with itself.
func (s *singleMoments) hsic(unbiased bool) hsicSums {
	return momentSums(s.all.N, packedNorm(s.all.Data, s.all.P), s.fourth, unbiased, len(s.groups), func(g int) (int, float64, fourthMoments) {
		part, t := s.groups[g], fourthMoments{}
		if unbiased {
			t = s.fourth[0].without(s.fourth[1+g], viewOfScatter(s.all), viewOfScatter(part))
		}
		return part.N, s.normWithout(g), t
	})
}

// momentSums returns the sums of HSIC of n observations, and those without each group. without
// returns the number of observations in a group, and the squared norm and the fourth moments
// without it. fourth holds the fourth moments of all observations, then those of each group; it is
// not used for biased estimates.
func momentSums(n int, norm float64, fourth []*fourthMoments, unbiased bool, groups int, without func(g int) (left int, norm float64, t fourthMoments)) hsicSums {
	out := hsicSums{rest: make([]hsicSum, groups)}
	if unbiased {
		out.all = centredSum(n, norm, fourth[0])
	} else {
		out.all = centredSum(n, norm, nil) // nil: biased
	}
	for g := range out.rest {
		left, norm, t := without(g)
		if unbiased {
			out.rest[g] = centredSum(n-left, norm, &t)
		} else {
			out.rest[g] = centredSum(n-left, norm, nil)
		}
	}
	return out
}

// A removal describes how the moments of n observations change when a group of m of them is left
// out: S = S_n - S_m - n m / (n - m) (b - a)(b - a)ᵀ, where S, S_n and S_m are the scatters (sums
// of products of deviations from the mean) of the rest, of all and of the group, a is the mean of
// all and b that of the group. Between two representations x and y the last factors are
// (b_x - a_x)(b_y - a_y)ᵀ.
type removal struct {
	factor float64   // n m / (n - m)
	x, y   []float64 // b - a
}

// removalOf returns the removal of a group of m of n observations, with the means ax and ay of all
// and bx and by of the group.
func removalOf(n, m int, ax, bx, ay, by []float64) removal {
	return removal{float64(n) * float64(m) / float64(n-m), difference(bx, ax), difference(by, ay)}
}

func (s *singleMoments) removal(g int) removal {
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
func (s *singleMoments) normWithout(g int) float64 {
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
func (s *singleMoments) traceWithout(g int) float64 {
	r := s.removal(g)
	return trace(s.all) - trace(s.groups[g]) - r.factor*floats.Dot(r.x, r.x)
}

// crossWithout returns the squared norm of the p x q scatter between x and y without a group.
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
