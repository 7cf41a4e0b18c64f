package video

import (
	"math"
	"math/rand/v2"
	"testing"
)

// inside reports whether a point is in a solid, by its definition.
func (s solid) inside(p vector) bool {
	for k := range p {
		p[k] = (p[k] - s.centre[k]) / s.half[k]
	}
	switch s.kind {
	case ellipsoid:
		return p.dot(p) <= 1
	case box:
		return max(math.Abs(p[0]), math.Abs(p[1]), math.Abs(p[2])) <= 1
	}
	return p[0]*p[0]+p[2]*p[2] <= 1 && math.Abs(p[1]) <= 1
}

// along returns the point of a ray.
func along(from, direction vector, at float64) (p vector) {
	for k := range p {
		p[k] = from[k] + at*direction[k]
	}
	return p
}

// TestRaysEnterSolids compares where rays enter solids with small steps along the ray, and checks
// that the normal leads out of the solid.
func TestRaysEnterSolids(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 1))
	hits := map[solidKind]int{}
	for range 900 {
		s := solid{kind: solidKind(draw.IntN(int(solidKinds))), half: vector{5 + 20*draw.Float64(), 5 + 20*draw.Float64(), 5 + 20*draw.Float64()},
			centre: vector{10 * draw.NormFloat64(), 10 * draw.NormFloat64(), 0}}
		from := vector{80 * draw.NormFloat64(), 80 * draw.NormFloat64(), -100}
		direction := vector{-from[0] + 15*draw.NormFloat64(), -from[1] + 15*draw.NormFloat64(), 100}
		const steps = 4000
		want := math.NaN()
		for i := range steps {
			if at := 2 * float64(i) / steps; s.inside(along(from, direction, at)) {
				want = at
				break
			}
		}
		at, normal, ok := s.hit(from, direction)
		if ok != !math.IsNaN(want) {
			// A step may be longer than the chord of a ray that only grazes the solid.
			if p := along(from, direction, at+1e-9); !ok || !s.inside(p) {
				t.Fatalf("%+v: ray from %v along %v: hit is %t", s, from, direction, ok)
			}
			continue
		}
		if !ok {
			continue
		}
		hits[s.kind]++
		if at > want+1e-9 || at < want-2.0/steps {
			t.Fatalf("%+v: ray from %v along %v enters at %g, want %g", s, from, direction, at, want)
		}
		p := along(from, direction, at)
		if n := normal.unit(); s.inside(along(p, n, 1e-3)) || normal.dot(direction) > 0 {
			t.Fatalf("%+v: the normal %v at %v does not lead out, towards the ray", s, n, p)
		}
	}
	for k := range solidKinds {
		if hits[k] < 50 {
			t.Errorf("%d rays hit solids of kind %d, want at least 50", hits[k], k)
		}
	}
}

// TestPlateTurnsAsTheImage checks that a thin plate shows what the motion orbit shows of the image
// itself, in the light of its angle to the lamp.
func TestPlateTurnsAsTheImage(t *testing.T) {
	t.Parallel()
	const f = 277.0
	plate := object{{kind: box, half: vector{200, 200, 1e-9}}}
	for _, degrees := range []float64{-30, 0, 12} {
		sin, cos := math.Sincos(degrees * math.Pi / 180)
		dy, dx := math.Sincos(0.7)
		got, want := plate.turned(sin, cos, dx, dy, f, 100), orbit(sin, cos, dx, dy, f)
		// The plate's normal, after the turn: cos towards the camera, and sin across the axis.
		lit := ambient + (1-ambient)*max(0, vector{-dy * sin, dx * sin, -cos}.dot(light))
		for _, p := range [][2]float64{{0, 0}, {50, -30}, {-60, 10}} {
			u, v, brightness := got(p[0], p[1])
			if x, y, _ := want(p[0], p[1]); math.Hypot(u-x, v-y) > 1e-6 {
				t.Errorf("%g degrees: pixel %v shows %g, %g, want %g, %g", degrees, p, u, v, x, y)
			}
			if math.Abs(brightness-lit) > 1e-9 {
				t.Errorf("%g degrees: brightness %g, want %g", degrees, brightness, lit)
			}
		}
	}
}

// TestObjectsTurnInDepth checks what a turning plane cannot show: the surface of a ball moves at the
// centre of the frame while its outline stays, a part hides what is behind it, and after half a turn
// the other side is seen.
func TestObjectsTurnInDepth(t *testing.T) {
	t.Parallel()
	const f, radius, apart = 277.0, 40.0, 100.0
	ball := object{{kind: ellipsoid, half: vector{radius, radius, radius}}}
	part := solid{kind: box, centre: vector{0, 0, -radius}, half: vector{10, 10, 10}}
	for _, degrees := range []float64{0, 10, -25} {
		sin, cos := math.Sincos(degrees * math.Pi / 180)
		view := ball.turned(sin, cos, 0, 1, f, apart) // about the vertical axis
		if u, v, _ := view(0, 0); math.Abs(math.Abs(u)-radius*math.Abs(sin)) > 1e-6 || math.Abs(v) > 1e-6 {
			t.Errorf("%g degrees: the centre shows %g, %g, want %g or its negative, and 0", degrees, u, v, radius*sin)
		}
		// A line of sight touches a ball at distance f from the camera at this radius of the frame.
		outline := f * radius / math.Sqrt(f*f-radius*radius)
		for _, p := range []float64{outline - 0.1, outline + 0.1} {
			_, _, brightness := view(p, 0)
			if hit := brightness != 1; hit != (p < outline) {
				t.Errorf("%g degrees: %g pixels from the centre the ball is hit: %t", degrees, p, hit)
			}
		}
	}
	with, without := append(object{part}, ball...).turned(0, 1, 0, 1, f, apart), ball.turned(0, 1, 0, 1, f, apart)
	u, _, _ := with(5, 0)
	hidden, _, _ := without(5, 0)
	if want := 5 * (f - radius - 10) / f; math.Abs(u-want) > 1e-9 || math.Abs(u-hidden) < 1e-3 {
		t.Errorf("pixel 5 shows %g before the ball and %g of it, want %g of the part", u, hidden, want)
	}
	if u, _, _ := append(object{part}, ball...).turned(0, -1, 0, 1, f, apart)(5, 0); u < apart {
		t.Errorf("after half a turn pixel 5 shows %g, want the image of the back", u)
	}
}
