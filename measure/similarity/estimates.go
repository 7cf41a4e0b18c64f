package similarity

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/measure"
)

// estimates holds what was computed of a pair, by the names of statistics.
type estimates map[string]estimate

func replicate(value float64, left int) measure.Replicate {
	return measure.Replicate{Value: value, Left: left}
}

func tooFewFor(statistic string, least int) string {
	return fmt.Sprintf("too few samples: %s needs %d", statistic, least)
}

// fromMoments computes the statistics of two representations that come from second moments, or from Gram matrices where there
// are more variables than samples.
func (r *run) fromMoments(ctx context.Context, x, y *representation, wanted []kind, out estimates) error {
	var canonical []kind
	for _, k := range wanted {
		if k.wide {
			canonical = append(canonical, k)
		}
	}
	if max(x.p, y.p) < x.n-1 {
		m, err := r.gather(ctx, x, y, r.drawsFor(canonical, x, y))
		if err != nil {
			return err
		}
		m.ckas(wanted, out)
		return r.canonicals(ctx, m, x, y, canonical, out)
	}
	if err := r.gramCKAs(ctx, x, y, wanted, out); err != nil {
		return err
	}
	return r.gramCanonicals(ctx, x, y, canonical, out)
}

// gramCanonicals computes the statistics that whiten, and the Procrustes similarity, by way of principal components.
func (r *run) gramCanonicals(ctx context.Context, x, y *representation, wanted []kind, out estimates) error {
	if e, ok := constants(x.constant, y.constant); ok {
		for _, k := range wanted {
			out[k.name] = e
		}
		return nil
	}
	var rest []kind
	for _, k := range wanted {
		if k.name == SVCCA {
			if err := r.gramSVCCA(ctx, x, y, out); err != nil {
				return err
			}
			continue
		}
		certain, err := r.certain(ctx, k, x, y)
		if err != nil {
			return err
		}
		if certain {
			out[k.name] = r.one(x.n)
			continue
		}
		rest = append(rest, k)
	}
	if len(rest) == 0 {
		return nil
	}
	a, err := x.principal(ctx)
	if err != nil {
		return err
	}
	b, err := y.principal(ctx)
	if err != nil {
		return err
	}
	m, err := r.gather(ctx, a, b, r.drawsFor(rest, a, b))
	if err != nil {
		return err
	}
	// Where principal components stand for x, pwcca's weights are still sums over the variables that x came with.
	if a == x {
		x = nil
	}
	return r.canonicalsOf(ctx, m, a, b, x, rest, out)
}

// certain reports whether a statistic must be 1, since every representation is a linear function of one that spans all that n samples
// can.
func (r *run) certain(ctx context.Context, k kind, x, y *representation) (bool, error) {
	if k.name == Procrustes {
		return false, nil
	}
	spans, err := y.spans(ctx)
	if err != nil || spans || k.name == LinearRegression {
		return spans, err
	}
	return x.spans(ctx)
}

// one is the estimate of what is 1 by chance.
func (r *run) one(n int) estimate {
	e := estimate{value: 1, null: 1, warnings: []string{"as many dimensions as samples: 1 by chance, whatever the representations"}}
	for g := range max(0, len(r.cuts)-1) {
		e.replicates = append(e.replicates, replicate(1, r.cuts[g+1]-r.cuts[g]))
	}
	return e
}

func (r *run) gramSVCCA(ctx context.Context, x, y *representation, out estimates) error {
	a, err := x.leadingPart(ctx)
	if err != nil {
		return err
	}
	b, err := y.leadingPart(ctx)
	if err != nil {
		return err
	}
	m, err := r.gather(ctx, a, b, r.drawsFor([]kind{{shuffle: true}}, a, b))
	if err != nil {
		return err
	}
	wa, err := a.leadingWhitening(x, m.x)
	if err != nil {
		return err
	}
	wb, err := b.leadingWhitening(y, m.y)
	if err != nil {
		return err
	}
	out[SVCCA], err = m.correlation(wa, wb, weighting{})
	return err
}

// drawsFor is the number of shuffles that the statistics need.
func (r *run) drawsFor(wanted []kind, x, y *representation) int {
	for _, k := range wanted {
		if k.shuffle && r.null {
			return draws(x.n, x.p, y.p)
		}
	}
	return 0
}

// ckas computes linear and debiased CKA where they are wanted.
func (m *pair) ckas(wanted []kind, out estimates) {
	for _, k := range wanted {
		switch k.name {
		case LinearCKA:
			out[k.name] = m.linearCKA()
		case DebiasedCKA:
			out[k.name] = m.debiasedCKA()
		}
	}
}

// gramCKAs is ckas from Gram matrices.
func (r *run) gramCKAs(ctx context.Context, x, y *representation, wanted []kind, out estimates) error {
	for _, s := range wanted {
		if s.name != LinearCKA && s.name != DebiasedCKA {
			continue
		}
		k, err := x.gram(ctx)
		if err != nil {
			return err
		}
		l, err := y.gram(ctx)
		if err != nil {
			return err
		}
		if e, ok := constants(x.constant, y.constant); ok {
			out[s.name] = e
			continue
		}
		unbiased := s.name == DebiasedCKA
		out[s.name] = kernelCKA(k, l, x.selfAlignment(k, unbiased), y.selfAlignment(l, unbiased), r.cuts, unbiased)
	}
	return nil
}

