package autoattack

import (
	"math"

	"github.com/noether-ml/noether/internal/ball"
)

const (
	overshoot   = 1.05 // eta: how far a step goes, as a multiple of the way to the hyperplane
	backward    = 0.9  // beta: how far from the image the search continues after a success
	maxBias     = 0.1  // largest weight of the step from the image, against that from x'
	minDistance = 1e-8
)

// fab searches the closest image with z_t >= z_y. At x' this boundary is approximated by the
// hyperplane
//
//	z_t - z_y + <grad (z_t - z_y), u - x'> = 0   for u in [0, 1].
//
// x' moves to a mean of the points beyond the hyperplane that are closest to x' and to the image.
// Where x' is of another class, the search continues between it and the image. It is a success as
// soon as such an x' is in the ball.
func (s *search) fab(target int) error {
	x := append([]float32{}, s.Image...)
	for i := range steps {
		z, w, err := s.network.Gradient(x, target)
		if err != nil {
			return err
		}
		if !finite(z) || !finite(w) {
			return errNonFinite
		}
		if i == 0 && zero(w) { // no step would leave x
			s.result.Flat = true
			return nil
		}
		c := float64(z[target]) - float64(z[s.Label])
		fromImage := c
		for k, v := range w {
			fromImage += float64(v) * (float64(s.Image[k]) - float64(x[k]))
		}
		d1, d2 := toHyperplane(s.Ball.Norm, x, w, c), toHyperplane(s.Ball.Norm, s.Image, w, fromImage)
		origin := make([]float32, len(x))
		a1, a2 := max(s.norm(d1, origin), minDistance), max(s.norm(d2, origin), minDistance)
		alpha := float32(min(a1/(a1+a2), maxBias))
		for k, v := range s.Image {
			x[k] = clip(float32((x[k]+float32(overshoot*d1[k]))*(1-alpha)) + float32((v+float32(overshoot*d2[k]))*alpha))
		}
		if z, err = s.network.Scores(x); err != nil {
			return err
		}
		if !finite(z) {
			return errNonFinite
		}
		if !s.broken(z) {
			continue
		}
		if s.norm(x, s.Image) <= s.Ball.Radius {
			return errBroken
		}
		for k, v := range s.Image {
			x[k] = v + float32((x[k]-v)*backward)
		}
	}
	return nil
}

// toHyperplane returns the smallest d, in a norm, for which c + <w, d> = 0 and x + d has values in
// [0, 1]. If there is none, it returns the d for which c + <w, d> is closest to 0.
//
// d_i has the sign that reduces |c|, and the size min(s k_i, r_i): r_i is the way to the end of [0,
// 1], and k_i is 1 (linf) or |w_i| (l2). So sum |w_i| min(s k_i, r_i) = |c|. The sum is concave in s
// and piecewise linear, so Newton's method from s = 0 ends at the solution.
func toHyperplane(norm ball.Norm, x, w []float32, c float64) []float32 {
	r, k := make([]float64, len(w)), make([]float64, len(w))
	d := make([]float32, len(w))
	for i, v := range w {
		if v == 0 {
			continue
		}
		r[i], k[i] = float64(x[i]), 1
		if (c < 0) == (v > 0) { // x_i increases
			r[i] = 1 - r[i]
		}
		if norm == ball.L2 {
			k[i] = math.Abs(float64(v))
		}
	}
	s := 0.0
	for range maxNewton {
		rest, slope := math.Abs(c), 0.0
		for i, v := range w {
			size := math.Abs(float64(v))
			if s*k[i] < r[i] {
				slope += size * k[i]
			} else {
				rest -= size * r[i]
			}
		}
		next := rest / slope
		if slope == 0 || !(next > s) { // all are at the end of [0, 1], or s is the solution
			if slope == 0 {
				s = math.Inf(1)
			}
			break
		}
		s = next
	}
	for i, v := range w {
		if v == 0 {
			continue
		}
		size := float32(min(s*k[i], r[i]))
		if (c < 0) == (v > 0) {
			d[i] = size
		} else {
			d[i] = -size
		}
	}
	return d
}

// maxNewton bounds the iterations, of which each adds pixels to those at the end of [0, 1]. Ten are
// many.
const maxNewton = 200
