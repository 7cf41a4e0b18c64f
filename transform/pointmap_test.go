package transform

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// ramps returns a 2 x h x w image of which the channels are the row and the column of each pixel.
// Bilinear interpolation reproduces it exactly, so the result of an Op shows the positions that it
// reads from.
func ramps(h, w int) tensor.Tensor {
	x := tensor.New(2, h, w)
	for i := range h {
		for j := range w {
			x.Data[i*w+j], x.Data[h*w+i*w+j] = float32(i), float32(j)
		}
	}
	return x
}

// drawGeometric returns a random transformation of positions, or a sequence of two.
func drawGeometric(t *rapid.T) Transform {
	number := func(name string, low, high float64) Distribution {
		return Fixed(rapid.Float64Range(low, high).Draw(t, name))
	}
	all := []Transform{
		Identity{}, Flip{}, Flip{Vertical: true}, Brightness{Fixed(1)},
		Rotate{Angle: Fixed(float64(90 * rapid.IntRange(-4, 4).Draw(t, "quarters")))},
		Rotate{Angle: number("angle", -360, 360)},
		Translate{X: number("x", -0.3, 0.3), Y: number("y", -0.3, 0.3)},
		Scale{Factor: number("factor", 0.5, 2)},
		Shear{X: number("shear x", -40, 40), Y: number("shear y", -40, 40)},
		Affine{Rotate: number("turn", -90, 90), X: number("right", -0.1, 0.1), Scale: number("scale", 0.8, 1.2), ShearX: number("slant", -10, 10)},
	}
	first := rapid.SampledFrom(all).Draw(t, "transform")
	if rapid.Bool().Draw(t, "sequence") {
		return Sequence{first, rapid.SampledFrom(all).Draw(t, "second transform")}
	}
	return first
}

// TestPointMap checks that the PointMap of an Op gives the positions that the Op reads from, for
// results that depend on no pixel beyond the border.
func TestPointMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h, w := rapid.IntRange(2, 14).Draw(t, "height"), rapid.IntRange(2, 14).Draw(t, "width")
		tr := drawGeometric(t)
		op := tr.Draw(nil)
		p, ok := PointMapOf(op, h, w)
		if !ok {
			t.Fatalf("%+v has no map of positions", op)
		}
		x, ones := ramps(h, w), tensor.New(1, h, w)
		for i := range ones.Data {
			ones.Data[i] = 1
		}
		got, weight := tensor.New(2, h, w), tensor.New(1, h, w)
		for _, o := range []struct{ dst, src tensor.Tensor }{{got, x}, {weight, ones}} {
			unclipped := op
			if s, ok := tr.(Sequence); ok { // without Brightness, which clips to [0, 1]
				unclipped = slices.DeleteFunc(slices.Clone(s), func(t Transform) bool { _, ok := t.(Brightness); return ok }).Draw(nil)
			} else if _, ok := tr.(Brightness); ok {
				unclipped = Identity{}
			}
			unclipped.Apply(o.dst, o.src)
		}
		for i := range h {
			for j := range w {
				if weight.Data[i*w+j] < 1-1e-6 { // it reads from beyond the border, where the image is 0
					continue
				}
				row, column := p.Source(i, j)
				if math.Abs(row-float64(got.Data[i*w+j])) > 1e-4 || math.Abs(column-float64(got.Data[h*w+i*w+j])) > 1e-4 {
					t.Fatalf("%+v of %d x %d reads row %d, column %d from %v, %v, not from %v, %v", op, h, w, i, j, got.Data[i*w+j], got.Data[h*w+i*w+j], row, column)
				}
			}
		}
		inverse, ok := p.Inverse()
		if !ok {
			t.Fatalf("%+v has no inverse", op)
		}
		// x, y of the result is read from a x + b y + c, d x + e y + f; m holds the coefficients.
		if again, _ := inverse.Inverse(); math.Abs(again.Affine.A-p.Affine.A)+math.Abs(again.Affine.C-p.Affine.C)+math.Abs(again.Affine.F-p.Affine.F) > 1e-9 {
			t.Fatalf("the inverse of the inverse is %+v, not %+v", again, p)
		}
	})
}

// TestPointMapOfCrop checks that the PointMap of a crop gives the positions that are read, up to
// the rounding of the cropped region to whole pixels.
func TestPointMapOfCrop(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		op := Crop{Size: Fixed(rapid.Float64Range(0.2, 1).Draw(t, "area")), RandomPosition: true}.Draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		const side = 40
		p, _ := PointMapOf(op, side, side)
		got := apply(op, ramps(side, side)) // apply is in golden_test.go
		for i := 2; i < side-2; i++ {
			for j := 2; j < side-2; j++ {
				row, column := p.Source(i, j)
				if math.Abs(row-float64(got.Data[i*side+j])) > 2 || math.Abs(column-float64(got.Data[(side+i)*side+j])) > 2 {
					t.Fatalf("%+v reads row %d, column %d from %v, %v, not from %v, %v", op, i, j, got.Data[i*side+j], got.Data[(side+i)*side+j], row, column)
				}
			}
		}
	})
}

