package action

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/simd"
	_ "github.com/noether-ml/noether/internal/simd/avx"
	"github.com/noether-ml/noether/transform"
)

// TestKernels checks that the kernels of package avx agree with the functions in Go, for maps of
// several sizes, and for values whose squares underflow or overflow in float32. z are feature maps,
// one of h x w positions for each channel. The kernels rotate them. A position is counted if it
// lies inside the map before and after the rotation. The floor is the error of interpolation alone:
// of rotating forward and back (see FloorSums). Sums are those of (x - y)^2, x^2 and y^2.
func TestKernels(t *testing.T) {
	k := simd.Registered()
	if k == nil {
		t.Skip("needs a processor with AVX2, and cgo")
	}
	r := rand.New(rand.NewPCG(1, 2))
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(b) || math.IsNaN(a) && math.IsNaN(b) }
	rotation := transform.Rotate{Angle: transform.Fixed(20)}.Draw(nil)
	for _, c := range []struct {
		h, w, channels int
		scale          float32
	}{{7, 7, 8, 1}, {16, 13, 13, 1}, {56, 56, 3, 1}, {40, 41, 16, 1e-22}, {12, 30, 9, 1e22}, {56, 50, 9, 0}} {
		points, ok := transform.PointMapOf(rotation, c.h, c.w)
		if !ok {
			t.Fatal("no map of positions")
		}
		f := newField(points, Grid{Height: c.h, Width: c.w})
		if f.N == 0 || !f.interpolated() {
			t.Fatalf("%d x %d: %d positions are counted (see Field), want some that are interpolated", c.h, c.w, f.N)
		}
		n := c.h * c.w
		z, other := make([]float32, c.channels*n), make([]float32, c.channels*n)
		to := make([]int32, c.channels) // the channel that each channel is written to
		for i, k := range r.Perm(c.channels) {
			to[i] = int32(k)
		}
		for i := range z {
			z[i], other[i] = c.scale*float32(r.NormFloat64()), c.scale*float32(r.NormFloat64())
		}
		got, want := make([]float32, len(z)), make([]float32, len(z))
		var floor, wantFloor FloorSums
		f.actByKernel(k, got, z, n, to, &floor)
		for k := range c.channels {
			result := want[int(to[k])*n:][:n]
			f.forward.readPlane(result, z[k*n:][:n])
			f.back.differPlane(result, z[k*n:][:n], &wantFloor)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%+v: value %d is %v, want %v", c, i, got[i], want[i])
			}
		}
		if !near(floor.Difference, wantFloor.Difference) || !near(floor.Norm, wantFloor.Norm) {
			t.Errorf("%+v: floor %+v, want %+v", c, floor, wantFloor)
		}
		var s Sums
		dots := 0.
		eachRun(got, other, c.channels, f.Counted, s.Add)
		eachRun(got, other, c.channels, f.Counted, func(x, y []float32) { dots += dot(x, y) })
		if g := SumsOver(got, other, c.channels, f.Counted); !near(g.Difference, s.Difference) || !near(g.AA, s.AA) || !near(g.BB, s.BB) {
			t.Errorf("%+v: sums %+v, want %+v", c, g, s)
		}
		if g := DotOver(got, other, c.channels, f.Counted); c.scale == 1 && math.Abs(g-dots) > 1e-6*(s.AA+s.BB) {
			t.Errorf("%+v: dot product %v, want %v", c, g, dots)
		}
		z[f.Counted[0].From] = float32(math.NaN())
		floor = FloorSums{}
		if f.actByKernel(k, got, z, n, nil, &floor); !math.IsNaN(floor.Norm) {
			t.Errorf("%+v: the floor of maps with a NaN is %+v, want the norm NaN", c, floor)
		}
	}
}
