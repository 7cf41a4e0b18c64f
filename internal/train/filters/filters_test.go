package filters

import (
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// At returns g(x, y).
func (g Gabor) At(x, y float64) float64 {
	window, angle := g.wave(x, y)
	return g.Amplitude * window * math.Cos(angle+g.Phase)
}

// noisyFilter returns a Gabor function as a filter, side x side, plus Gaussian noise with the
// standard deviation noise.
func noisyFilter(g Gabor, side int, noise float64, r *rand.Rand) tensor.Tensor {
	t := tensor.New(side, side)
	for i := range t.Data {
		t.Data[i] = float32(g.At(float64(i%side), float64(i/side)) + noise*r.NormFloat64())
	}
	return t
}

// TestFit checks that Fit recovers the parameters of a Gabor function, and that for a noisy filter
// Explained is the fraction of the filter's energy that the fitted function explains.
func TestFit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 3))
	for i := range 6 {
		want := Gabor{X: 4 + 6*r.Float64(), Y: 4 + 6*r.Float64(), Along: 1.5 + 1.5*r.Float64(), Across: 1.5 + 2*r.Float64(),
			Frequency: 0.1 + 0.2*r.Float64(), Orientation: math.Pi * (r.Float64() - 0.5), Amplitude: 1 + r.Float64(), Phase: 2 * math.Pi * (r.Float64() - 0.5)}
		got, err := Fit(noisyFilter(want, 14, 0, r))
		if err != nil {
			t.Fatal(err)
		}
		if got.Explained < 0.9999 {
			t.Errorf("filter %d: the fraction %.5f of %+v is explained by %+v", i, got.Explained, want, got)
			continue
		}
		turn := math.Abs(math.Remainder(got.Orientation-want.Orientation, math.Pi))
		if math.Hypot(got.X-want.X, got.Y-want.Y) > 0.1 || math.Abs(got.Frequency-want.Frequency) > 0.01 || turn > 0.05 ||
			math.Abs(got.Along-want.Along) > 0.1 || math.Abs(got.Across-want.Across) > 0.1 {
			t.Errorf("filter %d: Fit = %+v, want %+v", i, got, want)
		}
		for p := range 14 {
			x, y := float64(p), float64(13-p)
			if math.Abs(got.At(x, y)-want.At(x, y)) > 0.02*want.Amplitude {
				t.Errorf("filter %d: %g at %g, %g, want %g", i, got.At(x, y), x, y, want.At(x, y))
			}
		}
	}
	g := Gabor{X: 6.5, Y: 6.5, Along: 2, Across: 3, Frequency: 0.15, Amplitude: 1}
	noisy := noisyFilter(g, 14, 0.2, r)
	got, err := Fit(noisy)
	if err != nil {
		t.Fatal(err)
	}
	var residual, energy float64
	for i, v := range noisy.Data {
		d := float64(v) - got.At(float64(i%14), float64(i/14))
		residual, energy = residual+d*d, energy+float64(v)*float64(v)
	}
	if want := 1 - residual/energy; math.Abs(got.Explained-want) > 1e-6 {
		t.Errorf("Explained of a noisy filter = %g, want %g", got.Explained, want)
	}
}

// TestNoise checks the fraction of the energy of four filters of white noise that a Gabor function
// explains. It is small: the function has 8 parameters for 14 x 14 weights, a share of 0.04.
func TestNoise(t *testing.T) {
	t.Parallel()
	explained, err := Noise(14, 14, 4, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	if len(explained) != 4 {
		t.Fatalf("%d values, want one for each of 4 filters", len(explained))
	}
	for _, v := range explained {
		if v < 0.02 || v > 0.25 {
			t.Errorf("Explained of white noise = %g, want 0.02 to 0.25", v)
		}
	}
}

func TestFitErrors(t *testing.T) {
	t.Parallel()
	nan := tensor.New(5, 5)
	nan.Data[3] = float32(math.NaN())
	// All zeros, a NaN, fewer than 8 weights, and a third dimension.
	for _, f := range []tensor.Tensor{tensor.New(5, 5), nan, tensor.New(2, 2), tensor.New(1, 5, 5)} {
		if _, err := Fit(f); err == nil {
			t.Errorf("Fit of a filter of shape %v: no error", f.Shape)
		}
	}
}

// TestSheet checks a contact sheet of three filters of 2 x 2 weights, in two columns, with 3 x 3
// pixels for each weight. Of each filter the grey value of 0 is 128, that of its largest magnitude
// 255 or 0.
func TestSheet(t *testing.T) {
	t.Parallel()
	a, b := tensor.New(1, 2, 2), tensor.New(1, 2, 2)
	copy(a.Data, []float32{4, -4, 0, 2})
	img, err := Sheet([]tensor.Tensor{a, b, a}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	// Two rows and two columns of filters, each 6 x 6 pixels, with gaps of 2 pixels around them.
	if got := img.Bounds().Size(); got.X != 2*8+2 || got.Y != 2*8+2 {
		t.Errorf("bounds of the sheet: %v", got)
	}
	// Pixels of the first filter (weights 4, again 4, -4, 0, 2), the gap, the second and the third.
	for _, c := range []struct {
		x, y int
		want uint8
	}{{2, 2, 255}, {4, 4, 255}, {5, 2, 0}, {2, 5, 128}, {5, 5, 191}, {0, 0, 255}, {10, 2, 128}, {2, 10, 255}} {
		if got := img.At(c.x, c.y).(color.NRGBA).R; got != c.want {
			t.Errorf("pixel %d, %d is %d, want %d", c.x, c.y, got, c.want)
		}
	}
	if _, err := Sheet([]tensor.Tensor{a, tensor.New(1, 3, 2)}, 2, 1); err == nil {
		t.Error("a sheet of filters of two shapes: no error")
	}
}
