package similarity

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
)

// fourthMoments holds what debiased CKA needs besides second moments. With u_i and v_i the
// deviations of observation i from the means of x (p variables) and y (q variables), and a_i =
// |u_i|^2, b_i = |v_i|^2 the diagonals of the centred Gram matrices,
//
//	ab = sum_i a_i b_i,  g = sum_i b_i u_i,  h = sum_i a_i v_i,  A = sum_i a_i,  B = sum_i b_i.
//
// g and h are needed when means change. If the mean of x moves by d and that of y by e, the moments
// of the same n observations about the new means are
//
//	ab' = ab - 2 e.h - 2 d.g + 4 d.C e + |e|^2 A + |d|^2 B + n |d|^2 |e|^2
//	g'  = g - 2 C e - B d - n |e|^2 d
//	h'  = h - 2 Cᵀ d - A e - n |d|^2 e
//	A'  = A + n |d|^2,  B' = B + n |e|^2,   where C = sum_i u_i v_iᵀ.
type fourthMoments struct {
	ab   float64
	g, h []float64 // of p and q elements
	a, b float64   // A and B
}

// newFourthMoments returns empty moments: of all, then of each group.
func newFourthMoments(p, q, groups int) []*fourthMoments {
	out := make([]*fourthMoments, 1+groups)
	for i := range out {
		out[i] = &fourthMoments{g: make([]float64, p), h: make([]float64, q)}
	}
	return out
}

// A momentsView is what a change of means needs besides: number, means and products with C.
type momentsView struct {
	n            int
	meanX, meanY []float64
	times        func(e []float64) []float64 // C e
	timesT       func(d []float64) []float64 // Cᵀ d
}

// viewOfScatter views a representation with itself; C is its scatter.
func viewOfScatter[T float32 | float64](s *linalg.Scatter[T]) momentsView {
	times := func(e []float64) []float64 { return timesPacked(s.Data, s.P, e) }
	return momentsView{s.N, s.Mean, s.Mean, times, times}
}

// viewOfCross returns the view of two representations. C is the matrix of their cross scatter.
func viewOfCross[T float32 | float64](j *linalg.CrossScatter[T]) momentsView {
	return momentsView{
		j.N, j.MeanX, j.MeanY,
		func(e []float64) []float64 { return timesDense(j.Data, j.P, j.Q, e) },
		func(d []float64) []float64 { return timesTransposed(j.Data, j.P, j.Q, d) },
	}
}

// add adds chunks of x and y, centred on their own mean; m has the moments before.
func (t *fourthMoments) add(m momentsView, x, y chunk) {
	n := x.block.N()
	dx, dy := meanShift(m.n, m.meanX, n, x.block.Mean()), meanShift(m.n, m.meanY, n, y.block.Mean())
	*t = t.about(m, dx, dy)
	dx, dy = difference(x.block.Mean(), sumOf(m.meanX, dx)), difference(y.block.Mean(), sumOf(m.meanY, dy))
	if x.rows32 != nil {
		addRows(t, x.rows32, y.rows32, dx, dy)
	} else {
		addRows(t, x.rows64, y.rows64, dx, dy)
	}
}

// meanShift returns the change of the mean of n by nb observations with mean mb.
func meanShift(n int, mean []float64, nb int, mb []float64) []float64 {
	d := make([]float64, len(mean))
	share := float64(nb) / float64(n+nb)
	for i := range d {
		d[i] = share * (mb[i] - mean[i])
	}
	return d
}

func (t *fourthMoments) about(m momentsView, d, e []float64) fourthMoments {
	if m.n == 0 {
		return *t
	}
	n, dd, ee := float64(m.n), floats.Dot(d, d), floats.Dot(e, e)
	ce, cd := m.times(e), m.timesT(d)
	out := fourthMoments{
		ab: t.ab - 2*floats.Dot(e, t.h) - 2*floats.Dot(d, t.g) + 4*floats.Dot(d, ce) + ee*t.a + dd*t.b + n*dd*ee,
		g:  make([]float64, len(t.g)), h: make([]float64, len(t.h)),
		a: t.a + n*dd, b: t.b + n*ee,
	}
	for i := range out.g {
		out.g[i] = t.g[i] - 2*ce[i] - (t.b+n*ee)*d[i]
	}
	for i := range out.h {
		out.h[i] = t.h[i] - 2*cd[i] - (t.a+n*dd)*e[i]
	}
	return out
}

