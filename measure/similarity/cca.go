package similarity

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// A canonical holds canonical correlations, and the vectors that attain them in the coordinates of a pair's moments.
type canonical struct {
	rho  []float64
	w, v *mat.Dense // p x r and q x r
}

// correlate finds the canonical correlations of whitened variables with the cross moments xy.
func correlate(x, y whitening, xy []float64) (canonical, error) {
	if x.rank == 0 || y.rank == 0 {
		return canonical{}, nil
	}
	p, _ := x.t.Dims()
	q, _ := y.t.Dims()
	var half, c mat.Dense
	half.Mul(mat.NewDense(p, q, xy), y.t)
	c.Mul(x.t.T(), &half)
	u, s, v, err := linalg.Decompose(&c)
	if err != nil {
		return canonical{}, err
	}
	var out canonical
	for _, rho := range s {
		out.rho = append(out.rho, min(max(rho, 0), 1)) // rounding may carry it a little beyond
	}
	out.w, out.v = new(mat.Dense), new(mat.Dense)
	out.w.Mul(x.t, u)
	out.v.Mul(y.t, v)
	return out, nil
}

// A weighting says how much each canonical correlation counts: all alike (the zero weighting), or, as in projection weighted CCA, as
// much as its variate h accounts for of x: sum_j |h.x_j| over the variables of x (Morcos et al. 2018, equation 3).
type weighting struct {
	projection *mat.Dense // scatter between what w combines (p) and the variables of x (p')
	// x is the side whose scatter the projection is, and basis what turns w into coefficients of its variables (nil: they are that);
	// x is nil where the weights are to stay as they are in replicates.
	x     *side
	basis *mat.Dense
}

func (t weighting) of(c canonical) []float64 {
	out := make([]float64, len(c.rho))
	if t.projection == nil {
		for i := range out {
			out[i] = 1
		}
		return out
	}
	var hx mat.Dense
	hx.Mul(c.w.T(), t.projection)
	for i := range out {
		out[i] = sumAbs(hx.RawRowView(i))
	}
	return out
}

// without returns the weights without a group: of the same combinations of variables, each of unit scatter again. all are the weights
// of all observations, and lost is how much of a variate's scatter goes.
func (t weighting) without(g int, c canonical, all, lost []float64) []float64 {
	if t.x == nil {
		return all
	}
	w := c.w
	if t.basis != nil {
		w = new(mat.Dense)
		w.Mul(t.basis, c.w)
	}
	r := t.x.removal(g)
	gone := applied(symmetric(t.x.groups[g]), t.x.all.P, w) // p' x k
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

func sumAbs(values []float64) float64 {
	var s float64
	for _, v := range values {
		s += math.Abs(v)
	}
	return s
}

// correlation is a weighted mean of canonical correlations, with its null from shuffled pairs and its replicates.
func (m *pair) correlation(x, y whitening, weigh weighting) (estimate, error) {
	c, err := correlate(x, y, m.xy.Data)
	if err != nil {
		return estimate{}, err
	}
	weights := weigh.of(c)
	e := estimate{value: weightedMean(c.rho, weights)}
	var nulls []float64
	for _, shuffled := range m.shuffles() {
		n, err := correlate(x, y, shuffled)
		if err != nil {
			return estimate{}, err
		}
		nulls = append(nulls, weightedMean(n.rho, weigh.of(n)))
	}
	e.null = sum(nulls) / float64(len(nulls)) // NaN of none
	e.warnings = canonicalWarnings(m, x, y)
	m.leaves(func(g, left int) {
		rho, lost := m.correlationsWithout(g, c)
		e.replicates = append(e.replicates, replicate(weightedMean(rho, weigh.without(g, c, weights, lost)), left))
	})
	return e, nil
}

func canonicalWarnings(m *pair, x, y whitening) []string {
	var out []string
	if m.xy.N <= x.rank+y.rank {
		out = append(out, "fewer samples than dimensions: some canonical correlations are 1 by chance, compare the null")
	}
	if !x.reliable || !y.reliable {
		out = append(out, "variables depend on each other nearly: directions that moments cannot tell from rounding are left out")
	}
	return out
}

func weightedMean(values, weights []float64) float64 {
	var sum, total float64
	for i, v := range values {
		sum += v * weights[i]
		total += weights[i]
	}
	return sum / total
}

// correlationsWithout are the canonical correlations without a group of observations, to first order: with D = Dxx, Dyy, Dxy the
// moments that go,
//
//	rho_i' = rho_i - w_iᵀ Dxy v_i + rho_i (w_iᵀ Dxx w_i + v_iᵀ Dyy v_i) / 2.
//
// lost is w_iᵀ Dxx w_i, the part of a variate's scatter that goes.
func (m *pair) correlationsWithout(g int, c canonical) (rho, lost []float64) {
	lost = quadratic(symmetric(m.x.groups[g]), m.x.removal(g), c.w, c.w)
	yy := quadratic(symmetric(m.y.groups[g]), m.y.removal(g), c.v, c.v)
	xy := quadratic(m.groups[g].Data, m.removal(g), c.w, c.v)
	rho = make([]float64, len(c.rho))
	for i, r := range c.rho {
		rho[i] = r - xy[i] + r*(lost[i]+yy[i])/2
	}
	return rho, lost
}

// quadratic is w_iᵀ D v_i for the columns of w and v, with D = S + f d eᵀ being what a group takes from a scatter.
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

// applied is S v for a matrix of p rows. Replicates need no more digits than float32 has.
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

// project is wᵀ d.
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

// leading is the whitening of a scatter's leading principal components, the fewest that hold a fraction of the variance
// (Raghu et al. 2017).
func leading(scatter []float64, p int, fraction float64) (whitening, error) {
	values, vectors, err := linalg.Eigen(scatter, p)
	if err != nil {
		return whitening{}, err
	}
	k := countLeading(values, fraction)
	for k > 0 && values[k-1] <= noise*values[0] {
		k--
	}
	if k == 0 {
		return whitening{reliable: true}, nil
	}
	all := k
	for all < min(len(values), k+1+k/50) && values[all] > noise*values[0] { // what resample.NearbyRanks looks at
		all++
	}
	t := mat.DenseCopyOf(vectors.Slice(0, p, 0, all))
	for i := range p {
		row := t.RawRowView(i)
		for j := range row {
			row[j] /= math.Sqrt(values[j])
		}
	}
	w := whitening{rank: k, reliable: true, more: t, cut: &resample.Cutoff{K: k, Values: values[:all], Fraction: fraction}}
	for _, v := range values {
		w.cut.Total += max(v, 0)
	}
	w.t = w.first(k).t
	return w, nil
}
