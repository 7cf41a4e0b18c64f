package transform

import (
	"math"
	"math/rand/v2"
	"slices"
)

// snow lets flakes fall: points of noise, enlarged, thinned and smeared downwards, over an image made whiter.
func snow(p canvas, s settings, r *rand.Rand) {
	flakes := make([]float32, p.h*p.w)
	for i := range flakes {
		flakes[i] = float32(s[0] + s[1]*r.NormFloat64())
	}
	flakes = magnified(flakes, p.h, p.w, s[2])
	for i, v := range flakes {
		if v < float32(s[3]) {
			v = 0
		}
		flakes[i] = clip(v)
	}
	smear(flakes, p.h, p.w, s[4]*p.scale, s[5]*p.scale, -135+90*r.Float64())
	light := make([]float32, p.h*p.w)
	grey(light, p.data, p.c)
	keep := float32(s[6])
	for k := range p.c {
		plane := p.plane(k)
		for i, v := range plane {
			plane[i] = keep*v + (1-keep)*max(v, 1.5*light[i]+0.5) + flakes[i] + flakes[len(flakes)-1-i]
		}
	}
}

// frost lays ice crystals over the image. The original takes photographs of frosted windows; here needles grow
// from seeds at the border inwards, each thinner and fainter than what it grew from.
func frost(p canvas, s settings, r *rand.Rand) {
	ice := crystals(p.h, p.w, r)
	tint := []float32{0.85, 0.93, 1} // a little blue
	for k := range p.c {
		plane, share := p.plane(k), float32(s[1])
		if p.c == 3 {
			share *= tint[k]
		}
		for i, v := range plane {
			plane[i] = float32(s[0])*v + share*ice[i]
		}
	}
}

// crystals draws feathers of ice, between 0 and 1: twigs branch off at 60 degrees, as ice does.
func crystals(h, w int, r *rand.Rand) []float32 {
	ice := make([]float32, h*w)
	side := float64(min(h, w))
	type twig struct{ x, y, angle, length, light float64 }
	var queue []twig
	for range 24 {
		along, at := r.Float64(), r.IntN(4)
		x, y := along*float64(w), 0.0
		inward := math.Pi / 2
		switch at {
		case 1:
			y, inward = float64(h), -math.Pi/2
		case 2:
			x, y, inward = 0, along*float64(h), 0
		case 3:
			x, y, inward = float64(w), along*float64(h), math.Pi
		}
		queue = append(queue, twig{x, y, inward + (r.Float64()-0.5)*1.6, side * (0.25 + 0.45*r.Float64()), 1})
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		sin, cos := math.Sincos(t.angle)
		for d := 0.0; d < t.length; d += 0.5 {
			x, y := int(math.Floor(t.x+d*cos)), int(math.Floor(t.y+d*sin))
			if x >= 0 && y >= 0 && x < w && y < h {
				fade := t.light * (1 - 0.5*d/t.length)
				ice[y*w+x] = max(ice[y*w+x], float32(fade))
			}
		}
		if t.length < side/12 || t.length < 3 {
			continue
		}
		for d := t.length * 0.15; d < t.length; d += max(2, t.length/7) {
			for _, turn := range []float64{math.Pi / 3, -math.Pi / 3} {
				queue = append(queue, twig{t.x + d*cos, t.y + d*sin, t.angle + turn, 0.45 * (t.length - d), 0.8 * t.light})
			}
		}
	}
	haze := slices.Clone(ice)
	smooth(haze, h, w, side/20, 3, mirrored)
	most := slices.Max(haze)
	for i := range ice {
		ice[i] = clip(0.15 + 0.45*haze[i]/max(most, 1e-6) + 0.4*ice[i])
	}
	return ice
}

// fog lays a cloud over the image and keeps its largest value.
func fog(p canvas, s settings, r *rand.Rand) {
	most := slices.Max(p.data)
	side := 1
	for side < max(p.h, p.w) {
		side *= 2
	}
	cloud := plasma(side, s[1], r)
	share := most / (most + float32(s[0]))
	if !(most > 0) {
		share = 0
	}
	for k := range p.c {
		plane := p.plane(k)
		for y := range p.h {
			for x := range p.w {
				at := y*p.w + x
				plane[at] = (plane[at] + float32(s[0]*cloud[y*side+x])) * share
			}
		}
	}
}

// plasma is a fractal between 0 and 1 on a torus of side x side, a power of two, by the diamond-square rule: the roughness of
// each finer step is that of the last one divided by decay.
func plasma(side int, decay float64, r *rand.Rand) []float64 {
	m := make([]float64, side*side)
	at := func(y, x int) *float64 { return &m[(y&(side-1))*side+x&(side-1)] }
	wibble := 100.0
	rough := func() float64 { return wibble * wibble * (2*r.Float64() - 1) }
	for step := side; step >= 2; step /= 2 {
		half := step / 2
		for y := 0; y < side; y += step {
			for x := 0; x < side; x += step {
				*at(y+half, x+half) = (*at(y, x)+*at(y+step, x)+*at(y, x+step)+*at(y+step, x+step))/4 + rough()
			}
		}
		for y := 0; y < side; y += step {
			for x := 0; x < side; x += step {
				*at(y, x+half) = (*at(y, x)+*at(y, x+step)+*at(y-half, x+half)+*at(y+half, x+half))/4 + rough()
				*at(y+half, x) = (*at(y, x)+*at(y+step, x)+*at(y+half, x-half)+*at(y+half, x+half))/4 + rough()
			}
		}
		wibble /= decay
	}
	low, high := slices.Min(m), slices.Max(m)
	for i, v := range m {
		m[i] = (v - low) / max(high-low, 1e-12)
	}
	return m
}
