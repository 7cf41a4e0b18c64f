package similarity

import (
	"math"

	"github.com/noether-ml/noether/linalg"
)

// A quartic is what debiased CKA needs beside second moments. With u_i and v_i the deviations of observation i from the
// means of x and of y, and a_i = |u_i|^2, b_i = |v_i|^2 the diagonals of the centred Gram matrices,
//
//	ab = sum_i a_i b_i,  g = sum_i b_i u_i,  h = sum_i a_i v_i.
//
// g and h are what moving the means takes: about means that lie d and e further on,
//
//	ab' = ab - 2 e.h - 2 d.g + 4 d.C e + |e|^2 A + |d|^2 B + n |d|^2 |e|^2
//	g'  = g - 2 C e - B d - n |e|^2 d
//	h'  = h - 2 Cᵀ d - A e - n |d|^2 e
//
// with C = sum u_i v_iᵀ, A = sum a_i and B = sum b_i.
type quartic struct {
	ab   float64
	g, h []float64
	a, b float64 // A and B
}

func newQuartic(p, q int) *quartic {
	return &quartic{g: make([]float64, p), h: make([]float64, q)}
}

// moments are what a quartic is moved with.
type moments struct {
	n            int
	meanX, meanY []float64
	times        func(e []float64) []float64 // C e
	timesT       func(d []float64) []float64 // Cᵀ d
}

func scatterMoments[T float32 | float64](s *linalg.Scatter[T]) moments {
	times := func(e []float64) []float64 { return timesPacked(s.Data, s.P, e) }
	return moments{s.N, s.Mean, s.Mean, times, times}
}

func jointMoments[T float32 | float64](j *linalg.Joint[T]) moments {
	return moments{
		j.N, j.MeanX, j.MeanY,
		func(e []float64) []float64 { return timesDense(j.Data, j.P, j.Q, e) },
		func(d []float64) []float64 { return timesTransposed(j.Data, j.P, j.Q, d) },
	}
}

// prepare moves the quartic to the means that there will be when the chunks have joined.
func (t *quartic) prepare(m moments, x, y chunk) {
	n := x.block.N()
	*t = t.moved(m, shift(m.n, m.meanX, n, x.block.Mean()), shift(m.n, m.meanY, n, y.block.Mean()))
}

// shift is by how far the mean of n observations moves when nb of mean mb join.
func shift(n int, mean []float64, nb int, mb []float64) []float64 {
	d := make([]float64, len(mean))
	share := float64(nb) / float64(n+nb)
	for i := range d {
		d[i] = share * (mb[i] - mean[i])
	}
	return d
}

// moved is the quartic about means that lie d and e further on.
func (t *quartic) moved(m moments, d, e []float64) quartic {
	if m.n == 0 {
		return *t
	}
	n, dd, ee := float64(m.n), dot(d, d), dot(e, e)
	ce, cd := m.times(e), m.timesT(d)
	out := quartic{
		ab: t.ab - 2*dot(e, t.h) - 2*dot(d, t.g) + 4*dot(d, ce) + ee*t.a + dd*t.b + n*dd*ee,
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

// take adds the observations of two chunks about the given means.
func (t *quartic) take(x, y chunk, meanX, meanY []float64) {
	if x.narrow != nil {
		takeRows(t, x.narrow, y.narrow, difference(x.block.Mean(), meanX), difference(y.block.Mean(), meanY))
	} else {
		takeRows(t, x.wide, y.wide, difference(x.block.Mean(), meanX), difference(y.block.Mean(), meanY))
	}
}

// takeRows adds observations x + dx and y + dy.
func takeRows[T float32 | float64](t *quartic, x, y []T, dx, dy []float64) {
	p, q := len(dx), len(dy)
	for i := range len(x) / p {
		u, v := x[i*p:(i+1)*p], y[i*q:(i+1)*q]
		a, b := squared(u, dx), squared(v, dy)
		t.ab, t.a, t.b = t.ab+a*b, t.a+a, t.b+b
		for j, w := range u {
			t.g[j] += b * (float64(w) + dx[j])
		}
		for j, w := range v {
			t.h[j] += a * (float64(w) + dy[j])
		}
	}
}

func squared[T float32 | float64](u []T, d []float64) float64 {
	var sum float64
	for j, w := range u {
		z := float64(w) + d[j]
		sum += z * z
	}
	return sum
}

func difference(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

func dot(a, b []float64) float64 {
	var sum float64
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// timesPacked multiplies a symmetric matrix, of which the rows of the upper triangle follow each other, with e.
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

func timesTransposed[T float32 | float64](data []T, p, q int, d []float64) []float64 {
	out := make([]float64, q)
	for i := range p {
		for j, v := range data[i*q : (i+1)*q] {
			out[j] += float64(v) * d[i]
		}
	}
	return out
}

func sqrt(v float64) float64 { return math.Sqrt(max(v, 0)) }

// merge adds the quartic of other observations; both have the moments that are given.
func (t *quartic) merge(m moments, o *quartic, om moments) {
	if om.n == 0 {
		return
	}
	a := t.moved(m, shift(m.n, m.meanX, om.n, om.meanX), shift(m.n, m.meanY, om.n, om.meanY))
	b := o.moved(om, shift(om.n, om.meanX, m.n, m.meanX), shift(om.n, om.meanY, m.n, m.meanY))
	*t = quartic{a.ab + b.ab, added(a.g, b.g), added(a.h, b.h), a.a + b.a, a.b + b.b}
}

func added(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] + b[i]
	}
	return out
}
