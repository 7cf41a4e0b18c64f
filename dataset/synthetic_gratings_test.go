package dataset

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// drawnGrating returns the image of g, a grating (a sinusoid), 1 x size x size.
func drawnGrating(t interface{ Fatal(...any) }, g Grating, size int) tensor.Tensor {
	image := tensor.New(1, size, size)
	if err := g.Draw(image); err != nil {
		t.Fatal(err)
	}
	return image
}

// TestGratingsAgreeWithNumpy compares gratings with those of testdata/synthetic.py, an independent
// implementation, within 1e-5.
func TestGratingsAgreeWithNumpy(t *testing.T) {
	t.Parallel()
	for _, g := range readGolden(t).Gratings {
		near(t, drawnGrating(t, Grating{g.Frequency, g.Orientation, g.Phase}, 8), g.Values, 1e-5)
	}
}

// TestGratingsOfThePaper checks the default grid, that of the paper that GratingsOptions cites: 4
// frequencies, 21 orientations in steps of 9 degrees, and 21 phases in steps of pi / 20. must
// panics if there is an error.
func TestGratingsOfThePaper(t *testing.T) {
	t.Parallel()
	s := must(OpenGratings(GratingsOptions{}))
	if s.Len() != 4*21*21 {
		t.Fatalf("%d gratings, want 1,764", s.Len())
	}
	seen := map[Grating]bool{}
	for i := range s.Len() {
		g := s.Grating(i)
		if seen[g] {
			t.Fatalf("%+v occurs twice", g)
		}
		seen[g] = true
	}
	first, last := s.Grating(0), s.Grating(s.Len()-1)
	if first != (Grating{2, 0, 0}) || last.Frequency != 8 || last.Orientation != 180 || math.Abs(last.Phase-math.Pi) > 1e-12 {
		t.Errorf("the grid goes from %+v to %+v", first, last)
	}
	// Frame{}: not resized. The factors are the known properties of a sample.
	sample := must(s.At(context.Background(), 21*21+21+1, Frame{}))
	if f := sample.Factors; f["frequency"] != 4 || f["orientation"] != 9 || f["phase"] != math.Pi/20 || sample.Label != NoLabel {
		t.Errorf("factors %v, label %d", f, sample.Label)
	}
	if got := slices.Sorted(maps.Keys(sample.Factors)); !slices.Equal(got, s.Factors()) {
		t.Errorf("the sample has the factors %v, and the source declares %v", got, s.Factors())
	}
	for c := 1; c < 3; c++ { // a channel has 32 * 32 = 1024 pixels
		if !slices.Equal(sample.Input.Data[c*1024:(c+1)*1024], sample.Input.Data[:1024]) {
			t.Errorf("channel %d is not grey", c)
		}
	}
}

// TestGratingCycles checks that a grating of frequency 2 k has k cycles (see Grating.Frequency):
// the discrete Fourier transform of a row has the mean 0.5 and the k-th component only.
func TestGratingCycles(t *testing.T) {
	t.Parallel()
	const n = 32
	for k := 1; k <= 4; k++ {
		row := drawnGrating(t, Grating{Frequency: 2 * float64(k)}, n).Data[:n]
		for m := 0; m <= n/2; m++ {
			var re, im float64
			for j, v := range row {
				sin, cos := math.Sincos(2 * math.Pi * float64(m*j) / n)
				re, im = re+float64(v)*cos, im+float64(v)*sin
			}
			want := map[int]float64{0: 0.5, k: 0.25}[m]
			if got := math.Hypot(re, im) / n; math.Abs(got-want) > 1e-6 {
				t.Errorf("frequency %d: component %d is %g, want %g", 2*k, m, got, want)
			}
		}
	}
}

// TestGratingSymmetries checks that a shift by a period changes nothing, that one by half a period
// inverts the image, and that 90 degrees more of orientation rotate it.
func TestGratingSymmetries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := Grating{
			Frequency:   rapid.Float64Range(1, 12).Draw(t, "frequency"),
			Orientation: rapid.Float64Range(0, 360).Draw(t, "orientation"),
			Phase:       rapid.Float64Range(-math.Pi, math.Pi).Draw(t, "phase"),
		}
		original := drawnGrating(t, g, 24)
		onePeriod := g
		onePeriod.Phase += 2 * math.Pi / g.Frequency
		if d := maxDifference(original, drawnGrating(t, onePeriod, 24)); d > 1e-5 {
			t.Fatalf("a shift by one period changes the image by %g", d)
		}
		rotated := g
		rotated.Orientation += 90
		if d := maxDifference(rotated90(original), drawnGrating(t, rotated, 24)); d > 1e-5 {
			t.Fatalf("a rotated image and a rotated grating differ by %g", d)
		}
		halfPeriod := g
		halfPeriod.Phase += math.Pi / g.Frequency
		for i, v := range drawnGrating(t, halfPeriod, 24).Data {
			if math.Abs(float64(v+original.Data[i]-1)) > 1e-5 {
				t.Fatalf("after a shift by half a period, value %d is %g, want 1 minus %g", i, v, original.Data[i])
			}
		}
	})
}

// TestGratingsSettings checks a grid that is not the default, its fingerprint (a hash of the
// settings) and a resized sample.
func TestGratingsSettings(t *testing.T) {
	t.Parallel()
	s := must(OpenGratings(GratingsOptions{Size: 12, Channels: 1, Frequencies: []float64{3}, Orientations: []float64{45, 135}, Phases: []float64{0, 1, 2}}))
	sample := must(s.At(context.Background(), 4, Frame{}))
	if s.Len() != 6 || s.Grating(4) != (Grating{3, 135, 1}) || !slices.Equal(sample.Input.Shape, []int{1, 12, 12}) {
		t.Errorf("%d gratings, grating 4 is %+v of shape %v; want 6, {3 135 1}, [1 12 12]", s.Len(), s.Grating(4), sample.Input.Shape)
	}
	if s.Fingerprint() == must(OpenGratings(GratingsOptions{})).Fingerprint() {
		t.Error("two grids have the same fingerprint")
	}
	if sample = must(s.At(context.Background(), 4, Frame{Height: 6, Width: 6, Channels: 3})); !slices.Equal(sample.Input.Shape, []int{3, 6, 6}) {
		t.Errorf("resized to %v, want [3 6 6]", sample.Input.Shape)
	}
}

func TestGratingsErrors(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]GratingsOptions{
		"gratings: size -1":         {Size: -1},
		"channels is 2":             {Channels: 2},
		"frequencies has 0 values":  {Frequencies: []float64{}},
		"phases has 1025 values":    {Phases: make([]float64, 1025)},
		"orientations contains NaN": {Orientations: []float64{0, math.NaN()}},
		"frequencies contains +Inf": {Frequencies: []float64{math.Inf(1)}},
	} {
		if _, err := OpenGratings(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	s := must(OpenGratings(GratingsOptions{}))
	// Of 1,764.
	if _, err := s.At(context.Background(), 1764, Frame{}); err == nil || !strings.Contains(err.Error(), "0 to 1763") {
		t.Errorf("beyond the end: %v", err)
	}
	if err := (Grating{}).Draw(tensor.New(8, 8)); err == nil {
		t.Error("a grating was drawn on a matrix")
	}
}

func BenchmarkGratings(b *testing.B) {
	s := must(OpenGratings(GratingsOptions{}))
	for i := 0; b.Loop(); i++ {
		must(s.At(context.Background(), i%s.Len(), Frame{}))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
