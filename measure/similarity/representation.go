package similarity

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure/resample"
)

// A representation is a layer's activations on n samples, with what is computed from them alone.
// Values are computed when first needed, once for many pairs.
type representation struct {
	*centredSample
	calculator *calculator
	moments    *singleMoments // nil until they are gathered
	truncated  bool           // the variables are leading principal components
	lost       int            // result of span: number of directions that rounding has removed

	// basis, in what conditioned returns, has its variables' coefficients in the original, in
	// columns.
	basis *mat.Dense

	// results of the methods below, nil until they are needed
	whitened            *whitening           // of whitening
	leadingWhitened     *whitening           // of leadingWhitening
	orthogonal          **representation     // of conditioned
	gramMatrix          *pairMatrix          // of gram
	rawGram             *pairMatrix          // of grams, not centred
	fullRank            *bool                // of spans
	principalComponents *principalComponents // of reduced
	principalForm       **representation     // of principal
	standardForm        **representation     // of standardised
	spanForm            **representation     // of span
	leadingForm         **representation     // of leadingPart
	biasedSelf          *hsicSums            // of selfHSIC
	unbiasedSelf        *hsicSums            // of selfHSIC
	rbf                 *rbfKernel           // of radial
	rankList            *[]uint32            // of ranks
	nearestLists        *neighbourLists      // of neighbours
}

type rbfKernel struct {
	k       pairMatrix
	self    hsicSums
	defined bool // false where the median distance is 0
}

func cached[T any](cache **T, compute func() (T, error)) (T, error) {
	if *cache == nil {
		v, err := compute()
		if err != nil {
			return v, err
		}
		*cache = &v
	}
	return **cache, nil
}

func ofBoth[T any](ctx context.Context, x, y *representation, method func(*representation, context.Context) (T, error)) (a, b T, err error) {
	if a, err = method(x, ctx); err == nil {
		b, err = method(y, ctx)
	}
	return a, b, err
}

// A calculator computes statistics. It holds what the comparisons of several representations share.
type calculator struct {
	settings Settings
	cuts     []int  // where the groups of the jackknife begin, and the end; nil: no interval
	float64  bool   // products in float64
	debiased bool   // gather the fourth moments that debiased CKA needs
	null     bool   // shuffle pairs where the null has no closed form
	onePair  bool   // there is one pair only: values that a single statistic needs are released after it
	seed     uint64 // of the shuffles for the null (chance), and of ties
}

func (r *calculator) newRepresentation(s *centredSample) *representation {
	return &representation{centredSample: s, calculator: r}
}

func (r *representation) whitening(context.Context) (whitening, error) {
	return cached(&r.whitened, func() (whitening, error) {
		return whiten(r.moments.all.Square(0, r.moments.all.P), r.moments.all.P)
	})
}

func (r *representation) leadingWhitening(ctx context.Context) (whitening, error) {
	if r.truncated {
		return r.whitening(ctx)
	}
	return cached(&r.leadingWhitened, func() (whitening, error) {
		return leading(r.moments.all.Square(0, r.moments.all.P), r.moments.all.P, r.calculator.settings.Variance)
	})
}

// conditioned returns a well-conditioned representation of the same span: itself, or orthonormal
// combinations of nearly dependent variables. Without observations (only moments) it is itself.
func (r *representation) conditioned(ctx context.Context) (*representation, error) {
	return cached(&r.orthogonal, func() (*representation, error) {
		w, err := r.whitening(ctx)
		if err != nil || w.reliable || r.centredSample == nil {
			return r, err
		}
		if w, err = orthonormal(ctx, r.centredSample, r.moments.all.Square(0, r.moments.all.P)); err != nil {
			return nil, err
		}
		s, err := newCentredSample(ctx, "", &projected{of: r.centredSample, b: w.t}, identityOrder(r.n))
		if err != nil {
			return nil, err
		}
		out := r.calculator.newRepresentation(s)
		out.basis = w.t
		return out, nil
	})
}

// principal returns principal components, or r with fewer variables than n - 1.
func (r *representation) principal(ctx context.Context) (*representation, error) {
	return r.reduced(ctx, &r.principalForm, func(c principalComponents) int { return len(c.values) })
}

// standardised divides variables by their deviations: its Gram matrix shows small ones' directions
// too, with the same span.
func (r *representation) standardised(ctx context.Context) (*representation, error) {
	return cached(&r.standardForm, func() (*representation, error) {
		source, err := newStandardised(ctx, r.centredSample)
		if err != nil {
			return nil, err
		}
		s, err := newCentredSample(ctx, "", source, identityOrder(r.n))
		if err != nil {
			return nil, err
		}
		out := r.calculator.newRepresentation(s)
		out.lost = min(r.n-1, source.varying) // at most; span subtracts the directions that are found
		return out, nil
	})
}

// span has fewer variables than samples: standardised principal components, or r with fewer than n
// - 1.
func (r *representation) span(ctx context.Context) (*representation, error) {
	if r.p < r.n-1 {
		return r, nil
	}
	return cached(&r.spanForm, func() (*representation, error) {
		standard, err := r.standardised(ctx)
		if err != nil {
			return nil, err
		}
		out, err := standard.principal(ctx)
		if err == nil {
			out.lost = standard.lost - out.p
		}
		return out, err
	})
}

