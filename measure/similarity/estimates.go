package similarity

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/measure"
)

// estimates holds the estimates for a pair of representations, by the names of the statistics. An
// estimate is the value of a statistic with its null, jackknife replicates and warnings.
type estimates map[string]estimate

// replicate returns a replicate of the jackknife: the value of a statistic without one group, and
// the number of observations that it leaves out.
func replicate(value float64, left int) measure.Replicate {
	return measure.Replicate{Value: value, Left: left}
}

// tooFewFor returns the warning of a statistic that needs more samples.
func tooFewFor(statistic string, minSamples int) string {
	return fmt.Sprintf("too few samples: %s needs %d", statistic, minSamples)
}

// fromMoments computes the selected statistics of the representations x and y, the activations of
// two layers on the same n samples. It uses second moments or, where x or y has n - 1 variables or
// more, Gram matrices. Like the functions below, it adds the estimates to out. r.cuts says where
// the groups of the jackknife begin and end, r.gather computes the moments of x and y, and
// r.drawsFor the number of shuffles for the null.
func (r *calculator) fromMoments(ctx context.Context, x, y *representation, selected []statistic, out estimates) error {
	linear := inFloat64(selected)
	if max(x.p, y.p) < x.n-1 {
		m, err := r.gather(ctx, x, y, r.drawsFor(linear, x, y))
		if err != nil {
			return err
		}
		return r.momentStatistics(ctx, m, x, y, selected, out)
	}
	between := func(unbiased bool) (hsicSums, error) {
		k, l, err := ofBoth(ctx, x, y, (*representation).gram)
		if err != nil {
			return hsicSums{}, err
		}
		return newHSICSums(k, l, r.cuts, !unbiased), nil
	}
	if err := ckas(ctx, x, y, between, selected, out); err != nil {
		return err
	}
	return r.gramLinear(ctx, x, y, linear, out)
}

// gramLinear is like linearStatistics, but for n - 1 variables or more, for n samples: it uses
// principal components from Gram matrices in place of the variables.
func (r *calculator) gramLinear(ctx context.Context, x, y *representation, selected []statistic, out estimates) error {
	if e, ok := constantEstimate(x.constant, y.constant); ok {
		for _, k := range selected {
			out[k.name] = e
		}
		return nil
	}
	var spanned []statistic // cca and pwcca, which depend only on the linear spans of the variables
	for _, k := range selected {
		isOne, err := r.alwaysOne(ctx, k, x, y)
		switch {
		case err != nil:
		case isOne:
			out[k.name] = r.chanceOne()
		case k.name == SVCCA:
			err = r.gramSVCCA(ctx, x, y, out)
		case k.name == Procrustes:
			err = r.reducedLinear(ctx, x, y, (*representation).principal, (*representation).principal, []statistic{k}, out)
		case k.name == LinearRegression:
			err = r.reducedLinear(ctx, x, y, (*representation).principal, (*representation).span, []statistic{k}, out)
		default:
			spanned = append(spanned, k)
		}
		if err != nil {
			return err
		}
	}
	if len(spanned) == 0 {
		return nil
	}
	return r.reducedLinear(ctx, x, y, (*representation).span, (*representation).span, spanned, out)
}

// A reduction returns a representation of the same samples with fewer variables.
type reduction func(*representation, context.Context) (*representation, error)

// reducedLinear is linearStatistics of reduced representations.
func (r *calculator) reducedLinear(ctx context.Context, x, y *representation, reduceX, reduceY reduction, selected []statistic, out estimates) error {
	a, err := reduceX(x, ctx)
	if err != nil {
		return err
	}
	b, err := reduceY(y, ctx)
	if err != nil {
		return err
	}
	m, err := r.gather(ctx, a, b, r.drawsFor(selected, a, b))
	if err != nil {
		return err
	}
	// The weights of pwcca are sums over the original variables of x, not over its components.
	if a == x {
		x = nil
	}
	if err := r.linearStatistics(ctx, m, a, b, x, selected, out); err != nil {
		return err
	}
	for _, k := range selected {
		e := out[k.name]
		e.warnings = append(append(e.warnings, a.lostWarnings("first")...), b.lostWarnings("second")...)
		out[k.name] = e
	}
	return nil
}

// lostWarnings warns of directions that a Gram matrix has lost to rounding.
func (r *representation) lostWarnings(which string) []string {
	if r.lost == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d directions of the %s representation are left out: below 1e-7 of the largest after columns are scaled to unit variance, a Gram matrix holds rounding errors", r.lost, r.lost+r.p, which)}
}

