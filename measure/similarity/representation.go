package similarity

import (
	"context"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/seed"
)

// A representation is a sample with all that is computed of it alone, each when it is first asked for: a grid of comparisons
// computes it once.
type representation struct {
	*sample
	run *run

	moments    *side
	white      *whitening
	lead       *whitening
	improved   *representation // of the same span, well conditioned
	basis      *mat.Dense      // what an improved one is made of: coefficients of the original variables
	products   *square         // centred Gram matrix
	spanning   *bool
	principals *components
	reduced    *representation // by its principal components
	cut        *representation // by the leading ones
	biased     *selfAlignment
	unbiased   *selfAlignment
	kernel     *square // nil with selves set: undefined
	kernels    *selfAlignment
	ranked     []uint32
	near       *neighbourLists
}

// A run is what the comparisons of some representations share.
type run struct {
	settings Settings
	cuts     []int // places at which the groups of the jackknife begin, and the end; nil: no interval
	wide     bool  // products in float64
	debiased bool  // gather what debiased CKA needs
	null     bool  // shuffle pairs where the null has no closed form
	once     bool  // there is but one pair: keep nothing large that one statistic alone needs
	seed     uint64
}

func (r *run) newRepresentation(s *sample) *representation { return &representation{sample: s, run: r} }

// whitening of the representation's moments.
func (r *representation) whitening(m *side) (whitening, error) {
	if r.white == nil {
		w, err := whiten(m.all.Square(0, m.all.P), m.all.P)
		if err != nil {
			return w, err
		}
		r.white = &w
	}
	return *r.white, nil
}

// leading is the whitening of its leading principal components.
func (r *representation) leading(m *side) (whitening, error) {
	if r.lead == nil {
		w, err := leading(m.all.Square(0, m.all.P), m.all.P, r.run.settings.Variance)
		if err != nil {
			return w, err
		}
		r.lead = &w
	}
	return *r.lead, nil
}

// conditioned is a representation of the same linear span whose moments tell all about it: itself, or where its variables depend
// on each other too nearly, orthonormal combinations of them.
func (r *representation) conditioned(ctx context.Context, m *side) (*representation, error) {
	if r.improved == nil {
		w, err := r.whitening(m)
		if err != nil {
			return nil, err
		}
		r.improved = r
		if !w.reliable && r.sample != nil {
			if w, err = orthonormal(ctx, r.sample, m.all.Square(0, m.all.P)); err != nil {
				return nil, err
			}
			s, err := newSample(ctx, "", &projected{of: r.sample, b: w.t}, inOrder(r.n))
			if err != nil {
				return nil, err
			}
			r.improved = r.run.newRepresentation(s)
			r.improved.basis = w.t
		}
	}
	return r.improved, nil
}

// principal is the representation by its principal components, where those are fewer than its variables.
func (r *representation) principal(ctx context.Context) (*representation, error) {
	if r.p < r.n-1 {
		return r, nil
	}
	if r.reduced == nil {
		c, err := r.components(ctx)
		if err != nil {
			return nil, err
		}
		s, err := c.sample(ctx, len(c.values))
		if err != nil {
			return nil, err
		}
		r.reduced = r.run.newRepresentation(s)
	}
	return r.reduced, nil
}

// leadingPart is the representation by the leading principal components that svcca keeps.
func (r *representation) leadingPart(ctx context.Context) (*representation, error) {
	if r.p < r.n-1 {
		return r, nil
	}
	if r.cut == nil {
		c, err := r.components(ctx)
		if err != nil {
			return nil, err
		}
		s, err := c.sample(ctx, c.holding(r.run.settings.Variance))
		if err != nil {
			return nil, err
		}
		r.cut = r.run.newRepresentation(s)
	}
	return r.cut, nil
}

// leadingWhitening is that of what foremost has given for a representation.
func (r *representation) leadingWhitening(of *representation, m *side) (whitening, error) {
	if r == of {
		return r.leading(m)
	}
	return r.whitening(m) // has left the other components behind
}

