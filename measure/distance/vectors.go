package distance

import "math"

// pairSums holds sums over the components of two vectors a and b, from which distances are
// computed.
type pairSums struct {
	dot      float64 // sum a b
	aa, bb   float64 // sum a^2, sum b^2
	abs, sqr float64 // sum |a - b|, sum (a - b)^2
}

// nativeValues is the smallest number of components for which a call of C pays.
const nativeValues = 64

// newPairSums returns the sums of two vectors. All sums are in float64, since a distance near zero
// is a small difference of large numbers.
func newPairSums(a, b []float32) pairSums {
	if nativeLevel > 0 && len(a) >= nativeValues {
		return nativeSums(a, b[:len(a)], nativeLevel)
	}
	return sumsInGo(a, b)
}

// sumsInGo has two sums of each kind, so that the processor can add in parallel.
func sumsInGo(a, b []float32) pairSums {
	var dot, aa, bb, abs, sqr float64
	var dot1, aa1, bb1, abs1, sqr1 float64
	b = b[:len(a)]
	i := 0
	for ; i+1 < len(a); i += 2 {
		x, y := float64(a[i]), float64(b[i])
		d := x - y
		dot += x * y
		aa += x * x
		bb += y * y
		abs += math.Abs(d)
		sqr += d * d

		x, y = float64(a[i+1]), float64(b[i+1])
		d = x - y
		dot1 += x * y
		aa1 += x * x
		bb1 += y * y
		abs1 += math.Abs(d)
		sqr1 += d * d
	}
	if i < len(a) {
		x, y := float64(a[i]), float64(b[i])
		d := x - y
		dot, aa, bb, abs, sqr = dot+x*y, aa+x*x, bb+y*y, abs+math.Abs(d), sqr+d*d
	}
	return pairSums{dot + dot1, aa + aa1, bb + bb1, abs + abs1, sqr + sqr1}
}

// Distances holds the distances between two vectors z and z'.
type Distances struct {
	Cosine     float64 // 1 - z.z' / (|z| |z'|): 0 same direction, 1 at right angles, 2 opposite
	L1         float64 // sum |z_i - z'_i|
	L2         float64 // sqrt(sum (z_i - z'_i)^2)
	RelativeL2 float64 // L2 / sqrt((|z|^2 + |z'|^2) / 2): 0 to 2
}

// Between returns the distances of two vectors of the same length. Two zero vectors have distance
// 0. A zero vector has cosine distance 1 from any other.
func Between(z, transformed []float32) Distances { return newPairSums(z, transformed).distances() }

func (m pairSums) distances() Distances {
	d := Distances{Cosine: 1, L1: m.abs, L2: math.Sqrt(m.sqr)}
	switch {
	case m.aa == 0 && m.bb == 0:
		d.Cosine = 0
		return d
	case m.aa > 0 && m.bb > 0:
		d.Cosine = min(max(1-m.dot/math.Sqrt(m.aa*m.bb), 0), 2)
	}
	d.RelativeL2 = math.Sqrt(2 * m.sqr / (m.aa + m.bb))
	return d
}
