package similarity

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
)

type estimate struct {
	value, null float64
	drawn       drawnNull // how null was found, if from shuffles
	replicates  []measure.Replicate
	warnings    []string
}

func undefinedEstimate(why string) estimate {
	return estimate{value: math.NaN(), null: math.NaN(), warnings: []string{why}}
}

// ratio returns a / sqrt(b c), an inner product over norms: 1 if neither norm is positive, 0 if one
// is not. Unbiased estimates may be negative.
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

// constantEstimate returns the similarity if x or y is constant; ok is false otherwise.
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

// eachGroup calls f for each group that a replicate leaves out, with its observations.
func (m *pairMoments) eachGroup(f func(group, left int)) {
	for g, part := range m.groups {
		if part.N > 0 && part.N < m.xy.N {
			f(g, part.N)
		}
	}
}

// cka returns CKA from HSIC, all biased (Kornblith et al. 2019, section 3.2) or all unbiased
// (debiased, Nguyen et al. 2021, equation 3). The null, the mean over shuffles, is tr(HKH) tr(HLH)
// / ((n - 1) |HKH| |HLH|) if biased, else 0. K and L are Gram matrices, H subtracts the mean; an
// hsicSum is described there, and rest leaves out a group each.
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

// centredSum returns HSIC's sums of n observations. norm is |C|^2 of C = sum_i u_i v_iᵀ of
// deviations from the means, so it is <K, L> of centred Gram matrices, with row sums 0. Unbiased
// estimates lack diagonals, in t (see fourthMoments); else t is nil.
func centredSum(n int, norm float64, t *fourthMoments) hsicSum {
	if t == nil {
		return hsicSum{m: n, inner: norm}
	}
	return hsicSum{m: n, inner: norm - t.ab, kl: t.ab, k: -t.a, l: -t.b}
}

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

func (s *singleMoments) hsic(unbiased bool) hsicSums {
	return momentSums(s.all.N, packedNorm(s.all.Data, s.all.P), s.fourth, unbiased, len(s.groups), func(g int) (int, float64, fourthMoments) {
		part, t := s.groups[g], fourthMoments{}
		if unbiased {
			t = s.fourth[0].without(s.fourth[1+g], viewOfScatter(s.all), viewOfScatter(part))
		}
		return part.N, s.normWithout(g), t
	})
}

// momentSums returns HSIC's sums, and those without each group, with without's observations, norm
// and fourth moments. fourth has those of all, then of each group, for unbiased estimates.
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

// A removal describes moments without m of n observations: S = S_n - S_m - n m / (n - m) (b - a)(b
// - a)ᵀ, scatters of the rest, all and the group, with means a of all and b of the group. Between x
// and y the factors are (b_x - a_x)(b_y - a_y)ᵀ.
type removal struct {
	factor float64   // n m / (n - m)
	x, y   []float64 // b - a
}

// removalOf takes the means ax, ay of all n and bx, by of the group of m.
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

func difference(a, b []float64) []float64 { return floats.SubTo(make([]float64, len(a)), a, b) }

func sumOf(a, b []float64) []float64 { return floats.AddTo(make([]float64, len(a)), a, b) }

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

// packedNorm returns the squared Frobenius norm of a packed symmetric p x p matrix.
func packedNorm(data []float64, p int) float64 {
	sum := 2 * floats.Dot(data, data)
	for width := p; width > 0; width-- {
		sum -= data[0] * data[0]
		data = data[width:]
	}
	return sum
}

func fullMatrix[T float32 | float64](s *linalg.Scatter[T]) []T {
	p, out := s.P, s.Square(0, s.P)
	for i := range p {
		for j := range i {
			out[i*p+j] = out[j*p+i]
		}
	}
	return out
}
