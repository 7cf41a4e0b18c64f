package resample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// repeated returns n values v, and so on for each pair of arguments.
func repeated(pairs ...float64) (out []float64) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, slices.Repeat([]float64{pairs[i+1]}, int(pairs[i]))...)
	}
	return out
}

func nearEstimate(t *testing.T, what string, got Estimate, mean, low, high float64) {
	t.Helper()
	for i, pair := range [][2]float64{{got.Mean, mean}, {got.Low, low}, {got.High, high}} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s: %s %v, want %v", what, []string{"mean", "low", "high"}[i], pair[0], pair[1])
		}
	}
}

// TestMean compares with statsmodels (proportion_confint, method wilson; DescrStatsW.tconfint_mean;
// confint_proportions_2indep, method newcomb), see testdata/mean.py.
func TestMean(t *testing.T) {
	t.Parallel()
	values := []float64{0.2, 0.5, 0.9, 0.4, 0.35}
	seven, thirty := repeated(7, 1, 43, 0), repeated(30, 1, 60, 0)
	one := measure.ZeroToOne
	nearEstimate(t, "7 of 50", Mean(seven, one, 0.05), 0.14, 0.06950833427016288, 0.26186193710585537)
	nearEstimate(t, "7 of 50, 99 %", Mean(seven, one, 0.01), 0.14, 0.05614371860633749, 0.30820578743035476)
	nearEstimate(t, "five values", Mean(values, one, 0.05), 0.47, 0.14266194970908547, 0.7973380502909146)
	nearEstimate(t, "five values, 99 %", Mean(values, measure.AnyNumber, 0.01), 0.47, -0.07281477984947965, 1.0128147798494798)
	nearEstimate(t, "five values, 99 %, clipped", Mean(values, one, 0.01), 0.47, 0, 1)
	nearEstimate(t, "difference", Difference(Mean(seven, one, 0.05), Mean(thirty, one, 0.05)), -0.1933333333333333, -0.3176866340061377, -0.0425504883480555)
	nearEstimate(t, "difference, 99 %", Difference(Mean(seven, one, 0.01), Mean(thirty, one, 0.01)), -0.1933333333333333, -0.3526773229503453, 0.009086150294629752)
}

// TestMeanOfEqualValues checks that values that do not differ have an interval of positive width
// where their range is known, and else none.
func TestMeanOfEqualValues(t *testing.T) {
	t.Parallel()
	low, high := Wilson(0.5, 40)
	nearEstimate(t, "0.5 in [0, 1]", Mean(repeated(40, 0.5), measure.ZeroToOne, 0.05), 0.5, low, high)
	_, most := Wilson(0, 40)
	nearEstimate(t, "differences 0", Mean(repeated(40, 0), measure.MinusOneToOne, 0.05), 0, -most, most)
	if e := Mean(repeated(40, 3), measure.NotNegative, 0.05); e.Mean != 3 || !math.IsNaN(e.Low) || !math.IsNaN(e.High) {
		t.Errorf("3 without an upper bound: %v", e)
	}
	if e := Mean(nil, measure.ZeroToOne, 0.05); !math.IsNaN(e.Mean) {
		t.Errorf("no values: %v", e)
	}
}

// TestMeanCovers draws paired differences, and differences between two groups of them, and counts
// how often the interval holds the true value.
func TestMeanCovers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, up, down float64) []float64 {
		out := make([]float64, n)
		for i := range out {
			if u := r.Float64(); u < up {
				out[i] = 1
			} else if u < up+down {
				out[i] = -1
			}
		}
		return out
	}
	for _, c := range []struct {
		n        int
		up, down float64
	}{{40, 0.1, 0.05}, {100, 0.02, 0.02}, {200, 0.01, 0}, {400, 0.1, 0.1}, {60, 0.6, 0.05}} {
		const trials = 2000
		var single, two int
		for range trials {
			a := Mean(draw(c.n, c.up, c.down), measure.MinusOneToOne, 0.05)
			b := Mean(draw(3*c.n, c.up, c.down), measure.MinusOneToOne, 0.05)
			if a.Low <= c.up-c.down && c.up-c.down <= a.High {
				single++
			}
			if d := Difference(a, b); d.Low <= 0 && 0 <= d.High {
				two++
			}
		}
		if single < 0.93*trials || two < 0.93*trials {
			t.Errorf("n %d, %v up and %v down: %d and %d of %d intervals hold the value", c.n, c.up, c.down, single, two, trials)
		}
	}
}
