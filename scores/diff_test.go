package scores

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// cellOf returns a cell with one score, the mean over groups of ten samples with the given means.
// Its replicates are the leave-one-group-out values of the jackknife.
func cellOf(model string, groups ...float64) Cell {
	n := 10 * len(groups)
	var mean float64
	for _, g := range groups {
		mean += g / float64(len(groups))
	}
	s := measure.Score{Statistic: "ei", Value: mean, N: n, Null: math.NaN()}
	for _, g := range groups {
		rest := (mean*float64(len(groups)) - g) / float64(len(groups)-1)
		s.Replicates = append(s.Replicates, measure.Replicate{Value: rest, Left: 10})
	}
	s.Low, s.High = resample.Jackknife(s.Value, n, s.Replicates)
	return Cell{Model: model, Data: "d", Transform: "t", Measure: "effective-invariance",
		Layers: []Layer{{Depth: NoDepth, Scores: []measure.Score{s}}}}
}

// The scores vary from group to group, but their differences hardly do, so only the paired interval
// excludes 0. By hand: the differences 0.01, 0.02 and 0.03 have the mean 0.02 and the standard
// error 0.01 / sqrt 3. The 97.5 % quantile of Student's t with 2 degrees of freedom is 4.3027.
// SameSamples says of which data both runs have the same samples; only then can they be paired.
func TestDiffIsPaired(t *testing.T) {
	t.Parallel()
	a, b := []Cell{cellOf("m", .1, .5, .9)}, []Cell{cellOf("m", .11, .52, .93)}
	unpaired := Comparison{}.Diff(a, b)
	if len(unpaired) != 1 || unpaired[0].Paired || unpaired[0].Significant() || math.Abs(unpaired[0].Value-.02) > 1e-12 {
		t.Fatalf("the differences are %+v, want an unpaired one of 0.02 that is not significant", unpaired)
	}
	paired := Comparison{SameSamples: func(string) bool { return true }}.Diff(a, b)[0]
	half := 4.302652730 * .01 / math.Sqrt(3)
	if !paired.Paired || math.Abs(paired.Low-(.02-half)) > 1e-8 || math.Abs(paired.High-(.02+half)) > 1e-8 {
		t.Errorf("%+v, want 0.02 +- %g", paired, half)
	}
	same := Comparison{SameSamples: func(string) bool { return true }}.Diff(a, a)[0]
	if same.Value != 0 || same.Significant() {
		t.Errorf("a run differs from itself: %+v", same)
	}
}

// Runs of one study on two machines differ in the last digits. Differences up to 1e-6 of the score,
// or of 1 if that is larger, are not significant.
func TestRoundingIsNotSignificant(t *testing.T) {
	row := func(v float64) Row { return Row{Value: v} }
	for _, c := range []struct {
		a, b        float64
		significant bool
	}{{1.0 / 3, 1.0/3 + 4e-16, false}, {200, 200 + 1e-4, false}, {0.5, 0.5 + 1e-5, true}, {200, 201, true}} {
		d := Difference{A: row(c.a), B: row(c.b), Value: c.b - c.a, Low: c.b - c.a, High: c.b - c.a}
		if d.Significant() != c.significant {
			t.Errorf("%v against %v: Significant returns %v, want %v", c.a, c.b, d.Significant(), c.significant)
		}
	}
}

func TestDiffMatchesModels(t *testing.T) {
	t.Parallel()
	a, b := []Cell{cellOf("old", .1, .2), cellOf("gone", .1, .2)}, []Cell{cellOf("new", .3, .4)}
	if d := (Comparison{}).Diff(a, b); len(d) != 0 {
		t.Errorf("models with different names match: %+v", d)
	}
	d := Comparison{Models: map[string]string{"old": "new"}}.Diff(a, b)
	if len(d) != 1 || d[0].A.Model != "old" || d[0].B.Model != "new" || math.Abs(d[0].Value-.2) > 1e-12 {
		t.Errorf("the differences are %+v, want one of 0.2 between old and new", d)
	}
}

// The clean accuracy (on untransformed data) of model m is the same under both transformations, so
// Distinct keeps one of its two differences. Its second argument tells which statistics are such.
func TestDistinct(t *testing.T) {
	t.Parallel()
	var all []Difference
	for _, transform := range []string{"quarter", "gray"} {
		for _, statistic := range []string{"clean", "moved"} {
			all = append(all, Difference{A: Row{Model: "m", Data: "d", Transform: transform, Measure: "accuracy", Statistic: statistic}})
		}
	}
	all = append(all, Difference{A: Row{Model: "k", Data: "d", Transform: "gray", Measure: "accuracy", Statistic: "clean"}})
	got := Distinct(all, func(_, statistic string) bool { return statistic == "clean" })
	if len(got) != 4 || got[2].A.Statistic != "moved" || got[3].A.Model != "k" {
		t.Errorf("the distinct differences are %+v, want 4, with moved and the model k last", got)
	}
}

