package transform

import (
	"math"
	"math/rand/v2"
)

// defocusBlur averages over a disk with soft edges, as a lens out of focus does.
func defocusBlur(p canvas, s settings, _ *rand.Rand) {
	kernel, side := disk(s[0]*p.scale, s[1]*p.scale)
	source := make([]float32, p.h*p.w)
	for k := range p.c {
		plane := p.plane(k)
		copy(source, plane)
		convolve(plane, source, p.h, p.w, kernel, side)
	}
}

// disk is a square kernel of sum 1: the points within a radius, smoothed by a small Gaussian.
func disk(radius, blur float64) (kernel []float32, side int) {
	reach, soft := 8, 1 // the smoothing reaches so far
	if radius > 8 {
		reach, soft = int(math.Ceil(radius)), 2
	}
	side = 2*reach + 1
	aliased := make([]float64, side*side)
	var inside float64
	for y := -reach; y <= reach; y++ {
		for x := -reach; x <= reach; x++ {
			if float64(x*x+y*y) <= radius*radius {
				aliased[(y+reach)*side+x+reach] = 1
				inside++
			}
		}
	}
	line := gaussianLine(blur, soft)
	kernel = make([]float32, side*side)
	places := reflected(side, soft)
	for y := range side {
		for x := range side {
			var sum float64
			for i, a := range line {
				for j, b := range line {
					sum += a * b * aliased[places[y+i]*side+places[x+j]]
				}
			}
			kernel[y*side+x] = float32(sum / inside)
		}
	}
	return trim(kernel, side)
}

// trim drops rings of zeros around a square kernel.
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

// gaussianLine are weights from -reach to reach, of sum 1. A deviation of 0 leaves the middle alone.
func gaussianLine(sigma float64, reach int) []float64 {
	line := make([]float64, 2*reach+1)
	var sum float64
	for i := range line {
		x := float64(i - reach)
		if sigma > 0 {
			line[i] = math.Exp(-x * x / (2 * sigma * sigma))
		} else if x == 0 {
			line[i] = 1
		}
		sum += line[i]
	}
	for i := range line {
		line[i] /= sum
	}
	return line
}

