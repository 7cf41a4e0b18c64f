package transform

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// moments returns the mean and the standard deviation of the values of an image.
func moments(x tensor.Tensor) (mean, deviation float64) {
	v := make([]float64, x.Len())
	for i := range v {
		v[i] = float64(x.Data[i])
	}
	return stat.MeanStdDev(v, nil)
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

// The input is grey, 0.5 everywhere. Replace replaces each value by noise. apply is in
// golden_test.go; randomImage(seed, shape...), of values in [0, 1), is in property_test.go.
func TestNoiseMoments(t *testing.T) {
	t.Parallel()
	src := tensor.New(3, 100, 100)
	for i := range src.Data {
		src.Data[i] = 0.5
	}
	for _, c := range []struct {
		name            string
		t               Transform
		mean, deviation float64
	}{
		{"gaussian-noise", GaussianNoise{Fixed(0.05)}, 0.5, 0.05},
		{"replace by uniform", Replace{}, 0.5, math.Sqrt(1.0 / 12)},
		{"replace by normal", Replace{Normal: true}, 0, 1},
	} {
		mean, deviation := moments(apply(c.t.Draw(seed.Rand(1)), src))
		if !near(mean, c.mean, 0.02) || !near(deviation, c.deviation, 0.02*c.deviation+1e-3) {
			t.Errorf("%s: mean %.4f, deviation %.4f, want %.4f, %.4f", c.name, mean, deviation, c.mean, c.deviation)
		}
	}
}

func TestGaussianNoiseIsClipped(t *testing.T) {
	t.Parallel()
	got := apply(GaussianNoise{Fixed(3)}.Draw(seed.Rand(1)), randomImage(1, 1, 20, 20))
	if slices.Min(got.Data) != 0 || slices.Max(got.Data) != 1 {
		t.Errorf("values from %g to %g, want 0 to 1", slices.Min(got.Data), slices.Max(got.Data))
	}
}

func TestReplaceIgnoresTheInput(t *testing.T) {
	t.Parallel()
	op := Replace{}.Draw(seed.Rand(1))
	if !slices.Equal(apply(op, randomImage(1, 3, 5, 5)).Data, apply(op, randomImage(2, 3, 5, 5)).Data) {
		t.Error("the noise depends on the input")
	}
}

// An Op is a transformation with drawn parameters, such as a standard deviation, and drawn noise.
// Renew draws only the noise again, for another sample. Parameter returns the one parameter of an
// Op, if it has one.
func TestRenewKeepsParametersAndChangesNoise(t *testing.T) {
	t.Parallel()
	src := randomImage(1, 3, 5, 5)
	for _, tr := range []Transform{GaussianNoise{Uniform(0.1, 0.3)}, Replace{}, Replace{Normal: true}, Sequence{Flip{}, Replace{}}} {
		op := tr.Draw(seed.Rand(1, "draw"))
		a, b := Renew(op, seed.Rand(1, 0)), Renew(op, seed.Rand(1, 1))
		if slices.Equal(apply(a, src).Data, apply(b, src).Data) {
			t.Errorf("%+v: the noise of two samples is the same", tr)
		}
		if !slices.Equal(apply(a, src).Data, apply(Renew(op, seed.Rand(1, 0)), src).Data) {
			t.Errorf("%+v: the noise differs between two calls with the same seed", tr)
		}
		p, _ := Parameter(op)
		if q, _ := Parameter(a); p != q {
			t.Errorf("%+v: the parameter went from %g to %g", tr, p, q)
		}
	}
	op := Rotate{Angle: Fixed(30)}.Draw(nil)
	if Renew(op, nil) != op {
		t.Error("Renew changes an Op without noise")
	}
}

// TestRandomCropCoversTheImage checks that crops by half of the side of an image of 4 x 6 are boxes
// of 2 x 3, and that each of the 3 x 4 positions is drawn about equally often.
func TestRandomCropCoversTheImage(t *testing.T) {
	t.Parallel()
	seen := map[[2]int]int{}
	r := seed.Rand(1)
	const draws = 3000
	for range draws {
		top, left, h, w := Crop{Size: Fixed(0.5), Side: true, RandomPosition: true}.Draw(r).(cropOp).box(4, 6)
		if h != 2 || w != 3 {
			t.Fatalf("the box is %d x %d, want 2 x 3", h, w)
		}
		seen[[2]int{top, left}]++
	}
	for top := range 3 {
		for left := range 4 {
			if n := seen[[2]int{top, left}]; n < draws/12*7/10 || n > draws/12*13/10 {
				t.Errorf("the box at row %d, column %d was drawn %d times of %d, want %d within 30 %%", top, left, n, draws, draws/12)
			}
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d positions, want 12", len(seen))
	}
}
