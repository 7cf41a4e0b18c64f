package transform

import (
	"math"
	"math/rand/v2"
)

// The corruptions of ImageNet-C, whose code is called the original. Each changes p in place.
// Comments name the elements of s. Lengths in s are for a standard size; p.scale is the ratio to
// it.

// defocusBlur convolves with a disk with soft edges, as a lens out of focus does. s: the radius of
// the disk, and the standard deviation of the Gaussian that softens it. Whole factors keep small
// disks, of few pixels, in the order of the severities.
func defocusBlur(p canvas, s settings, _ *rand.Rand) {
	scale := p.blurScale()
	if p.side() < largeSide {
		scale = math.Floor(scale)
	}
	kernel, side := disk(s[0]*scale, s[1]*scale)
	source := make([]float32, p.h*p.w)
	for k := range p.c {
		plane := p.plane(k)
		copy(source, plane)
		convolve(plane, source, p.h, p.w, kernel, side)
	}
}

// disk returns a square kernel of sum 1, a disk blurred by a Gaussian, as the original makes it.
func disk(radius, blur float64) (kernel []float32, side int) {
	margin, blurRadius := 8, 1
	if radius > 8 {
		margin, blurRadius = int(math.Ceil(radius)), 2
	}
	side = 2*margin + 1
	aliased := make([]float64, side*side)
	var inside float64
	for y := -margin; y <= margin; y++ {
		for x := -margin; x <= margin; x++ {
			if float64(x*x+y*y) <= radius*radius {
				aliased[(y+margin)*side+x+margin] = 1
				inside++
			}
		}
	}
	line := gaussianKernel(blur, blurRadius)
	kernel = make([]float32, side*side)
	indices := reflectIndices(side, blurRadius)
	for y := range side {
		for x := range side {
			var sum float64
			for i, a := range line {
				for j, b := range line {
					sum += float64(a) * float64(b) * aliased[indices[y+i]*side+indices[x+j]]
				}
			}
			kernel[y*side+x] = float32(sum / inside)
		}
	}
	return trim(kernel, side)
}

func trim(kernel []float32, side int) ([]float32, int) {
	for side > 1 {
		for i := range side {
			if kernel[i] != 0 || kernel[(side-1)*side+i] != 0 || kernel[i*side] != 0 || kernel[i*side+side-1] != 0 {
				return kernel, side
			}
		}
		inner := make([]float32, (side-2)*(side-2))
		for y := range side - 2 {
			copy(inner[y*(side-2):], kernel[(y+1)*side+1:][:side-2])
		}
		kernel, side = inner, side-2
	}
	return kernel, side
}

// convolve convolves an h x w plane, reflected at its border as by reflectIndices.
func convolve(dst, src []float32, h, w int, kernel []float32, side int) {
	margin := side / 2
	rows, columns := reflectIndices(h, margin), reflectIndices(w, margin)
	padded := make([]float32, len(columns))
	for y := range h {
		row := dst[y*w:][:w]
		clear(row)
		for i := range side {
			gatherElements(padded, src[rows[y+i]*w:][:w], columns)
			for j, weight := range kernel[i*side:][:side] {
				if weight == 0 {
					continue
				}
				for x, v := range padded[j:][:w] {
					row[x] += weight * v
				}
			}
		}
	}
}

// smooth blurs a plane of h x w by a Gaussian that is truncated after a number of standard
// deviations.
func smooth(plane []float32, h, w int, sigma, deviations float64, border func(n, margin int) []int) {
	margin := int(deviations*sigma + 0.5)
	if sigma <= 0 || margin == 0 {
		return
	}
	convolveBoth(plane, plane, h, w, gaussianKernel(sigma, margin), border)
}

// repeatIndices extends a side by its border pixel: a a | a b c | c c.
func repeatIndices(n, margin int) []int {
	indices := make([]int, n+2*margin)
	for k := range indices {
		indices[k] = min(max(k-margin, 0), n-1)
	}
	return indices
}

// mirrorIndices extends a side by its mirror image, the border pixel twice: b a | a b c | c b.
func mirrorIndices(n, margin int) []int {
	indices := make([]int, n+2*margin)
	for k := range indices {
		i := (k - margin) % (2 * n)
		if i < 0 {
			i += 2 * n
		}
		indices[k] = min(i, 2*n-1-i)
	}
	return indices
}

// glassBlur blurs, swaps each pixel several times with a random pixel nearby, and blurs again. s:
// the standard deviation of the blur, the largest distance of a swap, and the number of passes.
func glassBlur(p canvas, s settings, r *rand.Rand) {
	scale := p.blurScale()
	sigma, margin := s[0]*scale, max(1, int(math.Round(s[1]*scale)))
	blur := func() {
		for k := range p.c {
			smooth(p.plane(k), p.h, p.w, sigma, 4, repeatIndices)
		}
	}
	blur()
	for range int(math.Round(s[2])) {
		for y := p.h - margin; y > margin; y-- {
			for x := p.w - margin; x > margin; x-- {
				dx, dy := r.IntN(2*margin)-margin, r.IntN(2*margin)-margin
				p.swap(y, x, y+dy, x+dx)
			}
		}
	}
	p.clip()
	blur()
}

