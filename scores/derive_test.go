package scores_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// grouped returns the score of the mean of values, one for each sample, with a jackknife over
// groups of consecutive samples. Replicates are the means without one group; Left is its size.
func grouped(statistic string, values []float64, groups int) measure.Score {
	sum := func(v []float64) (s float64) {
		for _, x := range v {
			s += x
		}
		return s
	}
	n := len(values)
	s := measure.Plain(statistic, sum(values)/float64(n), n)
	s.Min, s.Max = 0, 1
	for g := range groups {
		group := values[g*n/groups : (g+1)*n/groups]
		s.Replicates = append(s.Replicates, measure.Replicate{Value: (sum(values) - sum(group)) / float64(n-len(group)), Left: len(group)})
	}
	s.Low, s.High = resample.Jackknife(s.Value, n, s.Replicates)
	// The null, the value that chance alone gives.
	s.Null = s.Value / 2 // linear in the values, so that the null of a mean is the mean of the nulls
	return s
}

// cell returns a cell, the scores of one measure for one model, data set, parameter value of a
// transformation, and trial. Only parameter and trial vary.
func cell(parameter string, trial int, s ...measure.Score) scores.Cell {
	return scores.Cell{
		Model: "m", Data: "d", Transform: "turn", Parameter: parameter, Trial: trial, Measure: "effective-invariance",
		Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: s}},
	}
}