// leadingPart is principal with only the leading components that svcca keeps.
func (r *representation) leadingPart(ctx context.Context) (*representation, error) {
	out, err := r.reduced(ctx, &r.leadingForm, func(c principalComponents) int {
		return resample.CountLeading(c.values, r.calculator.settings.Variance*resample.SumPositive(c.values))
	})
	if err == nil && out != r {
		out.truncated = true
	}
	return out, err
}

// reduced returns count(components) components, or r with fewer variables than n - 1.
func (r *representation) reduced(ctx context.Context, cache ***representation, count func(principalComponents) int) (*representation, error) {
	if r.p < r.n-1 {
		return r, nil
	}
	return cached(cache, func() (*representation, error) {
		c, err := cached(&r.principalComponents, func() (principalComponents, error) {
			k, err := r.gram(ctx)
			if err != nil {
				return principalComponents{}, err
			}
			return newPrincipalComponents(k)
		})
		if err != nil {
			return nil, err
		}
		s, err := c.sample(ctx, count(c))
		if err != nil {
			return nil, err
		}
		return r.calculator.newRepresentation(s), nil
	})
}

// spans reports whether r spans n - 1 dimensions, so that all others are linear functions of it.
func (r *representation) spans(ctx context.Context) (bool, error) {
	return cached(&r.fullRank, func() (bool, error) {
		if r.p < r.n-1 {
			return false, nil
		}
		standard, err := r.standardised(ctx)
		if err != nil {
			return false, err
		}
		k, err := standard.gram(ctx)
		return err == nil && k.spans(), err
	})
}

func (r *representation) gram(ctx context.Context) (pairMatrix, error) {
	return cached(&r.gramMatrix, func() (pairMatrix, error) { return gram(ctx, r.centredSample) })
}

// distances returns new squared Euclidean distances, of deviations times centredSample.scale.
func (r *representation) distances(ctx context.Context) (pairMatrix, error) {
	k, err := r.gram(ctx)
	if err == nil {
		k.data = slices.Clone(k.data)
		k.squaredDistances()
	}
	return k, err
}

func (r *representation) isConstant() bool {
	if r.moments != nil {
		return r.moments.constant()
	}
	return r.constant
}

// selfHSIC uses moments if there are some.
func (r *representation) selfHSIC(ctx context.Context, unbiased bool) (hsicSums, error) {
	cache := &r.biasedSelf
	if unbiased {
		cache = &r.unbiasedSelf
	}
	return cached(cache, func() (hsicSums, error) {
		if r.moments != nil {
			return r.moments.hsic(unbiased), nil
		}
		k, err := r.gram(ctx)
		return newHSICSums(k, k, r.calculator.cuts, !unbiased), err
	})
}

// radial returns the radial basis function kernel. It is not defined if the median distance is 0.
func (r *representation) radial(ctx context.Context) (rbfKernel, error) {
	return cached(&r.rbf, func() (rbfKernel, error) {
		k, err := r.distances(ctx)
		if err != nil || !k.radial(r.calculator.settings.Bandwidth) {
			return rbfKernel{}, err
		}
		const diagonal = true
		return rbfKernel{k, newHSICSums(k, k, r.calculator.cuts, diagonal), true}, nil
	})
}

func (r *representation) ranks(ctx context.Context) ([]uint32, error) {
	return cached(&r.rankList, func() ([]uint32, error) {
		k, err := r.gram(ctx)
		if err != nil {
			return nil, err
		}
		return dissimilarityRanks(k), nil
	})
}

func (r *representation) neighbours(ctx context.Context) (neighbourLists, error) {
	return cached(&r.nearestLists, func() (neighbourLists, error) {
		s := r.calculator.settings
		d, norms, err := s.neighbourDissimilarities(func(centring int) (pairMatrix, error) { return r.grams(ctx, centring) })
		if err != nil {
			return neighbourLists{}, err
		}
		return nearest(d, norms, s.Neighbours), nil
	})
}

// release frees values that a single statistic needed, if no other pair needs them.
func (r *representation) release() {
	r.rawGram = nil // few statistics need it, and it is as large as the Gram matrix
	if r.calculator.onePair {
		r.rbf, r.rankList, r.nearestLists = nil, nil, nil
	}
}

func (r *calculator) gather(ctx context.Context, x, y *representation, draws int) (*pairMoments, error) {
	m, err := gather(ctx, x.centredSample, y.centredSample, x.moments, y.moments, r, draws)
	if err == nil {
		x.moments, y.moments = m.x, m.y
	}
	return m, err
}

func (r *calculator) generator() *rand.Rand { return seed.Rand(r.seed, "similarity null") }

// drawsFor returns the number of shuffles for nulls: Settings.shuffles or, within manyProducts,
// fewer, at least one; 0 without drawn nulls.
func (r *calculator) drawsFor(selected []statistic, x, y *representation) int {
	const manyProducts = 4e9
	if !r.null || !slices.ContainsFunc(selected, func(k statistic) bool { return k.drawnNull }) {
		return 0
	}
	return int(min(float64(r.settings.shuffles()), max(1, manyProducts/(float64(x.n)*float64(x.p)*float64(y.p)))))
}
