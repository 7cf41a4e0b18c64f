package similarity

import (
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// procrustes returns |Sxy|* / sqrt(tr Sxx tr Syy), with |.|* the nuclear norm, the sum of singular
// values. It is the cosine between x and y after the best orthogonal map of one to the other. Sxy
// is m.xy, p x q: the sums of products of the p variables of x and the q of y, as deviations from
// their means. The null, the value by chance, is the mean over shuffles of the pairs of x and y.
//
// A replicate of the jackknife leaves out a group of samples, which reduces Sxy by D. It takes the
// norm to first order: |Sxy - D|* = |Sxy|* - <U Vᵀ, D> for Sxy = U diag(s) Vᵀ.
func (m *pairMoments) procrustes() (estimate, error) {
	if e, ok := constantEstimate(m.x.constant(), m.y.constant()); ok {
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
	nuclear := floats.Sum(s)
	e := estimate{value: ratio(nuclear, traces[0], traces[1])}
	var nulls []float64
	for _, shuffled := range m.shuffles() {
		s, err := linalg.SingularValues(mat.NewDense(p, q, shuffled))
		if err != nil {
			return estimate{}, err
		}
		nulls = append(nulls, ratio(floats.Sum(s), traces[0], traces[1]))
	}
	e.setNull(nulls)
	if len(m.groups) == 0 {
		return e, nil
	}
	var rotation mat.Dense
	rotation.Mul(u, v.T())
	m.eachGroup(func(g, left int) {
		r := m.removal(g)
		rest := nuclear - r.factor*floats.Dot(r.x, timesDense(rotation.RawMatrix().Data, p, q, r.y))
		part := m.groups[g].Data
		for i, t := range rotation.RawMatrix().Data {
			rest -= t * float64(part[i])
		}
		e.replicates = append(e.replicates, replicate(ratio(rest, m.x.traceWithout(g), m.y.traceWithout(g)), left))
	})
	return e, nil
}

// regression returns the fraction of the variance of x that a linear map of y explains, R^2 = |Q_yᵀ
// x|^2 / |x|^2, where the columns of Q_y are an orthonormal basis of the column space of y
// (Kornblith et al. 2019, section 3). The null, its mean over all shuffles of the pairs, is rank(y)
// / (n - 1). A replicate keeps the map, and leaves out the residuals and the variance of the group.
//
// The whitening has the matrix y.t, q x r, which turns the variables of y into r uncorrelated ones
// whose squares have the sum 1.
func (m *pairMoments) regression(y whitening) estimate {
	if e, ok := constantEstimate(m.x.constant(), m.y.constant()); ok {
		return e
	}
	p, q := m.xy.P, m.xy.Q
	var fit, b mat.Dense
	fit.Mul(y.t.T(), mat.NewDense(p, q, m.xy.Data).T()) // r x p
	b.Mul(y.t, &fit)                                    // q x p: x is near bᵀ y
	total := trace(m.x.all)
	explained := floats.Dot(fit.RawMatrix().Data, fit.RawMatrix().Data)
	e := estimate{value: min(explained/total, 1), null: min(float64(y.rank)/float64(m.xy.N-1), 1)}
	if m.xy.N <= y.rank+1 {
		e.warnings = append(e.warnings, "as many dimensions as samples: a linear map explains everything by chance, compare the null")
	}
	if !y.reliable {
		e.warnings = append(e.warnings, unreliableWarning)
	}
	m.eachGroup(func(g, left int) {
		fits := floats.Sum(quadratic(fullMatrix(m.y.groups[g]), m.y.removal(g), &b, &b))
		mixed := m.mixed(g, &b)
		rest := m.x.traceWithout(g)
		residual := total - rest - 2*mixed + fits // of the group: |x - bᵀ y|^2
		e.replicates = append(e.replicates, replicate(1-(total-explained-residual)/rest, left))
	})
	return e
}

// mixed returns tr(D b), with D the loss of Sxy without group g, its own Sxy plus r.factor r.x
// r.yᵀ.
func (m *pairMoments) mixed(g int, b *mat.Dense) float64 {
	r, part := m.removal(g), m.groups[g].Data
	by := project(b, r.y) // bᵀ r.y
	total := r.factor * floats.Dot(r.x, by)
	for j := range m.xy.Q {
		for i, v := range b.RawRowView(j) {
			total += v * float64(part[i*m.xy.Q+j])
		}
	}
	return total
}
