package similarity

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/measure"
)

type estimates map[string]estimate

// replicate returns a jackknife replicate without left observations.
func replicate(value float64, left int) measure.Replicate {
	return measure.Replicate{Value: value, Left: left}
}

func tooFewFor(statistic string, minSamples int) string {
	return fmt.Sprintf("too few samples: %s needs %d", statistic, minSamples)
}

// fromMoments adds the selected estimates of x and y to out, from moments or, with n - 1 variables
// or more, Gram matrices.
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

// gramLinear is linearStatistics on principal components of Gram matrices, for n - 1 variables or
// more.
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

func (r *representation) lostWarnings(which string) []string {
	if r.lost == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d directions of the %s representation are left out: below 1e-7 of the largest after columns are scaled to unit variance, a Gram matrix holds rounding errors", r.lost, r.lost+r.p, which)}
}

// alwaysOne reports whether one representation is a linear function of the other whatever the
// values.
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

// ckas computes the selected of linear and debiased CKA; between returns HSIC's sums of x and y,
// from moments or Gram matrices.
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

func (r *calculator) momentStatistics(ctx context.Context, m *pairMoments, x, y *representation, selected []statistic, out estimates) error {
	between := func(unbiased bool) (hsicSums, error) { return m.hsic(unbiased), nil }
	if err := ckas(ctx, x, y, between, selected, out); err != nil {
		return err
	}
	return r.linearStatistics(ctx, m, x, y, nil, inFloat64(selected), out)
}

// linearStatistics computes the selected of svcca, cca, pwcca, procrustes and linear-regression
// from m. If x holds principal components, original has the variables for pwcca's weights, else
// nil.
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

// svcca computes svcca from m; its replicates include other numbers of components (addRankChanges).
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

// cca computes a weighted mean of canonical correlations from m; weigh gets the well-conditioned
// form of x.
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

// dependenceWarnings warns of constant or dependent variables: programs without this test count
// their rounding errors as a direction.
func dependenceWarnings(p int, w whitening, which string) []string {
	if !w.reliable || w.rank == p {
		return nil
	}
	return []string{fmt.Sprintf("%d of the %d variables of the %s representation are constant or sums of others, and add no direction", p-w.rank, p, which)}
}

// projectionWeights weighs by the variables of original (nil: x); conditioned is x,
// well-conditioned.
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

func momentsBetween(ctx context.Context, x, y *centredSample) (*mat.Dense, error) {
	out := mat.NewDense(x.p, y.p, nil)
	err := walkBoth(ctx, x, y, min(chunkOf(x.p), chunkOf(y.p), x.n), nil, func(n int, rowsX, rowsY []float64, _ int) {
		var product mat.Dense
		product.Mul(mat.NewDense(n, x.p, rowsX).T(), mat.NewDense(n, y.p, rowsY))
		out.Add(out, &product)
	})
	return out, err
}

// regression computes linear-regression from m, or new moments of orthonormal combinations where
// y's variables nearly depend.
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