func (r *representation) components(ctx context.Context) (components, error) {
	if r.principals == nil {
		k, err := r.gram(ctx)
		if err != nil {
			return components{}, err
		}
		c, err := componentsOf(k)
		if err != nil {
			return c, err
		}
		r.principals = &c
	}
	return *r.principals, nil
}

// spans reports whether the representation holds everything that so many samples can.
func (r *representation) spans(ctx context.Context) (bool, error) {
	if r.spanning == nil {
		full := false
		if r.p >= r.n-1 {
			k, err := r.gram(ctx)
			if err != nil {
				return false, err
			}
			full = k.spans()
		}
		r.spanning = &full
	}
	return *r.spanning, nil
}

func (r *representation) gram(ctx context.Context) (square, error) {
	if r.products == nil {
		k, err := gram(ctx, r.sample)
		if err != nil {
			return k, err
		}
		r.products = &k
	}
	return *r.products, nil
}

// selfAlignment are the alignments of the Gram matrix with itself.
func (r *representation) selfAlignment(k square, unbiased bool) selfAlignment {
	kept := &r.biased
	if unbiased {
		kept = &r.unbiased
	}
	if *kept == nil {
		all, rest := align(k, k, r.run.cuts, !unbiased)
		*kept = &selfAlignment{all, rest}
	}
	return **kept
}

// radial is the radial basis function kernel and its alignment with itself; ok is false where the median distance is 0.
func (r *representation) radial(ctx context.Context) (k square, self selfAlignment, ok bool, err error) {
	if r.kernels == nil {
		k, err := r.gram(ctx)
		if err != nil {
			return square{}, selfAlignment{}, false, err
		}
		k.data = append([]float64(nil), k.data...)
		k.squaredDistances()
		r.kernels = new(selfAlignment)
		if k.radial(r.run.settings.Bandwidth) {
			r.kernels.all, r.kernels.rest = align(k, k, r.run.cuts, true)
			r.kernel = &k
		}
	}
	if r.kernel == nil {
		return square{}, selfAlignment{}, false, nil
	}
	return *r.kernel, *r.kernels, true, nil
}

func (r *representation) ranks(ctx context.Context) ([]uint32, error) {
	if r.ranked == nil {
		k, err := r.gram(ctx)
		if err != nil {
			return nil, err
		}
		r.ranked = dissimilarityRanks(k)
	}
	return r.ranked, nil
}

func (r *representation) neighbours(ctx context.Context) (neighbourLists, error) {
	if r.near == nil {
		k, err := r.gram(ctx)
		if err != nil {
			return neighbourLists{}, err
		}
		k.data = append([]float64(nil), k.data...)
		k.squaredDistances()
		l := nearest(k, r.run.settings.Neighbours)
		r.near = &l
	}
	return *r.near, nil
}

// release lets go of what one statistic alone has needed, where no other pair will ask for it.
func (r *representation) release() {
	if r.run.once {
		r.kernel, r.kernels, r.ranked, r.near = nil, nil, nil, nil
	}
}

// gather computes the moments of two representations; what is of one of them alone is kept with it.
func (r *run) gather(ctx context.Context, x, y *representation, draws int) (*pair, error) {
	n := needs{cuts: r.cuts, wide: r.wide, debiased: r.debiased, draws: draws, draw: r.generator()}
	m, err := gather(ctx, x.sample, y.sample, x.moments, y.moments, n)
	if err == nil {
		x.moments, y.moments = m.x, m.y
	}
	return m, err
}

func (r *run) generator() *rand.Rand { return seed.Rand(r.seed, "similarity null") }

// draws is the number of shuffles that a null is the mean of: ten where they are cheap.
func draws(n, p, q int) int {
	const room = 4e9 // multiplications
	return int(min(10, max(1, room/(float64(n)*float64(p)*float64(q)))))
}