// convolve weighs the neighbourhood of each point; the plane is reflected at its border, the border point itself once.
func convolve(dst, src []float32, h, w int, kernel []float32, side int) {
	reach := side / 2
	rows, columns := reflected(h, reach), reflected(w, reach)
	padded := make([]float32, len(columns))
	for y := range h {
		row := dst[y*w:][:w]
		clear(row)
		for i := range side {
			gatherPlaces(padded, src[rows[y+i]*w:][:w], columns)
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

// smooth blurs a plane by a Gaussian that is cut off after some deviations. border gives the places that a side of n
// with so many places beyond each end stands for.
func smooth(plane []float32, h, w int, sigma, cut float64, border func(n, reach int) []int) {
	reach := int(cut*sigma + 0.5)
	if sigma <= 0 || reach == 0 {
		return
	}
	var kernel []float32
	for _, v := range gaussianLine(sigma, reach) {
		kernel = append(kernel, float32(v))
	}
	rows, columns := border(h, reach), border(w, reach)
	padded, half := make([]float32, len(columns)), make([]float32, h*w)
	for y := range h {
		gatherPlaces(padded, plane[y*w:][:w], columns)
		convolveRow(half[y*w:][:w], padded, kernel)
	}
	for y := range h {
		convolveColumn(plane[y*w:][:w], half, rows[y:], kernel)
	}
}

// repeated goes on with the border point: a a | a b c | c c.
func repeated(n, reach int) []int {
	places := make([]int, n+2*reach)
	for k := range places {
		places[k] = min(max(k-reach, 0), n-1)
	}
	return places
}

// mirrored goes on with the mirror image, the border point twice: b a | a b c | c b.
func mirrored(n, reach int) []int {
	places := make([]int, n+2*reach)
	for k := range places {
		i := (k - reach) % (2 * n)
		if i < 0 {
			i += 2 * n
		}
		places[k] = min(i, 2*n-1-i)
	}
	return places
}

// glassBlur blurs, swaps each pixel with one nearby, some times over, and blurs again.
func glassBlur(p canvas, s settings, r *rand.Rand) {
	sigma, reach := s[0]*p.scale, max(1, int(math.Round(s[1]*p.scale)))
	blur := func() {
		for k := range p.c {
			smooth(p.plane(k), p.h, p.w, sigma, 4, repeated)
		}
	}
	blur()
	for range int(math.Round(s[2])) {
		for y := p.h - reach; y > reach; y-- {
			for x := p.w - reach; x > reach; x-- {
				dx, dy := r.IntN(2*reach)-reach, r.IntN(2*reach)-reach
				p.swap(y, x, y+dy, x+dx)
			}
		}
	}
	p.clip()
	blur()
}

func (p canvas) swap(y, x, v, u int) {
	y, x = min(y, p.h-1), min(x, p.w-1)
	for k := range p.c {
		plane := p.plane(k)
		plane[y*p.w+x], plane[v*p.w+u] = plane[v*p.w+u], plane[y*p.w+x]
	}
}

// motionBlur smears the image along a direction within 45 degrees of the horizontal.
func motionBlur(p canvas, s settings, r *rand.Rand) {
	angle := r.Float64()*90 - 45
	for k := range p.c {
		smear(p.plane(k), p.h, p.w, s[0]*p.scale, s[1]*p.scale, angle)
	}
}

// smear is ImageMagick's motion blur: a Gaussian's one half laid along a direction, in degrees; the plane goes on with
// its border.
func smear(plane []float32, h, w int, radius, sigma, angle float64) {
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
		share := float32(weight / sum)
		for y := range h {
			from := source[min(max(y+dy, 0), h-1)*w:][:w]
			to := plane[y*w:][:w]
			for x := range w {
				to[x] += share * from[min(max(x+dx, 0), w-1)]
			}
		}
	}
}

// zoomBlur averages the image with magnifications of itself.
func zoomBlur(p canvas, s settings, _ *rand.Rand) {
	for k := range p.c {
		plane := p.plane(k)
		sum := make([]float32, len(plane))
		copy(sum, plane)
		steps := int(math.Ceil((s[0] - 1) / s[1])) // rounding included: 7 factors up to 1.06, as in the original
		for i := range steps {
			for at, v := range magnified(plane, p.h, p.w, 1+float64(i)*((1+s[1])-1)) {
				sum[at] += v
			}
		}
		for at, v := range sum {
			plane[at] = v / float32(steps+1)
		}
	}
}

// magnified is the middle of a plane, enlarged bilinearly so that corners fall on corners, and cut to the plane's size.
func magnified(plane []float32, h, w int, factor float64) []float32 {
	boxH, boxW := int(math.Ceil(float64(h)/factor)), int(math.Ceil(float64(w)/factor))
	bigH, bigW := int(math.RoundToEven(float64(boxH)*factor)), int(math.RoundToEven(float64(boxW)*factor))
	top, left := (h-boxH)/2, (w-boxW)/2
	trimY, trimX := (bigH-h)/2, (bigW-w)/2
	ys, xs := stretch(h, trimY, boxH, bigH), stretch(w, trimX, boxW, bigW)
	out := make([]float32, h*w)
	for y, a := range ys {
		upper, lower := plane[(top+a.at)*w+left:], plane[(top+min(a.at+1, boxH-1))*w+left:]
		for x, b := range xs {
			next := min(b.at+1, boxW-1)
			first := upper[b.at] + b.part*(upper[next]-upper[b.at])
			second := lower[b.at] + b.part*(lower[next]-lower[b.at])
			out[y*w+x] = first + a.part*(second-first)
		}
	}
	return out
}

// A between is a place between two points.
type between struct {
	at   int
	part float32
}

// stretch says where n points, from skip on, of a side that is enlarged from small to big come from.
func stretch(n, skip, small, big int) []between {
	out := make([]between, n)
	for i := range out {
		place := 0.0
		if big > 1 {
			place = float64(min(max(i+skip, 0), big-1)) * float64(small-1) / float64(big-1)
		}
		at := min(int(place), max(small-1, 0))
		out[i] = between{at, float32(place - float64(at))}
	}
	return out
}
