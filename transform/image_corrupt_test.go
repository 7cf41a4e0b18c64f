package transform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npz"

	"github.com/noether-ml/noether/tensor"
)

// The corruptions (degradations of images, as in ImageNet-C, of severity 1 to 5) without random
// numbers agree with SciPy and PIL, with which testdata/corrupt.py makes the golden arrays. apply
// and distance, the largest absolute difference, are in golden_test.go.
func TestCorruptGolden(t *testing.T) {
	t.Parallel()
	arrays, err := npz.Open("testdata/corrupt.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer arrays.Close()
	checked := 0
	for _, size := range []string{"small", "large"} {
		var bytes []uint8
		if err := arrays.Read(size+".npy", &bytes); err != nil {
			t.Fatal(err)
		}
		x := tensor.New(arrays.Header(size + ".npy").Descr.Shape...)
		for i, b := range bytes {
			x.Data[i] = float32(b) / 255
		}
		grey := tensor.Tensor{Shape: []int{1, x.Shape[1], x.Shape[2]}, Data: x.At(0).Data}
		compareSampled(t, arrays, size+"-grey", apply(Corrupt{"jpeg-compression", Fixed(3)}.Draw(rand.New(rand.NewPCG(1, 2))), grey), 2.1/255, 0.2/255)
		for _, kind := range []string{"defocus-blur", "zoom-blur", "brightness", "contrast", "pixelate", "jpeg-compression"} {
			for _, severity := range []int{1, 3, 5} {
				name := fmt.Sprintf("%s-%s-%d", size, kind, severity)
				got := apply(Corrupt{kind, Fixed(float64(severity))}.Draw(rand.New(rand.NewPCG(1, 2))), x)
				if kind == "jpeg-compression" { // encoders differ in rounding
					compareSampled(t, arrays, name, got, 0.13, 0.003)
				} else {
					compareSampled(t, arrays, name, got, 2e-5, 2e-6)
				}
				checked++
			}
		}
	}
	if checked != 2*6*3 { // sizes, kinds and severities
		t.Errorf("%d cases, want %d", checked, 2*6*3)
	}
}

// compareSampled compares every 13th value, which is what the golden arrays hold to be small. It
// fails if the largest or the mean difference exceeds its limit.
func compareSampled(t *testing.T, r *npz.Reader, name string, got tensor.Tensor, maxWorst, maxMean float64) {
	t.Helper()
	var want []float32
	if err := r.Read(name+".npy", &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != (len(got.Data)+12)/13 {
		t.Fatalf("%s: %d golden values, want every 13th of %d", name, len(want), len(got.Data))
	}
	worst, mean := 0.0, 0.0
	for i, v := range want {
		d := math.Abs(float64(got.Data[13*i] - v))
		worst, mean = max(worst, d), mean+d/float64(len(want))
	}
	if !(worst <= maxWorst && mean <= maxMean) {
		t.Errorf("%s: the largest difference is %g and the mean one %g, want at most %g and %g", name, worst, mean, maxWorst, maxMean)
	}
}

// smoothImage returns an image of waves with values from 0.2 to 0.8.
func smoothImage(c, h, w int) tensor.Tensor {
	x := tensor.New(c, h, w)
	for k := range c {
		for y := range h {
			for i := range w {
				x.Data[(k*h+y)*w+i] = float32(0.5 + 0.3*math.Sin(float64(y)/5+float64(k))*math.Cos(float64(i)/7))
			}
		}
	}
	return x
}

// Every corruption gives values in [0, 1], and all but two change an image more at severity 5 than
// at 1. It is deterministic for one Op, which holds the random numbers that were drawn.
func TestCorruptions(t *testing.T) {
	t.Parallel()
	for _, kind := range Corruptions() {
		for _, side := range []int{32, 112} {
			x := smoothImage(3, side, side)
			before := slices.Clone(x.Data)
			meanChange := func(severity int) float64 {
				op := Corrupt{kind, Fixed(float64(severity))}.Draw(rand.New(rand.NewPCG(uint64(severity), 7)))
				y := apply(op, x)
				if d := distance(y, apply(op, x)); d != 0 {
					t.Errorf("%s: the same Op differs by %g", kind, d)
				}
				var sum float64
				for i, v := range y.Data {
					if !(v >= 0 && v <= 1) {
						t.Fatalf("%s of %d x %[2]d pixels gives the value %[3]g", kind, side, v)
					}
					sum += math.Abs(float64(v - x.Data[i]))
				}
				return sum / float64(len(y.Data))
			}
			slight, severe := meanChange(1), meanChange(5)
			// The severities of these two change the scale of the distortion more than its amount.
			grows := kind != "glass-blur" && kind != "elastic-transform"
			if severe < 0.002 || slight <= 0 || grows && severe <= slight {
				t.Errorf("%s of %d x %[2]d pixels: a mean change of %[3]g at severity 1, %[4]g at 5", kind, side, slight, severe)
			}
			if !slices.Equal(before, x.Data) {
				t.Fatalf("%s changes its input", kind)
			}
		}
	}
}

// Noise has the expected mean and standard deviation.
func TestCorruptNoise(t *testing.T) {
	t.Parallel()
	x := tensor.New(3, 128, 128)
	for i := range x.Data {
		x.Data[i] = 0.5
	}
	moments := func(kind string) (mean, deviation float64) {
		y := apply(Corrupt{kind, Fixed(1)}.Draw(rand.New(rand.NewPCG(3, 4))), x)
		n := float64(len(y.Data))
		for _, v := range y.Data {
			mean += float64(v) / n
		}
		for _, v := range y.Data {
			deviation += (float64(v) - mean) * (float64(v) - mean) / n
		}
		return mean, math.Sqrt(deviation)
	}
	for kind, want := range map[string]float64{
		"gaussian-noise": 0.08,                  // the setting at severity 1
		"shot-noise":     math.Sqrt(0.5 / 60),   // Poisson(30) / 60
		"impulse-noise":  math.Sqrt(0.03) * 0.5, // a fraction of 0.03 of the values changes by 0.5
	} {
		mean, deviation := moments(kind)
		if math.Abs(mean-0.5) > 0.003 || math.Abs(deviation-want) > 0.03*want {
			t.Errorf("%s: mean %.4f, deviation %.4f, want 0.5 and %.4f", kind, mean, deviation, want)
		}
	}
}

// Corruptions give values in [0, 1] for images of any size, also of 1 pixel or none.
func TestCorruptSizes(t *testing.T) {
	t.Parallel()
	for _, shape := range [][]int{{3, 1, 1}, {1, 28, 28}, {3, 2, 31}, {4, 33, 17}, {1, 97, 100}, {3, 0, 0}} {
		x := smoothImage(shape[0], shape[1], shape[2])
		for _, kind := range Corruptions() {
			for severity := 1; severity <= 5; severity++ {
				y := apply(Corrupt{kind, Fixed(float64(severity))}.Draw(rand.New(rand.NewPCG(9, 9))), x)
				for _, v := range y.Data {
					if !(v >= 0 && v <= 1) {
						t.Fatalf("%s of severity %d gives shape %v the value %g", kind, severity, shape, v)
					}
				}
			}
		}
	}
}

// A version is increased when a transformation changes its results. TestVersions checks that the
// version of a sequence is 1, plus the version minus 1 of each of its members.
func TestVersions(t *testing.T) {
	t.Parallel()
	first, second := Corrupt{"fog", Fixed(1)}, Corrupt{"jpeg-compression", Fixed(1)}
	for _, c := range []struct {
		transform Transform
		want      int
	}{{Identity{}, 1}, {first, 1}, {Corrupt{"defocus-blur", Fixed(1)}, 2}, {second, 2}, {Sequence{}, 1}, {Sequence{first, Identity{}}, 1}, {Sequence{second, first, second}, 3}} {
		if got := Version(c.transform); got != c.want {
			t.Errorf("%+v has the version %d, want %d", c.transform, got, c.want)
		}
	}
}

func TestCorruptArguments(t *testing.T) {
	t.Parallel()
	kind, ok := Lookup("corrupt")
	if !ok {
		t.Fatal("corrupt is not in the registry")
	}
	if len(Corruptions()) != 15 {
		t.Errorf("there are %d corruptions, want 15", len(Corruptions()))
	}
	// A setting of a corruption, such as a radius, is interpolated between those of the severities
	// 1 to 5, here 1, 2, 4, 8 and 16.
	if s := settingsAt(levels(1, 2, 4, 8, 16), 3.25); s[0] != 5 {
		t.Errorf("the setting at severity 3.25 is %g, want 5", s[0])
	}
	if s := settingsAt(levels(1, 2, 4, 8, 16), 5); s[0] != 16 {
		t.Errorf("the setting at severity 5 is %g, want 16", s[0])
	}
	for _, c := range []struct {
		args Args
		want string
	}{
		{Args{"kind": Option("fog")}, "severity is missing"},
		{Args{"kind": Option("rain"), "severity": Fixed(1)}, "fog"},
		{Args{"kind": Option("fog"), "severity": Fixed(6)}, "between 1 and 5"},
	} {
		if _, err := kind.Make(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.args, err, c.want)
		}
	}
}
