package scores

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// TestHolmEqualsStatsmodels checks adjusted p-values and p-values of intervals against statsmodels
// and scipy (testdata/holm.py).
func TestHolmEqualsStatsmodels(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/holm.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Families []struct{ P, Adjusted []float64 }
		Tests    []struct{ Mean, Half, Null, Freedom, P float64 }
	}
	if err := json.Unmarshal(data, &golden); err != nil || len(golden.Families) == 0 || len(golden.Tests) == 0 {
		t.Fatal(err, golden)
	}
	for _, f := range golden.Families {
		for i, p := range Holm(f.P) {
			if math.Abs(p-f.Adjusted[i]) > 1e-12 {
				t.Errorf("p %v of a family of %d is adjusted to %v, want %v", f.P[i], len(f.P), p, f.Adjusted[i])
			}
		}
	}
	for _, c := range golden.Tests {
		if p := resample.PValue(c.Mean-c.Null, c.Half, c.Freedom); math.Abs(p-c.P) > 1e-9 {
			t.Errorf("p of %+v is %v", c, p)
		}
	}
}

func TestHolmLeavesOutWhatIsNoTest(t *testing.T) {
	t.Parallel()
	got := Holm([]float64{0.02, math.NaN(), 0.03})
	if got[0] != 0.04 || !math.IsNaN(got[1]) || got[2] != 0.04 {
		t.Errorf("%v, want 0.04, NaN and 0.04", got)
	}
}

// TestCorrectedInterval checks that the corrected interval of a difference excludes 0 exactly if
// its adjusted p-value is below 0.05, and that p below 0.05 is the uncorrected interval's.
func TestCorrectedInterval(t *testing.T) {
	t.Parallel()
	// Six groups: the means are 0.01 apart in the first run, more or less steadily in the second.
	a := []Cell{cellOf("m0", .1, .2, .3, .4, .5, .6), cellOf("m1", .1, .2, .3, .4, .5, .6), cellOf("m2", .1, .2, .3, .4, .5, .6)}
	b := []Cell{cellOf("m0", .12, .215, .325, .42, .521, .618), cellOf("m1", .14, .205, .33, .41, .5, .62), cellOf("m2", .13, .19, .32, .39, .5, .6)}
	found := Comparison{SameSamples: func(string) bool { return true }}.Diff(a, b)
	seen := map[[2]bool]int{}
	for _, d := range found {
		low, high := d.Corrected()
		excluded := low > 0 || high < 0
		if excluded != (d.Adjusted < 0.05) || excluded != d.Significant() || (d.P < 0.05) != (d.Low > 0 || d.High < 0) || d.Adjusted < d.P {
			t.Errorf("%+v has the corrected interval %v to %v", d, low, high)
		}
		seen[[2]bool{d.P < 0.05, excluded}]++
	}
	if seen[[2]bool{true, true}] == 0 || seen[[2]bool{true, false}] == 0 || seen[[2]bool{false, false}] == 0 {
		t.Errorf("%v: want a difference that is significant, one that is only before the correction, and one that is not", seen)
	}
}

// TestSpreadWidensPairedDifferences checks that what replicates do not contain, such as the spread
// over trained probes, is in the interval of a paired difference, with its degrees of freedom.
func TestSpreadWidensPairedDifferences(t *testing.T) {
	t.Parallel()
	a, b := cellOf("m", .1, .5, .9).Layers[0].Scores[0], cellOf("m", .11, .52, .93).Layers[0].Scores[0]
	without := Subtract(a, b, true)
	a.Spread, a.Freedom = 0.3, 2
	with := Subtract(a, b, true)
	want := math.Hypot(without.High-without.Value, 0.3)
	if got := with.High - with.Value; math.Abs(got-want) > 1e-12 || with.P < without.P || !with.Paired {
		t.Errorf("the half-width is %v, want %v; p %v and %v", got, want, with.P, without.P)
	}
}

// TestModelsOfOneRun checks that a model that another one is compared with is not compared with
// itself as well.
func TestModelsOfOneRun(t *testing.T) {
	t.Parallel()
	run := []Cell{cellOf("m0", .1, .5, .9), cellOf("m1", .11, .52, .93), cellOf("m2", .1, .1, .1)}
	for _, c := range []struct {
		Comparison
		want int
	}{{Comparison{Models: map[string]string{"m0": "m1"}}, 2}, {Comparison{Models: map[string]string{"m0": "m1"}, Only: true}, 1}} {
		found := c.Diff(run, run)
		if len(found) != c.want || found[0].A.Model != "m0" || found[0].B.Model != "m1" {
			t.Errorf("%+v, want %d differences, the first of m0 and m1", found, c.want)
		}
	}
}

// TestScoresThatDependOnNAreNotCompared checks that a score that depends on the number of samples
// is left out where that differs, and compared where it does not.
func TestScoresThatDependOnNAreNotCompared(t *testing.T) {
	t.Parallel()
	a, b := cellOf("m", .1, .5, .9), cellOf("m", .1, .5, .9, .7)
	for _, c := range []*Cell{&a, &b} {
		s := &c.Layers[0].Scores[0]
		s.Warnings = []string{measure.SampleSizeWarning(s.N)}
	}
	if found := (Comparison{}).Diff([]Cell{a}, []Cell{b}); len(found) != 0 {
		t.Errorf("scores of 30 and 40 samples are compared: %+v", found)
	}
	if found := (Comparison{}).Diff([]Cell{a}, []Cell{a}); len(found) != 1 {
		t.Errorf("%d differences of scores of 30 samples, want 1", len(found))
	}
}
