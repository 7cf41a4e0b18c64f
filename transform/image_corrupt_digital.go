package transform

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/measure"
)

// Corruptions of ImageNet-C, which change p in place. The table corruptions names s; p.scale scales
// lengths in pixels.

// brighten adds s[0] to the value V of HSV, which keeps hue and saturation.
func brighten(p canvas, s settings, _ *rand.Rand) {
	n := p.h * p.w
	for i := range n {
		var value float32
		for k := range p.c {
			value = max(value, p.data[k*n+i])
		}
		target := clip(value + float32(s[0]))
		for k := range p.c {
			if value > 0 {
				p.data[k*n+i] *= target / value
			} else {
				p.data[k*n+i] = target
			}
		}
	}
}

// reduceContrast scales the deviations of each channel from its mean by s[0].
func reduceContrast(p canvas, s settings, _ *rand.Rand) {
	for k := range p.c {
		plane := p.plane(k)
		var sum float64
		for _, v := range plane {
			sum += float64(v)
		}
		mean := sum / float64(len(plane))
		for i, v := range plane {
			plane[i] = float32((float64(v)-mean)*s[0] + mean)
		}
	}
}

// elastic moves three points by at most corner in x and y, affinely, then each pixel by
// displacements.
func elastic(p canvas, s settings, r *rand.Rand) {
	length, sigma, corner := s[0]*p.scale, s[1]*p.scale, s[2]*p.scale
	cy, cx, third := float64(p.h/2), float64(p.w/2), float64(min(p.h, p.w)/3)
	from := [3][2]float64{{cx + third, cy + third}, {cx + third, cy - third}, {cx - third, cy - third}}
	to := from
	for i := range to {
		for j := range to[i] {
			to[i][j] += corner * (2*r.Float64() - 1)
		}
	}
	if m, ok := affineThrough(to, from); ok { // from the result to the source
		p.remap(func(y, x float64) (float64, float64) {
			return m.D*x + m.E*y + m.F, m.A*x + m.B*y + m.C
		}, reflect101)
	}
	dx, dy := displacements(p, sigma, length, r), displacements(p, sigma, length, r)
	p.remap(func(y, x float64) (float64, float64) {
		at := int(y)*p.w + int(x)
		return y + float64(dy[at]), x + float64(dx[at])
	}, mirror)
}

// displacements returns uniform noise on [-length, length] pixels, smoothed with deviation sigma.
func displacements(p canvas, sigma, length float64, r *rand.Rand) []float32 {
	f := make([]float32, p.h*p.w)
	for i := range f {
		f[i] = float32(2*r.Float64() - 1)
	}
	smooth(f, p.h, p.w, sigma, 3, mirrorIndices) // the Gaussian ends at 3 sigma
	for i := range f {
		f[i] *= float32(length)
	}
	return f
}

// affineThrough returns the affine map from from to to, points (x, y), about their origin, not an
// image's centre. ok is false for collinear points.
func affineThrough(from, to [3][2]float64) (m measure.Affine, ok bool) {
	x0, y0 := from[0][0], from[0][1]
	ux, uy, vx, vy := from[1][0]-x0, from[1][1]-y0, from[2][0]-x0, from[2][1]-y0
	det := ux*vy - uy*vx
	if math.Abs(det) < 1e-9 {
		return m, false
	}
	solve := func(k int) (a, b, c float64) {
		du, dv := to[1][k]-to[0][k], to[2][k]-to[0][k]
		a, b = (du*vy-dv*uy)/det, (dv*ux-du*vx)/det
		return a, b, to[0][k] - a*x0 - b*y0
	}
	m.A, m.B, m.C = solve(0)
	m.D, m.E, m.F = solve(1)
	return m, true
}

// reflect101 reflects into [0, n - 1] about border centres, as OpenCV's BORDER_REFLECT_101.
func reflect101(v float64, n int) float64 {
	if n == 1 {
		return 0
	}
	period := 2 * float64(n-1)
	v = math.Mod(math.Abs(v), period)
	return min(v, period-v)
}

// remap reads pixels at source's points, bilinearly; reflect maps coordinates outside into the
// image.
func (p canvas) remap(source func(y, x float64) (float64, float64), reflect func(v float64, n int) float64) {
	old := make([]float32, len(p.data))
	copy(old, p.data)
	for y := range p.h {
		for x := range p.w {
			sy, sx := source(float64(y), float64(x))
			sy, sx = min(max(reflect(sy, p.h), 0), float64(p.h-1)), min(max(reflect(sx, p.w), 0), float64(p.w-1))
			for k := range p.c {
				p.data[(k*p.h+y)*p.w+x] = bilinear(old[k*p.h*p.w:][:p.h*p.w], p.h, p.w, sy, sx)
			}
		}
	}
}

func bilinear(plane []float32, h, w int, y, x float64) float32 {
	iy, ix := int(y), int(x)
	fy, fx := float32(y-float64(iy)), float32(x-float64(ix))
	down, right := min(iy+1, h-1), min(ix+1, w-1)
	upper := plane[iy*w+ix]*(1-fx) + plane[iy*w+right]*fx
	lower := plane[down*w+ix]*(1-fx) + plane[down*w+right]*fx
	return upper*(1-fy) + lower*fy
}

// pixelate shrinks the sides of the image to the fraction s[0] and enlarges them again, with a box
// filter. At small sizes other than multiples of 32, whole numbers of pixels would make severities
// equal or change their order: there the image is mixed with that of severity 5.
func pixelate(p canvas, s settings, _ *rand.Rand) {
	const coarsest = .65 // fraction at severity 5 of CIFAR-10-C
	fraction, weight := s[0], float32(1)
	if p.side() < largeSide && p.side()%smallSide != 0 {
		fraction, weight = coarsest, float32((1-s[0])/(1-coarsest))
	}
	h, w := max(1, int(float64(p.h)*fraction)), max(1, int(float64(p.w)*fraction))
	for k := range p.c {
		plane := p.plane(k)
		small := boxResize(boxResize(plane, p.h, p.w, w, true), p.h, w, h, false)
		for i, v := range boxResize(boxResize(small, h, w, p.w, true), h, p.w, p.h, false) {
			plane[i] += weight * (v - plane[i])
		}
	}
}

// boxResize resizes rows (horizontal) or columns to n pixels, as PIL's box filter: the mean of
// pixels whose centres a pixel covers, enlarged the nearest.
func boxResize(plane []float32, h, w, n int, horizontal bool) []float32 {
	length, lines, step, lineStep := w, h, 1, w
	outStep, outLineStep := 1, n
	if !horizontal {
		length, lines, step, lineStep = h, w, w, 1
		outStep, outLineStep = w, 1
	}
	out := make([]float32, lines*n)
	scale := float64(length) / float64(n)
	support := max(scale, 1) / 2
	for i := range n {
		centre := (float64(i) + 0.5) * scale
		low, high := max(0, int(centre-support+0.5)), min(length, int(centre+support+0.5))
		for line := range lines {
			var sum float32
			for j := low; j < high; j++ {
				sum += plane[line*lineStep+j*step]
			}
			out[line*outLineStep+i*outStep] = sum / float32(max(1, high-low))
		}
	}
	return out
}

// compressJPEG encodes the image as JPEG (4:2:0) of quality s[0] and decodes it.
func compressJPEG(p canvas, s settings, _ *rand.Rand) {
	jpegRoundTrip(p.data, p.data, p.c, p.h, p.w, s[0])
}
