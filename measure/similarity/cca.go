package similarity

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// canonicalCorrelations holds correlations, and for each the coefficients of x's p and y's q
// variables.
type canonicalCorrelations struct {
	rho  []float64  // r values, descending
	w, v *mat.Dense // coefficients for x, p x r, and for y, q x r
}

// correlate takes whitenings x and y and cross moments xy, p x q.
func correlate(x, y whitening, xy []float64) (canonicalCorrelations, error) {
	if x.rank == 0 || y.rank == 0 {
		return canonicalCorrelations{}, nil
	}
	p, _ := x.t.Dims()
	q, _ := y.t.Dims()
	var half, c mat.Dense
	half.Mul(mat.NewDense(p, q, xy), y.t)
	c.Mul(x.t.T(), &half)
	u, s, v, err := linalg.Decompose(&c)
	if err != nil {
		return canonicalCorrelations{}, err
	}
	var out canonicalCorrelations
	for _, rho := range s {
		out.rho = append(out.rho, min(max(rho, 0), 1)) // rounding may carry it a little beyond
	}
	out.w, out.v = new(mat.Dense), new(mat.Dense)
	out.w.Mul(x.t, u)
	out.v.Mul(y.t, v)
	return out, nil
}

// A weighting gives the weights of canonical correlations in a mean, equal if zero; in pwcca, the
// variate h of x has the weight sum_j |h.x_j| over its variables (Morcos et al. 2018, equation 3).
type weighting struct {
	projection *mat.Dense     // scatter between the variables that w combines (p) and those of x (p')
	x          *singleMoments // moments that projection is taken from; nil: all replicates have the weights of all observations
	basis      *mat.Dense     // turns w into coefficients of the variables of x; nil: w holds these already
}

func (t weighting) weights(c canonicalCorrelations) []float64 {
	if t.projection == nil {
		return ones(len(c.rho))
	}
	out := make([]float64, len(c.rho))
	var hx mat.Dense
	hx.Mul(c.w.T(), t.projection)
	for i := range out {
		out[i] = floats.Norm(hx.RawRowView(i), 1)
	}
	return out
}

// without returns the weights without group g, variates scaled to unit scatter again; all are those
// of everything, lost the group's fraction of each scatter.
func (t weighting) without(g int, c canonicalCorrelations, all, lost []float64) []float64 {
	if t.x == nil {
		return all
	}
	w := c.w
	if t.basis != nil {
		w = new(mat.Dense)
		w.Mul(t.basis, c.w)
	}
	r := t.x.removal(g)
	gone := applied(fullMatrix(t.x.groups[g]), t.x.all.P, w) // p' x k
	along := project(w, r.x)
	var hx mat.Dense
	hx.Mul(t.projection.T(), c.w) // p' x k
	out := make([]float64, len(all))
	k := len(out)
	for j, d := range r.x {
		for i, v := range hx.RawRowView(j) {
			out[i] += math.Abs(v - float64(gone[j*k+i]) - r.factor*d*along[i])
		}
	}
	for i := range out {
		out[i] /= sqrt(max(1-lost[i], 1e-3))
	}
	return out
}

// correlation returns a weighted mean of correlations, with replicates and null.
func (m *pairMoments) correlation(x, y whitening, weigh weighting) (estimate, error) {
	c, err := correlate(x, y, m.xy.Data)
	if err != nil {
		return estimate{}, err
	}
	weights := weigh.weights(c)
	e := estimate{value: stat.Mean(c.rho, weights)}
	var nulls []float64
	for _, shuffled := range m.shuffles() {
		n, err := correlate(x, y, shuffled)
		if err != nil {
			return estimate{}, err
		}
		nulls = append(nulls, stat.Mean(n.rho, weigh.weights(n)))
	}
	e.setNull(nulls)
	e.warnings = canonicalWarnings(m, x, y)
	m.eachGroup(func(g, left int) {
		rho, lost := m.correlationsWithout(g, c)
		e.replicates = append(e.replicates, replicate(stat.Mean(rho, weigh.without(g, c, weights, lost)), left))
	})
	return e, nil
}

// unreliableWarning is the warning of moments that have lost small directions to rounding.
const unreliableWarning = "variables are nearly linearly dependent: directions within rounding errors are left out"

