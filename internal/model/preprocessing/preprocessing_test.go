package preprocessing

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
)

// TestNormalise checks (low + x (high - low) - mean) / std for an image x of 3 channels of 1 x 2
// pixels, where low and high are the values for 0 and 1: Range.
func TestNormalise(t *testing.T) {
	t.Parallel()
	src, err := tensor.From([]float32{0, 0.5, 0.25, 1, 0.75, 0.125}, 3, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		p    Settings
		want []float32
	}{
		{"no settings", Settings{}, []float32{0, 0.5, 0.25, 1, 0.75, 0.125}},
		{"mean and std", Settings{Mean: []float32{0.5, 0, 1}, Std: []float32{0.5, 2, 0.25}}, []float32{-1, 0, 0.125, 0.5, -1, -3.5}},
		{"one mean and std for all channels", Settings{Mean: []float32{0.5}, Std: []float32{0.5}}, []float32{-1, 0, -0.5, 1, 0.5, -0.75}},
		{"range 0 to 256", Settings{Range: [2]float32{0, 256}}, []float32{0, 128, 64, 256, 192, 32}},
		{"range -1 to 1", Settings{Range: [2]float32{-1, 1}}, []float32{-1, 0, -0.5, 1, 0.5, -0.75}},
		{"bgr, mean in the model's order", Settings{Order: "bgr", Mean: []float32{0.5, 0, 0}}, []float32{0.25, -0.375, 0.25, 1, 0, 0.5}},
		{"bgr, range 0 to 256 and mean, as in Caffe", Settings{Order: "bgr", Range: [2]float32{0, 256}, Mean: []float32{100, 110, 120}}, []float32{92, -68, -46, 146, -120, 8}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := c.p.Check(3); err != nil {
				t.Fatal(err)
			}
			dst := make([]float32, 6)
			c.p.Normalise(dst, src)
			if !slices.Equal(dst, c.want) {
				t.Errorf("%v, want %v", dst, c.want)
			}
			if c.p.Order == "bgr" {
				return // cannot be normalised in place
			}
			inPlace := src.Clone()
			c.p.Normalise(inPlace.Data, inPlace)
			if !slices.Equal(inPlace.Data, c.want) {
				t.Errorf("in place: %v, want %v", inPlace.Data, c.want)
			}
		})
	}
}

func TestPreprocessCheck(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	cases := []struct {
		name     string
		p        Settings
		channels int
		want     string // "": accepted
	}{
		{"three values for three channels", Settings{Mean: []float32{1, 2, 3}}, 3, ""},
		{"one value for three channels", Settings{Mean: []float32{1}, Std: []float32{1}}, 3, ""},
		{"three values for one channel", Settings{Mean: []float32{1, 2, 3}}, 1, "mean has 3 values and the model takes 1 channels"},
		{"two values for three channels", Settings{Std: []float32{1, 2}}, 3, "std has 2 values and the model takes 3 channels"},
		{"std of zero", Settings{Std: []float32{1, 0, 1}}, 3, "std[1] is 0"},
		{"mean of NaN", Settings{Mean: []float32{0, 0, nan}}, 3, "mean[2] is NaN"},
		{"unknown order", Settings{Order: "gbr"}, 3, "rgb or bgr"},
		{"bgr of grey", Settings{Order: "bgr"}, 1, "needs 3 channels"},
		{"empty range", Settings{Range: [2]float32{1, 1}}, 3, "is empty"},
		{"range to NaN", Settings{Range: [2]float32{0, nan}}, 3, "is empty"},
		{"negative width", Settings{Frame: dataset.Frame{Width: -1}}, 3, "negative"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.p.Check(c.channels)
			if c.want == "" && err != nil {
				t.Fatal(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestPresets checks the named preprocessings for well-known data sets and models. The Frame has
// the size of the images.
func TestPresets(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"imagenet": 224, "cifar10": 32, "clip": 224} {
		p, err := Preset(name)
		if err != nil || p.Check(3) != nil || p.Frame.Height != size || len(p.Mean) != 3 {
			t.Errorf("Preset(%q) = %+v, error %v; want a mean of three channels and the size %d", name, p, err, size)
		}
		p.Mean[0] = 9 // must not change the preset
		if again, _ := Preset(name); again.Mean[0] == 9 {
			t.Errorf("the mean of %s is shared between the callers of Preset", name)
		}
	}
	if p, err := Preset("none"); err != nil || p.Mean != nil || p.Frame != (dataset.Frame{}) {
		t.Errorf("Preset(\"none\") = %+v, error %v; want no mean and no size", p, err)
	}
	if _, err := Preset("imagnet"); err == nil || !strings.Contains(err.Error(), "cifar10, clip, imagenet, none") {
		t.Errorf("error %v, want one that lists the presets", err)
	}
}
