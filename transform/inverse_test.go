package transform

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"pgregory.net/rapid"
)

// A transformation followed by its inverse restores a smooth image, but for errors of
// interpolation.
func TestInverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, low, high float64) Distribution {
			return Fixed(rapid.Float64Range(low, high).Draw(t, name))
		}
		all := []Transform{
			Rotate{Angle: number("angle", -360, 360)},
			Translate{X: number("x", -0.15, 0.15), Y: number("y", -0.15, 0.15)},
			Scale{Factor: number("factor", 0.7, 1.4)},
			Shear{X: number("shear x", -20, 20), Y: number("shear y", -20, 20)},
			Affine{Rotate: number("turn", -90, 90), X: number("right", -0.1, 0.1), Scale: number("scale", 0.8, 1.2), ShearX: number("slant", -10, 10)},
			Flip{}, Flip{Vertical: true}, Identity{},
		}
		var tr Transform = rapid.SampledFrom(all).Draw(t, "transform")
		if rapid.Bool().Draw(t, "sequence") {
			tr = Sequence{all[0], Flip{}, all[1]}
		}
		op := tr.Draw(nil)
		inverse, ok := Inverse(op)
		if !ok {
			t.Fatalf("%#v has no inverse", op)
		}
		x := smoothPeaks(40)
		transformed, restored := tensor.New(x.Shape...), tensor.New(x.Shape...)
		op.Apply(transformed, x)
		inverse.Apply(restored, transformed)
		var worst float64
		for i := range x.Data {
			worst = max(worst, math.Abs(float64(restored.Data[i]-x.Data[i])))
		}
		if worst > 0.1 {
			t.Fatalf("%#v and its inverse change a value by %v, want at most 0.1", op, worst)
		}
	})
}

// smoothPeaks returns an image with a smooth peak off the centre. A lower negative peak beside it
// makes the image asymmetric.
func smoothPeaks(side int) tensor.Tensor {
	x := tensor.New(1, side, side)
	for i := range side {
		for j := range side {
			gaussian := func(ci, cj, width float64) float64 {
				return math.Exp(-(math.Pow(float64(i)-ci, 2) + math.Pow(float64(j)-cj, 2)) / (2 * width * width))
			}
			half := float64(side) / 2
			x.Data[i*side+j] = float32(gaussian(half-2, half+3, 4) - 0.5*gaussian(half+4, half-3, 3.5))
		}
	}
	return x
}

func TestInverseOfQuarterTurnsIsExact(t *testing.T) {
	t.Parallel()
	x := randomImage(3, 2, 7, 7) // of property_test.go: seed 3, 2 channels, 7 x 7 pixels
	for _, angle := range []float64{90, 180, 270, -90, 450} {
		op := Rotate{Angle: Fixed(angle)}.Draw(nil)
		inverse, _ := Inverse(op)
		transformed, restored := tensor.New(x.Shape...), tensor.New(x.Shape...)
		op.Apply(transformed, x)
		inverse.Apply(restored, transformed)
		if !slices.Equal(restored.Data, x.Data) {
			t.Errorf("the inverse of a rotation by %v does not restore the image", angle)
		}
		if again, ok := Inverse(inverse); !ok || again != op.(rotateOp).affineOp {
			t.Errorf("the inverse of the inverse of a rotation by %v differs from the rotation", angle)
		}
	}
}

func TestNoInverse(t *testing.T) {
	t.Parallel()
	// Scale{}: by 0.
	for _, tr := range []Transform{Grayscale{}, GaussianBlur{Sigma: Fixed(1)}, Replace{}, Sequence{Flip{}, Grayscale{}}, Scale{}} {
		if _, ok := Inverse(tr.Draw(seed.Rand(1))); ok {
			t.Errorf("%T has an inverse", tr)
		}
	}
}
