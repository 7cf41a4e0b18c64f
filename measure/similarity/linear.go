package similarity

import (
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

// procrustes is the nuclear norm of Sxy over sqrt(tr Sxx tr Syy): how alike x and y are once the best orthogonal map has turned
// one into the other. A replicate takes the norm to first order, |S - D|* = |S|* - <U Vᵀ, D>.
func (m *pair) procrustes() (estimate, error) {
	if e, ok := constants(m.x.constant(), m.y.constant()); ok {
		return e, nil
	}
	p, q := m.xy.P, m.xy.Q
	traces := [2]float64{trace(m.x.all), trace(m.y.all)}
	var u, v *mat.Dense
	var s []float64
	var err error
	if product := mat.NewDense(p, q, append([]float64(nil), m.xy.Data...)); len(m.groups) > 0 {
		u, s, v, err = linalg.SVD(product)
	} else {
		s, err = linalg.SingularValues(product)
	}
	if err != nil {
		return estimate{}, err
	}
	nuclear := sum(s)
	e := estimate{value: ratio(nuclear, traces[0], traces[1])}
	var nulls []float64
	for _, shuffled := range m.shuffles() {
		s, err := linalg.SingularValues(mat.NewDense(p, q, shuffled))
		if err != nil {
			return estimate{}, err
		}
		nulls = append(nulls, ratio(sum(s), traces[0], traces[1]))
	}
	e.null = sum(nulls) / float64(len(nulls)) // NaN of none
	if len(m.groups) == 0 {
		return e, nil
	}
	var turn mat.Dense
	turn.Mul(u, v.T())
	m.leaves(func(g, left int) {
		r := m.removal(g)
		rest := nuclear - r.factor*dot(r.x, timesDense(turn.RawMatrix().Data, p, q, r.y))
		part := m.groups[g].Data
		for i, t := range turn.RawMatrix().Data {
			rest -= t * float64(part[i])
		}
		e.replicates = append(e.replicates, measure.Replicate{Value: ratio(rest, m.x.traceWithout(g), m.y.traceWithout(g)), Left: left})
	})
	return e, nil
}

func sum(values []float64) float64 {
	var s float64
	for _, v := range values {
		s += v
	}
	return s
}

// regression is the part of the variance of x that a linear map of y explains, R^2 = |Q_yᵀ x|^2 / |x|^2 (Kornblith et al. 2019,
// section 3). Its mean over all shuffles is rank(y) / (n - 1). A replicate keeps the map: the residuals of the group go, and its
// variance.
func (m *pair) regression(y whitening) estimate {
	if e, ok := constants(m.x.constant(), m.y.constant()); ok {
		return e
	}
	p, q := m.xy.P, m.xy.Q
	var fit, b mat.Dense
	fit.Mul(y.t.T(), mat.NewDense(p, q, m.xy.Data).T()) // r x p
	b.Mul(y.t, &fit)                                    // q x p: x is near bᵀ y
	total := trace(m.x.all)
	explained := sumSquares(fit.RawMatrix().Data)
	e := estimate{value: min(explained/total, 1), null: min(float64(y.rank)/float64(m.xy.N-1), 1)}
	if m.xy.N <= y.rank+1 {
		e.warnings = append(e.warnings, "as many dimensions as samples: a linear map explains everything by chance, compare the null")
	}
	if !y.reliable {
		e.warnings = append(e.warnings, "variables depend on each other nearly: directions that moments cannot tell from rounding are left out")
	}
	m.leaves(func(g, left int) {
		fits := sum(quadratic(symmetric(m.y.groups[g]), m.y.removal(g), &b, &b))
		mixed := m.mixed(g, &b)
		rest := m.x.traceWithout(g)
		gone := total - rest - 2*mixed + fits
		e.replicates = append(e.replicates, measure.Replicate{Value: 1 - (total-explained-gone)/rest, Left: left})
	})
	return e
}

// mixed is tr(D b), D being what a group takes from the moments between x and y, b: q x p.
func (m *pair) mixed(g int, b *mat.Dense) float64 {
	r, part := m.removal(g), m.groups[g].Data
	by := project(b, r.y) // bᵀ e
	total := r.factor * dot(r.x, by)
	for j := range m.xy.Q {
		for i, v := range b.RawRowView(j) {
			total += v * float64(part[i*m.xy.Q+j])
		}
	}
	return total
}