// TestTurn checks the angle of rotation of a PointMap, in degrees counter-clockwise. ok is false if
// the map mirrors, scales or shears.
func TestTurn(t *testing.T) {
	t.Parallel()
	f := Fixed
	for _, c := range []struct {
		t       Transform
		degrees float64
		ok      bool
	}{
		{Rotate{Angle: f(90)}, 90, true},
		{Rotate{Angle: f(-45)}, 315, true},
		{Affine{Rotate: f(30), X: f(0.1), Scale: f(1)}, 30, true},
		{Sequence{Rotate{Angle: f(30)}, Translate{Y: f(0.2)}, Rotate{Angle: f(60)}}, 90, true},
		{Sequence{Flip{}, Flip{Vertical: true}}, 180, true},
		{Translate{X: f(0.1)}, 0, true},
		{Flip{}, 0, false},
		{Scale{Factor: f(2)}, 0, false},
		{Shear{X: f(10)}, 0, false},
	} {
		p, _ := PointMapOf(c.t.Draw(nil), 9, 12)
		if degrees, ok := p.Turn(); ok != c.ok || math.Abs(degrees-c.degrees) > 1e-9 {
			t.Errorf("%+v turns by %v (%v), want %v (%v)", c.t, degrees, ok, c.degrees, c.ok)
		}
	}
	for want, tr := range map[bool]Transform{true: Sequence{Grayscale{}, Rotate{}}, false: Sequence{Grayscale{}, Identity{}}} {
		if (MotionOf(tr.Draw(nil)) != nil) != want {
			t.Errorf("%+v moves positions: %v", tr, !want)
		}
	}
	if _, ok := PointMapOf(TimeStretch{Rate: f(2)}.Draw(nil), 1, 10); ok {
		t.Error("PointMapOf returns a PointMap for time-stretch, which acts on audio")
	}
}

// TestWrapReadsATiledPlane checks that with Outside set to Wrapped the result is that of
// transforming a plane that is tiled with copies of the image.
func TestWrapReadsATiledPlane(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		src := drawImage(t) // of property_test.go: of up to 5 channels and 12 x 12 pixels
		c, h, w := src.Shape[0], src.Shape[1], src.Shape[2]
		const tiles = 7
		plane := tensor.New(c, tiles*h, tiles*w)
		for k := range c {
			for i := range tiles * h {
				for j := range tiles * w {
					plane.Data[(k*tiles*h+i)*tiles*w+j] = src.Data[(k*h+i%h)*w+j%w]
				}
			}
		}
		angle := Fixed(rapid.Float64Range(-360, 360).Draw(t, "angle"))
		x, y := rapid.Float64Range(-1, 1).Draw(t, "x"), rapid.Float64Range(-1, 1).Draw(t, "y")
		factor := Fixed(rapid.Float64Range(0.8, 2).Draw(t, "scale"))
		if h > 2*w || w > 2*h { // a rotated narrow image would reach beyond the plane
			angle = Fixed(0)
		}
		got := apply(Affine{Rotate: angle, X: Fixed(x), Y: Fixed(y), Scale: factor, Sampling: Sampling{Outside: Wrapped}}.Draw(nil), src)
		wide := apply(Affine{Rotate: angle, X: Fixed(x / tiles), Y: Fixed(y / tiles), Scale: factor}.Draw(nil), plane)
		for k := range c {
			for i := range h {
				for j := range w {
					want := wide.Data[(k*tiles*h+i+tiles/2*h)*tiles*w+j+tiles/2*w]
					if math.Abs(float64(got.Data[(k*h+i)*w+j]-want)) > 1e-4 {
						t.Fatalf("row %d, column %d: %v, want %v", i, j, got.Data[(k*h+i)*w+j], want)
					}
				}
			}
		}
	})
}

// TestCircularShift checks the shift of an image of 5 x 8 pixels by 2 pixels down and 2 to the
// left, where pixels that leave one side return on the other.
func TestCircularShift(t *testing.T) {
	t.Parallel()
	src := randomImage(8, 2, 5, 8) // of property_test.go: seed 8, 2 channels, 5 x 8 pixels
	got := apply(Translate{X: Fixed(-0.25), Y: Fixed(0.4), Sampling: Sampling{Outside: Wrapped}}.Draw(nil), src)
	for k := range 2 {
		for i := range 5 {
			for j := range 8 {
				if want := src.Data[(k*5+(i+3)%5)*8+(j+2)%8]; got.Data[(k*5+i)*8+j] != want {
					t.Fatalf("row %d, column %d: %v, want %v", i, j, got.Data[(k*5+i)*8+j], want)
				}
			}
		}
	}
}