// A difference meets a condition if its whole interval does, after the correction, unless the
// condition ends in an exclamation mark. ei returns
// a row; its arguments are model, data, transformation, parameter (none: the mean), trial, value.
func TestCondition(t *testing.T) {
	t.Parallel()
	significant := func(v float64) Difference { // of effective invariance under rotation, with an interval of +- 0.001
		return Difference{A: ei("m", "d", "rotation", "", 0, 0), Value: v, Low: v - .001, High: v + .001}
	}
	insignificant := significant(-.5)
	insignificant.Low, insignificant.High = -1, 0
	near := significant(-.0205) // the interval contains -0.02
	differences := []Difference{significant(-.05), significant(-.01), significant(.1), insignificant, significant(-.3), near}
	for text, want := range map[string][]float64{
		"effective-invariance.ei < -0.02":          {-.3, -.05},
		"effective-invariance.ei@rotation<-0.02!":  {-.5, -.3, -.05, -.0205},
		"effective-invariance.ei > 0.05":           {.1},
		" effective-invariance.ei@rotation > 0.5 ": nil,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		failing, err := c.Failing(differences)
		if err != nil {
			t.Fatal(err)
		}
		if len(failing) != len(want) {
			t.Fatalf("%s fails for %+v, want the values %v", text, failing, want)
		}
		for i := range want {
			if failing[i].Value != want[i] {
				t.Errorf("%s fails for %+v, want the value %v", text, failing[i], want[i])
			}
		}
		if again, err := ParseCondition(c.String()); err != nil || again != c {
			t.Errorf("%s reads back as %+v, %v", c, again, err)
		}
	}
	c, _ := ParseCondition("seis.equivariance < 0")
	if _, err := c.Failing(differences); err == nil || !strings.Contains(err.Error(), "effective-invariance.ei") {
		t.Errorf("a condition without matching scores: error %v, want one with %q", err, "effective-invariance.ei")
	}
	for _, text := range []string{"", "ei < 1", "a.b", "a.b < x", "a.b < NaN", "a.b = 3", "< 1"} {
		if c, err := ParseCondition(text); err == nil {
			t.Errorf("ParseCondition(%q) = %+v, want an error", text, c)
		}
	}
}

// FuzzCondition checks that no text gives a condition with an infinite or NaN bound.
func FuzzCondition(f *testing.F) {
	f.Add("effective-invariance.ei@rotation=90/relu < -0.02!")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCondition(text)
		if err == nil && (math.IsNaN(c.Bound) || math.IsInf(c.Bound, 0)) {
			t.Fatalf("ParseCondition(%q) = %+v, want a finite bound", text, c)
		}
	})
}

// A row meets a condition if its whole interval does. If it has no interval, or if the condition
// ends in an exclamation mark, its value alone counts. STIR tells how well a model shares the
// invariances of another.
func TestConditionOnValues(t *testing.T) {
	t.Parallel()
	row := func(v, low, high float64) Row {
		return Row{Model: "a", OtherModel: "b", Measure: "stir", Statistic: "stir", Value: v, Low: low, High: high}
	}
	nan := math.NaN()
	rows := []Row{row(.3, .2, .4), row(.45, .3, .6), row(.1, nan, nan), row(.8, .7, .9)}
	for text, want := range map[string][]float64{
		"stir.stir < 0.5": {.1, .3}, "stir.stir < 0.5!": {.1, .3, .45}, "stir.stir > 0.5": {.8}, "stir.stir > 0.25!": {.8, .45, .3}, "stir.stir < 0.05": nil,
	} {
		c, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.FailingValues(rows)
		var got []float64
		for _, r := range found {
			got = append(got, r.Value)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	c, _ := ParseCondition("stir.other < 1")
	if _, err := c.FailingValues(rows); err == nil || !strings.Contains(err.Error(), "stir.stir") {
		t.Errorf("a name that no row has: error %v, want one with %q", err, "stir.stir")
	}
}

func TestRowDescribe(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Row{
		"a, logits, c, quarter=90, mlp, hue": {Model: "a", Layer: "logits", Data: "c", Transform: "quarter", Parameter: "90", Variant: "mlp", Factor: "hue"},
		"a, b, c":                            {Model: "a", OtherModel: "b", Data: "c"},
		"a, c, gray":                         {Model: "a", Data: "c", Transform: "gray"},
	} {
		if got := r.Describe(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// One in twenty 95 % intervals excludes 0 by chance. Differences without an interval do not count.
func TestExpectedByChance(t *testing.T) {
	t.Parallel()
	differences := slices.Repeat([]Difference{{Low: -1, High: 1}}, 40)
	differences = append(differences, slices.Repeat([]Difference{{Low: math.NaN(), High: math.NaN()}}, 100)...)
	if got := ExpectedByChance(differences); got != 2 {
		t.Errorf("%v are expected of 40 differences with an interval, want 2", got)
	}
}
