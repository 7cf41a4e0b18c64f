package transform

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// goldenColours is the content of testdata/colour.json, which colour.py writes.
type goldenColours struct {
	Small []float32 // the image that Cases transform, 3 x 4 x 5
	Cases []struct {
		Kind, Parameter string
		Value, Within   float64   // value of the parameter; largest difference allowed
		Y               []float32 // the result
	}
	JPEGs []struct {
		Quality float64
		Y       []float32 // the image as PIL compresses it, 3 x 32 x 40, 0 to 255
	}
}

func readColours(t *testing.T) goldenColours {
	t.Helper()
	raw, err := os.ReadFile("testdata/colour.json")
	if err != nil {
		t.Fatal(err)
	}
	var c goldenColours
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Changes of colours agree with torchvision; with negative factors, with PIL, which torchvision
// calls for PIL images. Of golden_test.go: mustMake makes a transform of a kind, apply applies it,
// and distance is the largest absolute difference. randomImage(seed, shape...) is in
// property_test.go.
func TestColoursAgreeWithTorchvision(t *testing.T) {
	t.Parallel()
	golden := readColours(t)
	src := tensor.Tensor{Shape: []int{3, 4, 5}, Data: golden.Small}
	if len(golden.Cases) == 0 {
		t.Fatal("no golden values")
	}
	for _, c := range golden.Cases {
		got := apply(mustMake(t, c.Kind, Args{c.Parameter: Fixed(c.Value)}).Draw(nil), src)
		if d := distance(got, tensor.Tensor{Shape: src.Shape, Data: c.Y}); !(d <= c.Within) {
			t.Errorf("%s %v: off by %v", c.Kind, c.Value, d)
		}
	}
}

func TestHueAndSaturationOfGreyImages(t *testing.T) {
	t.Parallel()
	src := randomImage(1, 1, 5, 6)
	for _, tr := range []Transform{Hue{Fixed(0.3)}, Saturation{Fixed(-1)}} {
		if d := distance(apply(tr.Draw(nil), src), src); d != 0 {
			t.Errorf("%+v changes a grey image by %v", tr, d)
		}
	}
}

// A shift of the hue and the opposite shift cancel up to rounding.
func TestHueIsInvertible(t *testing.T) {
	t.Parallel()
	src := randomImage(3, 3, 9, 9)
	for _, shift := range []float64{0.1, 0.25, 0.5} {
		shifted := apply(Hue{Fixed(shift)}.Draw(nil), src)
		if d := distance(apply(Hue{Fixed(-shift)}.Draw(nil), shifted), src); !(d <= 1e-5) {
			t.Errorf("Hue %v and back: off by %v", shift, d)
		}
	}
}

// PIL's JPEG encoder and Go's differ in rounding: on average by less than one of 255 levels.
func TestJPEGAgreesWithPIL(t *testing.T) {
	t.Parallel()
	const h, w = 32, 40
	src := tensor.New(3, h, w)
	for i := range h * w {
		x, y := float64(i%w), float64(i/w)
		for k, v := range []float64{x / 39, y / 31, 0.5 + 0.5*math.Sin(x/5)*math.Cos(y/7)} {
			src.Data[k*h*w+i] = float32(math.RoundToEven(255*float64(float32(v))) / 255)
		}
	}
	for _, c := range readColours(t).JPEGs {
		got := apply(JPEG{Fixed(c.Quality)}.Draw(nil), src)
		var mean, change float64 // mean differences from PIL's result and from the image
		for i, v := range got.Data {
			mean += math.Abs(float64(255*v-c.Y[i])) / float64(len(c.Y))
			change += math.Abs(float64(255*(v-src.Data[i]))) / float64(len(c.Y))
		}
		t.Logf("quality %v: %.2f levels from PIL's, %.2f from the image", c.Quality, mean, change)
		if mean > 1 {
			t.Errorf("quality %v: %v levels from PIL's", c.Quality, mean)
		}
	}
	if d := distance(apply(JPEG{Fixed(0)}.Draw(nil), src), apply(JPEG{Fixed(1)}.Draw(nil), src)); d != 0 {
		t.Errorf("qualities 0 and 1 differ by %v, want 0: 1 is the lowest quality of encoders", d)
	}
}