// If a statistic is a mean over samples, so is its mean over the values of a transformation's
// parameter. Its interval must be the jackknife interval of that mean.
func TestMeanOverValuesInterval(t *testing.T) {
	t.Parallel()
	const n, groups = 203, 20
	r := rand.New(rand.NewPCG(1, 1))
	at := make([][]float64, 3)  // for each value of the transformation, the statistic of each sample
	means := make([]float64, n) // for each sample, the mean of these over the three values
	for i := range n {
		shared := r.Float64() // what the sample has in common under all values
		for v := range at {
			at[v] = append(at[v], (shared+r.Float64())/2)
			means[i] += at[v][i] / 3
		}
	}
	var cells []scores.Cell
	for v, name := range []string{"90", "180", "270"} {
		cells = append(cells, cell(name, 0, grouped("ei", at[v], groups)))
	}
	got := scores.OverValues(cells)
	if len(got) != 1 || got[0].Parameter != "" || got[0].Trial != 0 || got[0].Transform != "turn" {
		t.Fatalf("derived %+v, want one score of turn over its parameters", got)
	}
	g, want := got[0].Layers[0].Scores[0], grouped("ei", means, groups)
	for what, pair := range map[string][2]float64{
		"value": {g.Value, want.Value}, "low": {g.Low, want.Low}, "high": {g.High, want.High}, "null": {g.Null, want.Null},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	if g.N != n || len(g.Replicates) != groups {
		t.Errorf("n is %d with %d replicates, want %d with %d", g.N, len(g.Replicates), n, groups)
	}
}

// Five trials with the mean 0.5 and the standard deviation sqrt(0.025) have the interval
// scipy.stats.t.interval(0.95, 4, 0.5, sqrt(0.025 / 5)). The n of the mean is the least n of a
// trial, and each warning occurs once. Plain returns a score without interval and null.
func TestMeanOverTrials(t *testing.T) {
	t.Parallel()
	var cells []scores.Cell
	for trial, v := range []float64{0.3, 0.4, 0.5, 0.6, 0.7} {
		s := measure.Plain("ei", v, 100+trial)
		s.Warnings = []string{"small", "odd"}[:1+trial%2]
		cells = append(cells, cell("90", trial, s))
	}
	got := scores.OverTrials(cells)
	if len(got) != 1 || got[0].Trial != scores.MeanOverTrials || got[0].Parameter != "90" {
		t.Fatalf("derived %+v, want one mean over trials at 90", got)
	}
	s := got[0].Layers[0].Scores[0]
	const half = 0.19632432
	if math.Abs(s.Value-0.5) > 1e-12 || math.Abs(s.Low-0.5+half) > 1e-7 || math.Abs(s.High-0.5-half) > 1e-7 || !math.IsNaN(s.Null) {
		t.Errorf("the mean is %+v, want 0.5 with half an interval of 0.196 and no null", s)
	}
	if s.N != 100 || !slices.Equal(s.Warnings, []string{"small", "odd"}) {
		t.Errorf("n is %d and the warnings %v, want 100, small and odd", s.N, s.Warnings)
	}
}

// If all scores are equal, the interval of their mean is that of each of them, here 0.98 to 1, and
// not of width 0. An interval is limited to the range of the statistic, here 0 to 1.
func TestIntervalRangeAndWidth(t *testing.T) {
	t.Parallel()
	score := func(v float64) measure.Score {
		s := measure.Plain("agreement", v, 100)
		s.Low, s.High, s.Max = v-0.02, v, 1
		s.Replicates = []measure.Replicate{{Value: v, Left: 50}, {Value: v, Left: 50}}
		return s
	}
	for name, c := range map[string]struct {
		derive    func([]scores.Cell) []scores.Cell
		cells     []scores.Cell
		low, high float64
	}{
		"values that do not vary": {scores.OverValues, []scores.Cell{cell("1", 0, score(1)), cell("2", 0, score(1))}, 0.98, 1},
		"trials that do not vary": {scores.OverTrials, []scores.Cell{cell("1", 0, score(1)), cell("1", 1, score(1))}, 0.98, 1},
		"trials beyond the range": {scores.OverTrials, []scores.Cell{cell("1", 0, score(0.2)), cell("1", 1, score(0.9))}, 0, 1},
	} {
		s := c.derive(c.cells)[0].Layers[0].Scores[0]
		if math.Abs(s.Low-c.low) > 1e-12 || math.Abs(s.High-c.high) > 1e-12 {
			t.Errorf("%s: %v to %v, want %v to %v", name, s.Low, s.High, c.low, c.high)
		}
	}
}

// A mean over values has the statistics that the cells of all values have, in the order of the
// first cell. Without jackknife replicates it has no interval.
func TestMeanOfSharedScores(t *testing.T) {
	t.Parallel()
	p := func(name string, v float64) measure.Score { return measure.Plain(name, v, 10) }
	other := cell("180", 0, p("ei", 7))
	other.Model = "n"
	got := scores.OverValues([]scores.Cell{
		cell("90", 0, p("ei", 1), p("kl", math.NaN()), p("js", 1)),
		cell("180", 0, p("kl", 2), p("ei", 2)),
		cell("90", 1, p("ei", 5)), // the only trial of its value
		other,                     // the only cell of its model
		cell("", 0, p("ei", 9)),   // not one of several values
	})
	if len(got) != 1 {
		t.Fatalf("derived %+v, want one result", got)
	}
	s := got[0].Layers[0].Scores
	if len(s) != 2 || s[0].Statistic != "ei" || s[0].Value != 1.5 || s[1].Statistic != "kl" || !math.IsNaN(s[1].Value) {
		t.Errorf("derived %+v, want ei of 1.5 and kl of NaN", s)
	}
	if s[0].Replicates != nil || !math.IsNaN(s[0].Low) {
		t.Errorf("an interval without replicates: %+v", s[0])
	}
}

// The table has the cells, the means over values of each trial, the means over trials of each
// value, and the means over both, in the order of the study.
func TestTable(t *testing.T) {
	t.Parallel()
	var cells []scores.Cell
	for trial := range 2 {
		for i, v := range []string{"90", "10"} {
			cells = append(cells, cell(v, trial, measure.Plain("ei", float64(1+2*i+trial), 10)))
		}
	}
	cells[0].Layers[0].Scores[0].Warnings = []string{"a", "b"}
	type line struct {
		parameter string // "": mean over values
		trial     int    // -1 (scores.MeanOverTrials): mean over trials
		value     float64
		warning   string
	}
	var got []line
	for _, r := range scores.Table("study", cells) {
		if r.Study != "study" || r.Model != "m" || r.Depth != scores.NoDepth || r.Statistic != "ei" || r.N != 10 {
			t.Errorf("the row is %+v, want ei of m in the study, without a layer, over 10", r)
		}
		got = append(got, line{r.Parameter, r.Trial, r.Value, r.Warning})
	}
	want := []line{
		{"90", 0, 1, "a; b"}, {"10", 0, 3, ""}, {"90", 1, 2, ""}, {"10", 1, 4, ""},
		{"", 0, 2, "a; b"}, {"", 1, 3, ""},
		{"90", -1, 1.5, "a; b"}, {"10", -1, 3.5, ""}, {"", -1, 2.5, "a; b"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestMeanOfConstantValuesKeepsInterval(t *testing.T) {
	t.Parallel()
	// All of 500 samples are right, so the jackknife over 20 groups finds only rounding errors.
	var cells []scores.Cell
	for _, p := range []string{"90", "180", "270"} {
		s := measure.Score{Statistic: "clean", Value: 1, Low: 0.992, High: 1, Null: math.NaN(), N: 500, Max: 1}
		for range 20 {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: 0.1 * 3 / 0.3, Left: 25}) // 1 up to rounding
		}
		cells = append(cells, scores.Cell{Model: "m", Transform: "t", Parameter: p, Measure: "accuracy", Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{s}}}})
	}
	got := scores.OverValues(cells)[0].Layers[0].Scores[0]
	if math.Abs(got.Low-0.992) > 1e-12 || got.High != 1 {
		t.Errorf("the interval is [%v, %v], want [0.992, 1]", got.Low, got.High)
	}
}

