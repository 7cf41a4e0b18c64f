package action

import "github.com/noether-ml/noether/internal/simd"

// Sums are sums over corresponding values of two rows a and b, or of several pairs of rows.
type Sums struct {
	Difference float64 // sum (a - b)^2
	AA, BB     float64 // sum a^2, sum b^2
}

// SumsOver returns the sums over the runs of each row of a and b.
func SumsOver(a, b []float32, rows int, runs []Run) (s Sums) {
	if k := simd.Registered(); k != nil {
		s.Difference, s.AA, s.BB = k.DifferenceSums(a, b, rows, ends(runs))
		return s
	}
	eachRun(a, b, rows, runs, s.Add)
	return s
}

// DotOver returns the dot product of a and b over the runs of each row. Parts of rows are added in
// float32, these in float64. The result is NaN or infinite if a product or a partial sum is.
func DotOver(a, b []float32, rows int, runs []Run) (sum float64) {
	if k := simd.Registered(); k != nil {
		return k.Dot(a, b, rows, ends(runs))
	}
	eachRun(a, b, rows, runs, func(x, y []float32) { sum += dot(x, y) })
	return sum
}

func ends(runs []Run) []int32 {
	out := make([]int32, 0, 2*len(runs))
	for _, r := range runs {
		out = append(out, int32(r.From), int32(r.To))
	}
	return out
}

// eachRun calls f for each run of each row, with the values of a and of b in the run.
func eachRun(a, b []float32, rows int, runs []Run, f func(x, y []float32)) {
	n := len(a) / rows
	for row := range rows {
		for _, r := range runs {
			from, to := row*n+r.From, row*n+r.To
			f(a[from:to], b[from:to])
		}
	}
}

// chunk is the number of products that are added in float32 before they are added in float64.
const chunk = 256

func sumsOf(a, b []float32) (s Sums) {
	s.Add(a, b)
	return s
}

// Add adds the values of two rows of the same length.
func (s *Sums) Add(a, b []float32) {
	for len(a) > 0 {
		n := min(chunk, len(a))
		difference, aa, bb := sums(a[:n], b[:n])
		s.Difference += difference
		s.AA += aa
		s.BB += bb
		a, b = a[n:], b[n:]
	}
}

// Dot returns the sum of the products of a and b. Its error is about 1e-7 of |a|^2 + |b|^2.
func (s Sums) Dot() float64 { return (s.AA + s.BB - s.Difference) / 2 }

// sums returns the sums of (a - b)^2, a^2 and b^2 of at most chunk values, even and odd ones
// separately in float32. If the sum of the squares overflows, or is so small that terms may
// underflow, all three sums are computed in float64.
func sums(a, b []float32) (difference, aa, bb float64) {
	var d0, d1, a0, a1, b0, b1 float32
	b = b[:len(a)]
	i := 0
	for ; i+1 < len(a); i += 2 {
		x, y := a[i], b[i]
		u, v := a[i+1], b[i+1]
		d, e := x-y, u-v
		d0 += d * d
		d1 += e * e
		a0 += x * x
		a1 += u * u
		b0 += y * y
		b1 += v * v
	}
	if i < len(a) {
		x, y := a[i], b[i]
		d := x - y
		d0, a0, b0 = d0+d*d, a0+x*x, b0+y*y
	}
	difference, aa, bb = float64(d0)+float64(d1), float64(a0)+float64(a1), float64(b0)+float64(b1)
	if sum := aa + bb; precise(sum) || sum == 0 && zero(a) && zero(b) {
		return difference, aa, bb
	}
	difference, aa, bb = 0, 0, 0
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		difference += (x - y) * (x - y)
		aa += x * x
		bb += y * y
	}
	return difference, aa, bb
}

// precise reports whether a float32 sum of squares is beyond the reach of underflow and overflow.
func precise(sum float64) bool { return sum >= 1e-18 && sum <= 1e37 }

func zero(a []float32) bool {
	for _, v := range a {
		if v != 0 {
			return false
		}
	}
	return true
}

func dot(a, b []float32) (sum float64) {
	for len(a) > 0 {
		n := min(chunk, len(a))
		x, y := a[:n], b[:n]
		y = y[:len(x)]
		var p0, p1, p2, p3 float32
		i := 0
		for ; i+3 < len(x); i += 4 {
			p0 += x[i] * y[i]
			p1 += x[i+1] * y[i+1]
			p2 += x[i+2] * y[i+2]
			p3 += x[i+3] * y[i+3]
		}
		for ; i < len(x); i++ {
			p0 += x[i] * y[i]
		}
		sum += float64(p0) + float64(p1) + float64(p2) + float64(p3)
		a, b = a[n:], b[n:]
	}
	return sum
}