// canonicals computes the statistics that whiten, and the Procrustes similarity.
func (r *run) canonicals(ctx context.Context, m *pair, x, y *representation, wanted []kind, out estimates) error {
	return r.canonicalsOf(ctx, m, x, y, nil, wanted, out)
}

// canonicalsOf is canonicals of a representation x that stands for another one, whose variables weigh in pwcca; nil: it is x.
func (r *run) canonicalsOf(ctx context.Context, m *pair, x, y, weighing *representation, wanted []kind, out estimates) error {
	if e, ok := constants(m.x.constant(), m.y.constant()); ok {
		for _, k := range wanted {
			out[k.name] = e
		}
		return nil
	}
	for _, k := range wanted {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		switch k.name {
		case SVCCA:
			out[k.name], err = r.svcca(m, x, y)
		case CCA:
			out[k.name], err = r.cca(ctx, m, x, y, func(*representation) (weighting, error) { return weighting{}, nil })
		case PWCCA:
			out[k.name], err = r.cca(ctx, m, x, y, func(c *representation) (weighting, error) {
				return projectionWeights(ctx, m, x, c, weighing)
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

func (r *run) svcca(m *pair, x, y *representation) (estimate, error) {
	a, err := x.leading(m.x)
	if err != nil {
		return estimate{}, err
	}
	b, err := y.leading(m.y)
	if err != nil {
		return estimate{}, err
	}
	e, err := m.correlation(a, b, weighting{})
	if err == nil {
		err = m.drift(&e, a, b)
	}
	return e, err
}

// cca computes a weighted mean of canonical correlations. weigh gets the representation that stands for x.
func (r *run) cca(ctx context.Context, m *pair, x, y *representation, weigh func(*representation) (weighting, error)) (estimate, error) {
	p, q := m.x.all.P, m.y.all.P
	a, err := x.conditioned(ctx, m.x)
	if err != nil {
		return estimate{}, err
	}
	b, err := y.conditioned(ctx, m.y)
	if err != nil {
		return estimate{}, err
	}
	if a != x || b != y {
		if m, err = r.gather(ctx, a, b, len(m.null)); err != nil {
			return estimate{}, err
		}
	}
	wa, err := a.whitening(m.x)
	if err != nil {
		return estimate{}, err
	}
	wb, err := b.whitening(m.y)
	if err != nil {
		return estimate{}, err
	}
	w, err := weigh(a)
	if err != nil {
		return estimate{}, err
	}
	e, err := m.correlation(wa, wb, w)
	e.warnings = append(e.warnings, idleWarnings(p, wa, "first")...)
	e.warnings = append(e.warnings, idleWarnings(q, wb, "second")...)
	return e, err
}

// idleWarnings tell of variables that are constant or sums of others: programs that do not look take their rounding for a direction.
func idleWarnings(p int, w whitening, which string) []string {
	if !w.reliable || w.rank == p {
		return nil
	}
	return []string{fmt.Sprintf("%d of the %d variables of the %s representation are constant or sums of others, and add no direction", p-w.rank, p, which)}
}

// projectionWeights weighs by the variables of x, or of the representation that x stands for (weighing, unless nil). c is what stands
// for x in canonical correlation.
func projectionWeights(ctx context.Context, m *pair, x, c, weighing *representation) (weighting, error) {
	t := weighting{x: m.x}
	if weighing == nil {
		t.projection = mat.NewDense(m.x.all.P, m.x.all.P, symmetric(m.x.all))
	} else {
		var err error
		if t.projection, err = momentsBetween(ctx, x.sample, weighing.sample); err != nil {
			return t, err
		}
		t.x = nil
	}
	if c != x {
		t.basis = c.basis
		var turned mat.Dense
		turned.Mul(c.basis.T(), t.projection)
		t.projection = &turned
	}
	return t, nil
}

// momentsBetween is the scatter between two samples of the same observations: p x q.
func momentsBetween(ctx context.Context, x, y *sample) (*mat.Dense, error) {
	out := mat.NewDense(x.p, y.p, nil)
	size := min(chunkOf(x.p), chunkOf(y.p), x.n)
	bx, by := make([]float64, size*x.p), make([]float64, size*y.p)
	err := walk(ctx, x.n, size, nil, func(from, to, _ int) error {
		n := to - from
		if err := x.read(from, to, bx[:n*x.p]); err != nil {
			return err
		}
		if err := y.read(from, to, by[:n*y.p]); err != nil {
			return err
		}
		var product mat.Dense
		product.Mul(mat.NewDense(n, x.p, bx[:n*x.p]).T(), mat.NewDense(n, y.p, by[:n*y.p]))
		out.Add(out, &product)
		return nil
	})
	return out, err
}

func (r *run) regression(ctx context.Context, m *pair, x, y *representation) (estimate, error) {
	b, err := y.conditioned(ctx, m.y)
	if err != nil {
		return estimate{}, err
	}
	if b != y {
		if m, err = r.gather(ctx, x, b, 0); err != nil {
			return estimate{}, err
		}
	}
	w, err := b.whitening(m.y)
	if err != nil {
		return estimate{}, err
	}
	return m.regression(w), nil
}
