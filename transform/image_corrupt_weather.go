package transform

import (
	"math"
	"math/rand/v2"
	"slices"
)

// snow adds flakes and whitens. Flakes are noise, enlarged, thresholded and blurred up to 45
// degrees from straight down, added twice, once turned by 180 degrees, as in the original. s: mean
// and deviation of the noise, magnification, threshold, radius and deviation of the blur in
// standard pixels, weight of the image.
func snow(p canvas, s settings, r *rand.Rand) {
	flakes := flakeNoise(p.h, p.w, s, r)
	for i, v := range flakes {
		if v < float32(s[3]) {
			v = 0
		}
		flakes[i] = clip(v)
	}
	directionalBlur(flakes, p.h, p.w, s[4]*p.scale, s[5]*p.scale, -135+90*r.Float64())
	greys := make([]float32, p.h*p.w)
	grey(greys, p.data, p.c)
	weight := float32(s[6])
	for k := range p.c {
		plane := p.plane(k)
		for i, v := range plane {
			plane[i] = weight*v + (1-weight)*max(v, 1.5*greys[i]+0.5) + flakes[i] + flakes[len(flakes)-1-i]
		}
	}
}

// flakeNoise returns h x w values of enlarged noise. A smaller image has a part of the noise for
// smallSide: how often enlarged pixels fall between others depends on the size.
func flakeNoise(h, w int, s settings, r *rand.Rand) []float32 {
	wholeH, wholeW := max(h, smallSide), max(w, smallSide)
	whole := make([]float32, wholeH*wholeW)
	for i := range whole {
		whole[i] = float32(s[0] + s[1]*r.NormFloat64())
	}
	whole = magnify(whole, wholeH, wholeW, s[2])
	part := whole[:0]
	for y := range h {
		part = append(part, whole[y*wholeW:][:w]...)
	}
	return part
}

// frost blends with ice crystals, photographs in the original, here needles from the border, with
// shorter, fainter branches. s: the weights of the image and of the ice.
func frost(p canvas, s settings, r *rand.Rand) {
	ice := crystals(p.h, p.w, r)
	tint := []float32{0.85, 0.93, 1} // slightly blue
	for k := range p.c {
		plane, weight := p.plane(k), float32(s[1])
		if p.c == 3 {
			weight *= tint[k]
		}
		for i, v := range plane {
			plane[i] = float32(s[0])*v + weight*ice[i]
		}
	}
}

// crystals returns h x w values in [0, 1]. Needles grow from the border, up to 46 degrees from its
// normal, 0.25 to 0.7 of the shorter side long: 24, and fewer in small images, most of which they
// would cover. Branches leave at 60 degrees, below half as long and fainter. The numbers were
// chosen by eye. Most of the ice is dark, so that an image changes more where its weight is lower.
func crystals(h, w int, r *rand.Rand) []float32 {
	ice := make([]float32, h*w)
	side := float64(min(h, w))
	type branch struct{ x, y, angle, length, brightness float64 }
	var queue []branch
	for range int(min(24, max(6, side*24/128))) {
		along, border := r.Float64(), r.IntN(4)
		x, y := along*float64(w), 0.0
		inward := math.Pi / 2
		switch border {
		case 1:
			y, inward = float64(h), -math.Pi/2
		case 2:
			x, y, inward = 0, along*float64(h), 0
		case 3:
			x, y, inward = float64(w), along*float64(h), math.Pi
		}
		queue = append(queue, branch{x, y, inward + (r.Float64()-0.5)*1.6, side * (0.25 + 0.45*r.Float64()), 1})
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		sin, cos := math.Sincos(t.angle)
		for d := 0.0; d < t.length; d += 0.5 {
			x, y := int(math.Floor(t.x+d*cos)), int(math.Floor(t.y+d*sin))
			if x >= 0 && y >= 0 && x < w && y < h {
				fade := t.brightness * (1 - 0.5*d/t.length)
				ice[y*w+x] = max(ice[y*w+x], float32(fade))
			}
		}
		if t.length < side/12 || t.length < 3 {
			continue
		}
		for d := t.length * 0.15; d < t.length; d += max(2, t.length/7) {
			for _, turn := range []float64{math.Pi / 3, -math.Pi / 3} {
				queue = append(queue, branch{t.x + d*cos, t.y + d*sin, t.angle + turn, 0.45 * (t.length - d), 0.8 * t.brightness})
			}
		}
	}
	haze := slices.Clone(ice)
	smooth(haze, h, w, side/20, 3, mirrorIndices)
	largest := slices.Max(haze)
	for i := range ice {
		near := haze[i] / max(largest, 1e-6)
		ice[i] = clip(0.6*near*near*near + 0.4*ice[i])
	}
	return ice
}

// fog adds a random cloud and scales to the image's largest value. s: the weight of the cloud, and
// the decay of its roughness.
func fog(p canvas, s settings, r *rand.Rand) {
	largest := slices.Max(p.data)
	side := 1
	for side < max(p.h, p.w) {
		side *= 2
	}
	cloud := plasma(side, s[1], r)
	scale := largest / (largest + float32(s[0]))
	if !(largest > 0) {
		scale = 0
	}
	for k := range p.c {
		plane := p.plane(k)
		for y := range p.h {
			for x := range p.w {
				i := y*p.w + x
				plane[i] = (plane[i] + float32(s[0]*cloud[y*side+x])) * scale
			}
		}
	}
}

// plasma returns a fractal with values in [0, 1] on a torus of side x side, by the diamond-square
// algorithm. side is a power of two. The roughness is divided by decay at each finer step.
func plasma(side int, decay float64, r *rand.Rand) []float64 {
	m := make([]float64, side*side)
	at := func(y, x int) *float64 { return &m[(y&(side-1))*side+x&(side-1)] }
	roughness := 100.0 // of the original; its scale does not matter, since the result is normalised
	noise := func() float64 { return roughness * roughness * (2*r.Float64() - 1) }
	for step := side; step >= 2; step /= 2 {
		half := step / 2
		for y := 0; y < side; y += step {
			for x := 0; x < side; x += step {
				*at(y+half, x+half) = (*at(y, x)+*at(y+step, x)+*at(y, x+step)+*at(y+step, x+step))/4 + noise()
			}
		}
		for y := 0; y < side; y += step {
			for x := 0; x < side; x += step {
				*at(y, x+half) = (*at(y, x)+*at(y, x+step)+*at(y-half, x+half)+*at(y+half, x+half))/4 + noise()
				*at(y+half, x) = (*at(y, x)+*at(y+step, x)+*at(y+half, x-half)+*at(y+half, x+half))/4 + noise()
			}
		}
		roughness /= decay
	}
	low, high := slices.Min(m), slices.Max(m)
	for i, v := range m {
		m[i] = (v - low) / max(high-low, 1e-12)
	}
	return m
}
