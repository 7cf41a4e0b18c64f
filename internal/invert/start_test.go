package invert_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// draw returns the random generator of sample i.
func draw(i int) *rand.Rand { return seed.Rand(3, "start", i) }

// start returns the starting images of a kind for images x.
func start(t *testing.T, kind invert.StartKind, x tensor.Tensor) tensor.Tensor {
	t.Helper()
	s, err := invert.Start(kind, x, draw)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStarts checks the images at which a search (gradient descent on images) for images x starts,
// for each kind of start. random, in invert_test.go, returns uniform values in [0, 1).
func TestStarts(t *testing.T) {
	t.Parallel()
	x := random(seed.Rand(1), 6, 3, 20, 20)
	for _, v := range start(t, invert.Noise, x).Data {
		if k := float64(v) * 255; math.Abs(k-math.Round(k)) > 1e-4 || v < 0 || v > 1 {
			t.Fatalf("noise = %v, want a multiple of 1/255 in [0, 1]", v)
		}
	}
	var sum, squares float64
	normal := start(t, invert.Normal, x)
	for _, v := range normal.Data {
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	if n := float64(len(normal.Data)); math.Abs(sum/n) > 0.05 || math.Abs(squares/n-1) > 0.05 {
		t.Errorf("normal noise has mean %v and mean square %v, want 0 and 1", sum/n, squares/n)
	}
	near := start(t, invert.Near, x)
	for i, v := range near.Data {
		if d := math.Abs(float64(v - x.Data[i])); d > 6.0/255 || v < 0 || v > 1 {
			t.Fatalf("near start of a pixel %v = %v, want it within 6/255, six standard deviations", x.Data[i], v)
		}
	}
	if slices.Equal(near.Data, x.Data) {
		t.Error("the near start equals the image")
	}
	if white, black := start(t, invert.White, x).Data, start(t, invert.Black, x).Data; slices.Min(white) != 1 || slices.Max(black) != 0 {
		t.Error("white is not all 1, or black not all 0")
	}
	one := start(t, invert.OneNoise, x)
	for i := range 6 {
		if !slices.Equal(one.At(i).Data, one.At(0).Data) {
			t.Error("the images of OneNoise differ")
		}
	}
	shuffled, used := start(t, invert.Shuffled, x), map[int]bool{}
	for i := range 6 {
		for k := range 6 {
			if slices.Equal(shuffled.At(i).Data, x.At(k).Data) {
				used[k] = true
				if i == k {
					t.Errorf("shuffled image %d is image %[1]d itself", i)
				}
			}
		}
	}
	if len(used) != 6 {
		t.Errorf("%d images occur among the shuffled ones, want 6", len(used))
	}
	if _, err := invert.Start("unknown", x, draw); err == nil {
		t.Error("Start accepted an unknown kind")
	}
	if _, err := invert.Start(invert.Noise, tensor.New(3, 4), draw); err == nil {
		t.Error("Start accepted images of rank 2")
	}
	for _, kind := range invert.StartKinds() {
		start(t, kind, tensor.New(0, 1, 2, 2)) // no images: no error
	}
}

// TestStartIndependence checks that the noise of a sample does not depend on the other samples.
func TestStartIndependence(t *testing.T) {
	t.Parallel()
	x := random(seed.Rand(1), 3, 1, 4, 4)
	for _, kind := range []invert.StartKind{invert.Noise, invert.Normal, invert.Near} {
		all, first := start(t, kind, x), start(t, kind, x.Slice(0, 1))
		if !slices.Equal(all.At(0).Data, first.At(0).Data) || slices.Equal(all.At(0).Data, all.At(1).Data) {
			t.Errorf("%s: the start of the first sample depends on the other samples, or equals the second start", kind)
		}
	}
}