// alwaysOne reports whether a statistic is 1 whatever the values, because there are so many
// variables that one representation is a linear function of the other.
func (r *calculator) alwaysOne(ctx context.Context, k statistic, x, y *representation) (bool, error) {
	if k.name == Procrustes || k.name == SVCCA {
		return false, nil
	}
	spans, err := y.spans(ctx)
	if err != nil || spans || k.name == LinearRegression {
		return spans, err
	}
	return x.spans(ctx)
}

// chanceOne returns the estimate of a statistic that alwaysOne reports. Its null is 1 too.
func (r *calculator) chanceOne() estimate {
	e := estimate{value: 1, null: 1, warnings: []string{"as many dimensions as samples: 1 by chance, whatever the representations"}}
	for g := range max(0, len(r.cuts)-1) {
		e.replicates = append(e.replicates, replicate(1, r.cuts[g+1]-r.cuts[g]))
	}
	return e
}

// gramSVCCA computes svcca of the leading principal components.
func (r *calculator) gramSVCCA(ctx context.Context, x, y *representation, out estimates) error {
	a, b, err := ofBoth(ctx, x, y, (*representation).leadingPart)
	if err != nil {
		return err
	}
	m, err := r.gather(ctx, a, b, r.drawsFor([]statistic{{name: SVCCA, drawnNull: true}}, a, b))
	if err != nil {
		return err
	}
	wa, wb, err := ofBoth(ctx, a, b, (*representation).leadingWhitening)
	if err != nil {
		return err
	}
	e, err := m.correlation(wa, wb, weighting{})
	if len(e.replicates) > 0 {
		e.warnings = append(e.warnings, "the interval is too narrow: with more variables than samples it leaves out that other samples have another number of components")
	}
	out[SVCCA] = e
	return err
}

// ckas computes linear and debiased CKA, a ratio of values of HSIC (the Hilbert-Schmidt
// independence criterion), where they are selected. between returns the sums for the HSIC between x
// and y, from moments or from Gram matrices; unbiased asks for those of the unbiased estimate.
func ckas(ctx context.Context, x, y *representation, between func(unbiased bool) (hsicSums, error), selected []statistic, out estimates) error {
	for _, k := range selected {
		if k.name != LinearCKA && k.name != DebiasedCKA {
			continue
		}
		if e, ok := constantEstimate(x.isConstant(), y.isConstant()); ok {
			out[k.name] = e
			continue
		}
		unbiased := k.name == DebiasedCKA
		xy, err := between(unbiased)
		if err != nil {
			return err
		}
		self := func(r *representation, ctx context.Context) (hsicSums, error) { return r.selfHSIC(ctx, unbiased) }
		xx, yy, err := ofBoth(ctx, x, y, self)
		if err != nil {
			return err
		}
		out[k.name] = cka(xy, xx, yy, unbiased)
	}
	return nil
}

// momentStatistics computes the statistics that come from the moments of x and y.
func (r *calculator) momentStatistics(ctx context.Context, m *pairMoments, x, y *representation, selected []statistic, out estimates) error {
	between := func(unbiased bool) (hsicSums, error) { return m.hsic(unbiased), nil }
	if err := ckas(ctx, x, y, between, selected, out); err != nil {
		return err
	}
	return r.linearStatistics(ctx, m, x, y, nil, inFloat64(selected), out)
}

