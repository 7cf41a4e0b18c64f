package dense

import (
	"math"

	"github.com/noether-ml/noether/measure/decoded"
)

// An orthogonal is a rotation or reflection of the first two components of vectors, by rows.
type orthogonal [2][2]float64

// nearestOrthogonal returns the orthogonal matrix nearest to that of a motion: the factor U of the
// polar decomposition U P, in the coordinates of the vectors of a map of format f.
func (m motion) nearestOrthogonal(f *decoded.Format) orthogonal {
	aspect := float64(f.Width) / float64(f.Height)
	// The motion's matrix, by rows, in pixels of the map; y points down. The motion turns (1, 0)
	// and (0, 1) into right and down, in fractions of the sides.
	a, b, c, d := m.right.x, m.down.x*aspect, m.right.y/aspect, m.down.y
	if f.Vectors == decoded.YUp { // y of the vectors points up
		b, c = -b, -c
	}
	if a*d < b*c { // a reflection
		n := math.Hypot(a-d, b+c)
		return orthogonal{{(a - d) / n, (b + c) / n}, {(b + c) / n, (d - a) / n}}
	}
	n := math.Hypot(a+d, b-c)
	return orthogonal{{(a + d) / n, (b - c) / n}, {(c - b) / n, (a + d) / n}}
}

// apply rotates or reflects the vectors of a map, channels x positions, in place.
func (t orthogonal) apply(z []float32, positions int) {
	x, y := z[:positions], z[positions:2*positions]
	for i := range x {
		u, v := float64(x[i]), float64(y[i])
		x[i], y[i] = float32(t[0][0]*u+t[0][1]*v), float32(t[1][0]*u+t[1][1]*v)
	}
}

// angle returns the mean angle, in degrees, between the vectors of two maps, 3 x positions, where
// counted is not 0 (somewhere). A vector of length 0 has 90 degrees to others, and 0 to another of
// length 0.
func angle(a, b, counted []float32) float64 {
	n, sum, count := len(counted), 0.0, 0
	for i, c := range counted {
		if c == 0 {
			continue
		}
		p := [3]float64{float64(a[i]), float64(a[n+i]), float64(a[2*n+i])}
		q := [3]float64{float64(b[i]), float64(b[n+i]), float64(b[2*n+i])}
		count++
		if (p == [3]float64{}) != (q == [3]float64{}) {
			sum += math.Pi / 2
			continue
		}
		dot := p[0]*q[0] + p[1]*q[1] + p[2]*q[2]
		x, y, z := p[1]*q[2]-p[2]*q[1], p[2]*q[0]-p[0]*q[2], p[0]*q[1]-p[1]*q[0]
		sum += math.Atan2(math.Sqrt(x*x+y*y+z*z), dot) // unlike acos, accurate for small angles too
	}
	return sum / float64(count) * 180 / math.Pi
}