// swap swaps the pixels at row y, column x, at most the last ones, and at row v, column u.
func (p canvas) swap(y, x, v, u int) {
	y, x = min(y, p.h-1), min(x, p.w-1)
	for k := range p.c {
		plane := p.plane(k)
		plane[y*p.w+x], plane[v*p.w+u] = plane[v*p.w+u], plane[y*p.w+x]
	}
}

// motionBlur blurs within 45 degrees of the horizontal. s: radius and standard deviation.
func motionBlur(p canvas, s settings, r *rand.Rand) {
	angle, scale := r.Float64()*90-45, p.blurScale()
	for k := range p.c {
		directionalBlur(p.plane(k), p.h, p.w, s[0]*scale, s[1]*scale, angle)
	}
}

// directionalBlur is ImageMagick's motion blur, half a Gaussian along an angle in degrees; border
// pixels are repeated.
func directionalBlur(plane []float32, h, w int, radius, sigma, angle float64) {
	width := 2*int(math.Ceil(radius)) + 1
	weights := make([]float64, width)
	var sum float64
	for i := range weights {
		weights[i] = math.Exp(-float64(i*i) / (2 * sigma * sigma))
		sum += weights[i]
	}
	sin, cos := math.Sincos(angle * math.Pi / 180)
	source := make([]float32, len(plane))
	copy(source, plane)
	clear(plane)
	for i, weight := range weights {
		dy, dx := int(math.Ceil(float64(i)*sin-0.5)), int(math.Ceil(float64(i)*cos-0.5))
		normalised := float32(weight / sum)
		for y := range h {
			from := source[min(max(y+dy, 0), h-1)*w:][:w]
			to := plane[y*w:][:w]
			for x := range w {
				to[x] += normalised * from[min(max(x+dx, 0), w-1)]
			}
		}
	}
}

// zoomBlur averages the image with magnifications of itself. s: the largest factor, excluded, and
// the step between factors.
func zoomBlur(p canvas, s settings, _ *rand.Rand) {
	enlarge := magnify
	if p.side() < smallSide {
		enlarge = magnifyExactly
	}
	for k := range p.c {
		plane := p.plane(k)
		sum := make([]float32, len(plane))
		copy(sum, plane)
		// As in the original, by numpy.arange(1, s[0], s[1]). It rounds the number up, so 1.06 is
		// the last of 7 at severity 1, and takes (1 + s[1]) - 1 for distances.
		steps := int(math.Ceil((s[0] - 1) / s[1]))
		for step := range steps {
			for i, v := range enlarge(plane, p.h, p.w, 1+float64(step)*((1+s[1])-1)) {
				sum[i] += v
			}
		}
		for i, v := range sum {
			plane[i] = v / float32(steps+1)
		}
	}
}

// magnify returns an enlarged plane's centre, h x w, bilinear with aligned corners. As in the
// original, the part that is enlarged has whole pixels.
func magnify(plane []float32, h, w int, factor float64) []float32 {
	boxH, boxW := int(math.Ceil(float64(h)/factor)), int(math.Ceil(float64(w)/factor))
	bigH, bigW := int(math.RoundToEven(float64(boxH)*factor)), int(math.RoundToEven(float64(boxW)*factor))
	top, left := (h-boxH)/2, (w-boxW)/2
	trimY, trimX := (bigH-h)/2, (bigW-w)/2
	ys, xs := sourcePositions(h, trimY, boxH, bigH), sourcePositions(w, trimX, boxW, bigW)
	out := make([]float32, h*w)
	for y, a := range ys {
		upper, lower := plane[(top+a.index)*w+left:], plane[(top+min(a.index+1, boxH-1))*w+left:]
		for x, b := range xs {
			next := min(b.index+1, boxW-1)
			first := upper[b.index] + b.fraction*(upper[next]-upper[b.index])
			second := lower[b.index] + b.fraction*(lower[next]-lower[b.index])
			out[y*w+x] = first + a.fraction*(second-first)
		}
	}
	return out
}

func magnifyExactly(plane []float32, h, w int, factor float64) []float32 {
	out := make([]float32, h*w)
	cy, cx := float64(h-1)/2, float64(w-1)/2
	for y := range h {
		for x := range w {
			out[y*w+x] = bilinear(plane, h, w, cy+(float64(y)-cy)/factor, cx+(float64(x)-cx)/factor)
		}
	}
	return out
}

// An interpolation is a position between two pixels, in pixels: index + fraction.
type interpolation struct {
	index    int
	fraction float32
}

// sourcePositions returns where n pixels from skip on are read from, on a side enlarged from small
// to big.
func sourcePositions(n, skip, small, big int) []interpolation {
	out := make([]interpolation, n)
	for i := range out {
		x := 0.0
		if big > 1 {
			x = float64(min(max(i+skip, 0), big-1)) * float64(small-1) / float64(big-1)
		}
		index := min(int(x), max(small-1, 0))
		out[i] = interpolation{index, float32(x - float64(index))}
	}
	return out
}
