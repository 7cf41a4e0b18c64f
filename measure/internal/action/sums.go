package action

// Sums are sums over the values of two rows a and b.
type Sums struct {
	Difference float64 // sum (a - b)^2
	AA, BB, AB float64
}

// Chunk is the number of products that are added in float32 before they are added in float64.
const Chunk = 256

// Sum returns the sums over two rows of the same length.
func Sum(a, b []float32) (s Sums) {
	s.Add(a, b)
	return s
}

// Add adds the values of two rows of the same length.
func (s *Sums) Add(a, b []float32) {
	for len(a) > 0 {
		n := min(Chunk, len(a))
		difference, aa, bb, ab := sums(a[:n], b[:n])
		s.Difference += difference
		s.AA += aa
		s.BB += bb
		s.AB += ab
		a, b = a[n:], b[n:]
	}
}

// sums returns the sums of (a - b)^2, a^2, b^2 and a b of at most Chunk values. They are added in
// float32, in four parts. If a sum overflows, or is so small that terms may vanish, it is computed
// in float64.
func sums(a, b []float32) (difference, aa, bb, ab float64) {
	var d0, d1, a0, a1, b0, b1, p0, p1 float32
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
		p0 += x * y
		p1 += u * v
	}
	if i < len(a) {
		x, y := a[i], b[i]
		d := x - y
		d0, a0, b0, p0 = d0+d*d, a0+x*x, b0+y*y, p0+x*y
	}
	difference, aa, bb, ab = float64(d0)+float64(d1), float64(a0)+float64(a1), float64(b0)+float64(b1), float64(p0)+float64(p1)
	const small, large = 1e-18, 1e37
	if sum := aa + bb; sum >= small && sum <= large || sum == 0 && zero(a) && zero(b) {
		return difference, aa, bb, ab
	}
	return sums64(a, b)
}

func zero(a []float32) bool {
	for _, v := range a {
		if v != 0 {
			return false
		}
	}
	return true
}

// sums64 is sums in float64.
func sums64(a, b []float32) (difference, aa, bb, ab float64) {
	for i, v := range a {
		x, y := float64(v), float64(b[i])
		difference += (x - y) * (x - y)
		aa += x * x
		bb += y * y
		ab += x * y
	}
	return difference, aa, bb, ab
}
