package audio

import (
	"math"
	"testing"
)

// Both filters agree with SciPy, with which testdata/golden.py made filters.json. Where the cut-off
// is half the sample rate or more, LowPass keeps everything and HighPass nothing.
func TestFiltersAgreeWithSciPy(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Kind string    // low or high
		Hz   float64   // cut-off frequency
		Rate int       // samples per second
		X, Y []float32 // input and output
	}
	golden(t, "filters.json", &cases) // reads the file from testdata
	for _, c := range cases {
		filter := LowPass
		if c.Kind == "high" {
			filter = HighPass
		}
		for i, v := range filter(c.X, c.Hz, c.Rate) {
			if math.Abs(float64(v-c.Y[i])) > 1e-5 {
				t.Fatalf("%s pass of %v Hz at %d samples/s: value %d is %v, want %v", c.Kind, c.Hz, c.Rate, i, v, c.Y[i])
			}
		}
	}
	in := tone(440, 8000, 100) // 100 samples of a sine of 440 Hz at 8000 samples/s
	if low, high := LowPass(in, 4000, 8000), HighPass(in, 5000, 8000); low[7] != in[7] || high[7] != 0 {
		t.Errorf("with a cut-off above half the rate, value 7 is %v after LowPass and %v after HighPass, want %v and 0", low[7], high[7], in[7])
	}
}
