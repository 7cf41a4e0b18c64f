package video

import (
	"math"
	"slices"
	"testing"
)

// TestWhitenerGain checks that the filter multiplies a basis function of the discrete cosine
// transform by r exp(-(r/0.4)^4), where r is its frequency in cycles per pixel, and so a constant
// image by 0.
func TestWhitenerGain(t *testing.T) {
	t.Parallel()
	const h, w = 36, 50
	f := newWhitener(h, w)
	// Vertical and horizontal index.
	for _, k := range [][2]int{{0, 0}, {0, 1}, {3, 0}, {7, 20}, {35, 49}} {
		plane := make([]float32, h*w)
		for i := range plane {
			plane[i] = float32(cosine(k[0], i/w, h) * cosine(k[1], i%w, w))
		}
		r := math.Hypot(float64(k[0])/(2*h), float64(k[1])/(2*w))
		want := r * math.Exp(-math.Pow(r/0.4, 4))
		before := slices.Clone(plane)
		f.apply(plane)
		for i, v := range plane {
			if d := math.Abs(float64(v) - want*float64(before[i])); d > 1e-6 {
				t.Fatalf("basis function %v, pixel %d: %g, want %g times %g", k, i, v, want, before[i])
			}
		}
	}
}

// cosine returns value i of n of basis function k of the one-dimensional DCT-II.
func cosine(k, i, n int) float64 {
	return math.Cos(math.Pi * float64(k) * (float64(i) + 0.5) / float64(n))
}

// TestScalesAreSmooth checks the scales of frames, by which their values are divided. The scale of
// a frame is a weighted mean of the extents of the frames around it, where the extent of a frame
// is a high quantile of its absolute values.
func TestScalesAreSmooth(t *testing.T) {
	t.Parallel()
	for _, v := range scalesOf([]float64{0.3, 0.3, 0.3}) {
		if math.Abs(v-0.3) > 1e-12 {
			t.Errorf("a constant extent of 0.3 gives the scale %g", v)
		}
	}
	for _, v := range scalesOf([]float64{0, 0}) {
		if v != minScale {
			t.Errorf("blank frames have the scale %g, want %g", v, minScale)
		}
	}
	step := make([]float64, 200)
	for i := range step {
		step[i] = 1
		if i >= 100 {
			step[i] = 2
		}
	}
	scales := scalesOf(step)
	for i := 1; i < len(scales); i++ {
		if d := scales[i] - scales[i-1]; d < 0 || d > 0.05 {
			t.Errorf("from frame %d to the next the scale goes from %g to %g", i-1, scales[i-1], scales[i])
		}
	}
}