// addRows adds observations with deviations x + dx and y + dy.
func addRows[T float32 | float64](t *fourthMoments, x, y []T, dx, dy []float64) {
	p, q := len(dx), len(dy)
	for i := range len(x) / p {
		u, v := x[i*p:(i+1)*p], y[i*q:(i+1)*q]
		a, b := squaredNorm(u, dx), squaredNorm(v, dy)
		t.ab, t.a, t.b = t.ab+a*b, t.a+a, t.b+b
		for j, w := range u {
			t.g[j] += b * (float64(w) + dx[j])
		}
		for j, w := range v {
			t.h[j] += a * (float64(w) + dy[j])
		}
	}
}

func squaredNorm[T float32 | float64](u []T, d []float64) float64 {
	var sum float64
	for j, w := range u {
		z := float64(w) + d[j]
		sum += z * z
	}
	return sum
}

// merge adds the fourth moments o of other observations. m and om are the views of both.
func (t *fourthMoments) merge(m momentsView, o *fourthMoments, om momentsView) {
	if om.n == 0 {
		return
	}
	a := t.about(m, meanShift(m.n, m.meanX, om.n, om.meanX), meanShift(m.n, m.meanY, om.n, om.meanY))
	b := o.about(om, meanShift(om.n, om.meanX, m.n, m.meanX), meanShift(om.n, om.meanY, m.n, m.meanY))
	*t = fourthMoments{a.ab + b.ab, sumOf(a.g, b.g), sumOf(a.h, b.h), a.a + b.a, a.b + b.b}
}

// without lacks a group with the view part; the result has no g and h.
func (t *fourthMoments) without(group *fourthMoments, m, part momentsView) fourthMoments {
	rest := float64(m.n - part.n)
	// toRest returns the mean of the rest minus from. mean is that of all observations.
	toRest := func(mean, groupMean, from []float64) []float64 {
		d := make([]float64, len(mean))
		for i := range d {
			d[i] = mean[i] - float64(part.n)/rest*(groupMean[i]-mean[i]) - from[i]
		}
		return d
	}
	a := t.about(m, toRest(m.meanX, part.meanX, m.meanX), toRest(m.meanY, part.meanY, m.meanY))
	b := group.about(part, toRest(m.meanX, part.meanX, part.meanX), toRest(m.meanY, part.meanY, part.meanY))
	return fourthMoments{ab: a.ab - b.ab, a: a.a - b.a, b: a.b - b.b}
}

func (t *fourthMoments) Code(c *state.Codec) { c.Values(&t.ab, &t.a, &t.b, t.g, t.h) }

// timesPacked returns S e for a packed symmetric p x p S.
func timesPacked[T float32 | float64](data []T, p int, e []float64) []float64 {
	out := make([]float64, p)
	for i := range p {
		row := data[:p-i]
		data = data[p-i:]
		sum := float64(row[0]) * e[i]
		for k := 1; k < len(row); k++ {
			v := float64(row[k])
			sum += v * e[i+k]
			out[i+k] += v * e[i]
		}
		out[i] += sum
	}
	return out
}

// timesDense returns C e for a p x q matrix C.
func timesDense[T float32 | float64](data []T, p, q int, e []float64) []float64 {
	out := make([]float64, p)
	for i := range out {
		var sum float64
		for j, v := range data[i*q : (i+1)*q] {
			sum += float64(v) * e[j]
		}
		out[i] = sum
	}
	return out
}

// timesTransposed returns Cᵀ d for a p x q matrix C.
func timesTransposed[T float32 | float64](data []T, p, q int, d []float64) []float64 {
	out := make([]float64, q)
	for i := range p {
		for j, v := range data[i*q : (i+1)*q] {
			out[j] += float64(v) * d[i]
		}
	}
	return out
}

// sqrt returns the square root of v, and 0 for a v that rounding has made negative.
func sqrt(v float64) float64 { return math.Sqrt(max(v, 0)) }