func canonicalWarnings(m *pairMoments, x, y whitening) []string {
	var out []string
	if m.xy.N <= x.rank+y.rank {
		out = append(out, "no more samples than dimensions of X and Y together: some canonical correlations are 1 by chance, compare the null")
	}
	if !x.reliable || !y.reliable {
		out = append(out, unreliableWarning)
	}
	return out
}

// correlationsWithout returns the canonical correlations without a group of observations, to first
// order. With Dxx, Dyy and Dxy what the moments lose when the group is left out, and w_i and v_i
// the columns of c.w and c.v,
//
//	rho_i' = rho_i - w_iᵀ Dxy v_i + rho_i (w_iᵀ Dxx w_i + v_iᵀ Dyy v_i) / 2.
//
// lost holds w_iᵀ Dxx w_i, the fraction of each variate's scatter that is in the group.
func (m *pairMoments) correlationsWithout(g int, c canonicalCorrelations) (rho, lost []float64) {
	lost = quadratic(fullMatrix(m.x.groups[g]), m.x.removal(g), c.w, c.w)
	yy := quadratic(fullMatrix(m.y.groups[g]), m.y.removal(g), c.v, c.v)
	xy := quadratic(m.groups[g].Data, m.removal(g), c.w, c.v)
	rho = make([]float64, len(c.rho))
	for i, r := range c.rho {
		rho[i] = r - xy[i] + r*(lost[i]+yy[i])/2
	}
	return rho, lost
}

// quadratic returns w_iᵀ D v_i for columns of w (p x k) and v (q x k), with D = S + f d eᵀ, the
// loss without a group: s is its S, r holds f, d as x, e as y.
func quadratic(s []float32, r removal, w, v *mat.Dense) []float64 {
	p, k := w.Dims()
	sv := applied(s, p, v)
	out := make([]float64, k)
	for i := range p {
		for j, a := range w.RawRowView(i) {
			out[j] += a * float64(sv[i*k+j])
		}
	}
	wd, ve := project(w, r.x), project(v, r.y)
	for j := range out {
		out[j] += r.factor * wd[j] * ve[j]
	}
	return out
}

// applied returns S v for a matrix S of p rows, in float32, which is precise enough for replicates.
func applied(s []float32, p int, v *mat.Dense) []float32 {
	q, k := v.Dims()
	out := make([]float32, p*k)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, blas32.General{Rows: p, Cols: q, Stride: q, Data: s},
		blas32.General{Rows: q, Cols: k, Stride: k, Data: toFloat32(v)}, 0, blas32.General{Rows: p, Cols: k, Stride: k, Data: out})
	return out
}

func toFloat32(m *mat.Dense) []float32 {
	raw := m.RawMatrix()
	out := make([]float32, 0, raw.Rows*raw.Cols)
	for i := range raw.Rows {
		for _, v := range m.RawRowView(i) {
			out = append(out, float32(v))
		}
	}
	return out
}

// project returns wᵀ d for w: p x k.
func project(w *mat.Dense, d []float64) []float64 {
	_, k := w.Dims()
	out := make([]float64, k)
	for i, v := range d {
		for j, a := range w.RawRowView(i) {
			out[j] += a * v
		}
	}
	return out
}

// leading whitens the fewest components of a p x p scatter that hold a fraction of the variance
// (Raghu et al. 2017). Eigenvalues up to noise times the largest are rounding.
func leading(scatter []float64, p int, fraction float64) (whitening, error) {
	values, vectors, err := linalg.Eigen(scatter, p)
	if err != nil {
		return whitening{}, err
	}
	total := resample.SumPositive(values)
	k := resample.CountLeading(values, fraction*total)
	for k > 0 && values[k-1] <= noise*values[0] {
		k--
	}
	if k == 0 {
		return whitening{reliable: true}, nil
	}
	all := k
	for all < min(len(values), k+1+k/50) && values[all] > noise*values[0] { // a few more, for other ranks that the interval tries (resample.NearbyRanks)
		all++
	}
	t := scaledColumns(vectors, values[:all])
	w := whitening{rank: k, reliable: true, more: t, cut: &resample.Cutoff{K: k, Values: values[:all], Fraction: fraction, Total: total}}
	w.t = w.truncated(k).t
	return w, nil
}