// linearStatistics computes those of the statistics svcca, cca, pwcca, procrustes and
// linear-regression that are selected, from the moments m of x and y. If x holds principal
// components, original is the representation from which they were computed, whose variables
// determine the weights of pwcca. Otherwise original is nil.
func (r *calculator) linearStatistics(ctx context.Context, m *pairMoments, x, y, original *representation, selected []statistic, out estimates) error {
	constant, ok := constantEstimate(m.x.constant(), m.y.constant())
	for _, k := range selected {
		if ok {
			out[k.name] = constant
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch k.name {
		case SVCCA:
			out[k.name], err = svcca(ctx, m, x, y)
		case CCA:
			out[k.name], err = r.cca(ctx, m, x, y, func(*representation) (weighting, error) { return weighting{}, nil })
		case PWCCA:
			out[k.name], err = r.cca(ctx, m, x, y, func(c *representation) (weighting, error) {
				return projectionWeights(ctx, x, c, original)
			})
		case Procrustes:
			out[k.name], err = m.procrustes()
		case LinearRegression:
			out[k.name], err = r.regression(ctx, m, x, y)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// svcca computes svcca from the moments m of x and y. Its replicates include the effect of another
// number of components on other samples; see addRankChanges. A whitening turns variables into
// uncorrelated ones of equal variance.
func svcca(ctx context.Context, m *pairMoments, x, y *representation) (estimate, error) {
	a, b, err := ofBoth(ctx, x, y, (*representation).leadingWhitening)
	if err != nil {
		return estimate{}, err
	}
	e, err := m.correlation(a, b, weighting{})
	if err == nil {
		err = m.addRankChanges(&e, a, b)
	}
	return e, err
}

// cca computes a weighted mean of canonical correlations from the moments m of x and y. weigh
// returns the weights, given the well-conditioned form of x: x itself, or orthonormal combinations
// of its variables where these nearly depend on each other.
func (r *calculator) cca(ctx context.Context, m *pairMoments, x, y *representation, weigh func(*representation) (weighting, error)) (estimate, error) {
	p, q := m.x.all.P, m.y.all.P
	a, b, err := ofBoth(ctx, x, y, (*representation).conditioned)
	if err != nil {
		return estimate{}, err
	}
	if a != x || b != y {
		if m, err = r.gather(ctx, a, b, len(m.null)); err != nil {
			return estimate{}, err
		}
	}
	wa, wb, err := ofBoth(ctx, a, b, (*representation).whitening)
	if err != nil {
		return estimate{}, err
	}
	w, err := weigh(a)
	if err != nil {
		return estimate{}, err
	}
	e, err := m.correlation(wa, wb, w)
	e.warnings = append(e.warnings, dependenceWarnings(p, wa, "first")...)
	e.warnings = append(e.warnings, dependenceWarnings(q, wb, "second")...)
	return e, err
}

// dependenceWarnings warns of variables that are constant or linear combinations of others.
// Programs that do not test for such variables count their rounding errors as a direction.
func dependenceWarnings(p int, w whitening, which string) []string {
	if !w.reliable || w.rank == p {
		return nil
	}
	return []string{fmt.Sprintf("%d of the %d variables of the %s representation are constant or sums of others, and add no direction", p-w.rank, p, which)}
}

// projectionWeights returns the weighting of pwcca by the variables of original, or by those of x
// if original is nil. The argument conditioned is the well-conditioned form of x.
func projectionWeights(ctx context.Context, x, conditioned, original *representation) (weighting, error) {
	var t weighting
	if original == nil {
		t.x = x.moments
		t.projection = mat.NewDense(t.x.all.P, t.x.all.P, fullMatrix(t.x.all))
	} else {
		var err error
		if t.projection, err = momentsBetween(ctx, x.centredSample, original.centredSample); err != nil {
			return t, err
		}
	}
	if conditioned != x {
		t.basis = conditioned.basis
		var inBasis mat.Dense
		inBasis.Mul(t.basis.T(), t.projection)
		t.projection = &inBasis
	}
	return t, nil
}

// momentsBetween returns the scatter between two samples of the same observations: p x q.
func momentsBetween(ctx context.Context, x, y *centredSample) (*mat.Dense, error) {
	out := mat.NewDense(x.p, y.p, nil)
	err := walkBoth(ctx, x, y, min(chunkOf(x.p), chunkOf(y.p), x.n), nil, func(n int, rowsX, rowsY []float64, _ int) {
		var product mat.Dense
		product.Mul(mat.NewDense(n, x.p, rowsX).T(), mat.NewDense(n, y.p, rowsY))
		out.Add(out, &product)
	})
	return out, err
}

// regression computes linear-regression, how much of x a linear map of y predicts, from the moments
// m of x and y. Where variables of y nearly depend on each other, it gathers the moments of x and
// of the orthonormal combinations of y instead.
func (r *calculator) regression(ctx context.Context, m *pairMoments, x, y *representation) (estimate, error) {
	b, err := y.conditioned(ctx)
	if err != nil {
		return estimate{}, err
	}
	if b != y {
		if m, err = r.gather(ctx, x, b, 0); err != nil {
			return estimate{}, err
		}
	}
	w, err := b.whitening(ctx)
	if err != nil {
		return estimate{}, err
	}
	return m.regression(w), nil
}