// TestMeanOfEqualScoresKeepsTheirInterval checks that clean accuracy, which is the same for every
// value of a transformation, has the same interval as its mean.
func TestMeanOfEqualScoresKeepsTheirInterval(t *testing.T) {
	t.Parallel()
	var cells []scores.Cell
	for _, p := range []string{"90", "180", "270"} {
		s := measure.Score{Statistic: "clean", Value: 0.8, Low: 0.763, High: 0.833, Null: math.NaN(), N: 500, Max: 1}
		for i := range 20 {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: 0.8 + 0.001*float64(i-10), Left: 25})
		}
		cells = append(cells, scores.Cell{Model: "m", Transform: "t", Parameter: p, Measure: "accuracy", Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{s}}}})
	}
	got := scores.OverValues(cells)[0].Layers[0].Scores[0]
	if got.Low != 0.763 || got.High != 0.833 {
		t.Errorf("the interval is [%v, %v], want [0.763, 0.833]", got.Low, got.High)
	}
}

// A mean that would include a failed cell is left out; other means are not.
func TestNoMeanWithFailedCell(t *testing.T) {
	t.Parallel()
	var cells []scores.Cell
	for trial := range 2 {
		for _, v := range []string{"90", "180", "270"} {
			if v != "270" || trial != 1 {
				cells = append(cells, cell(v, trial, measure.Plain("ei", 1, 10)))
			}
		}
	}
	missing := cell("270", 1)
	failed := scores.Failure{Model: missing.Model, Data: missing.Data, Transform: missing.Transform, Parameter: "270", Trial: 1, Measure: missing.Measure}
	var means []string
	for _, r := range scores.Table("study", cells, failed)[len(cells):] { // the means follow the rows of the cells
		means = append(means, fmt.Sprintf("%q %d", r.Parameter, r.Trial))
	}
	if want := []string{`"" 0`, `"90" -1`, `"180" -1`}; !slices.Equal(means, want) {
		t.Errorf("means %v, want %v", means, want)
	}
}
