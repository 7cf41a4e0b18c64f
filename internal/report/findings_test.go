package report

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// depthRows returns a curve: the values of a statistic of SEIS (a measure with the statistics
// equivariance and invariance) over the layers a, b, c, ... of the model m, under the
// transformation turn. They have no intervals and no nulls (values that chance gives). A row is one
// score.
func depthRows(statistic string, values ...float64) []scores.Row {
	var rows []scores.Row
	for i, v := range values {
		rows = append(rows, scores.Row{Model: "m", Data: "d", Transform: "turn", Layer: string(rune('a' + i)), Depth: i,
			Measure: "seis", Statistic: statistic, Value: v, Low: nan, High: nan, Null: nan, N: 10})
	}
	return rows
}

// predictionRow returns a score of the predictions of a model, with an interval of value ±
// halfWidth.
func predictionRow(model, transform, measure, statistic string, value, halfWidth float64) scores.Row {
	return scores.Row{Model: model, Data: "d", Transform: transform, Depth: -1, Measure: measure, Statistic: statistic,
		Value: value, Low: value - halfWidth, High: value + halfWidth, Null: nan, N: 10}
}

// withIntervals gives each row an interval of its value ± halfWidth.
func withIntervals(halfWidth float64, rows []scores.Row) []scores.Row {
	for i := range rows {
		rows[i].Low, rows[i].High = rows[i].Value-halfWidth, rows[i].Value+halfWidth
	}
	return rows
}

// TestFindings checks the sentences on the most notable scores. The last argument of Findings, nil,
// are replicates (scores without one group of samples each); without them, differences are judged
// by the scores' own intervals. ei is effective invariance, whether predictions stay the same.
// clean and moved are accuracies on samples as they are and transformed, and drop is their
// difference.
func TestFindings(t *testing.T) {
	t.Parallel()
	lastAtChance := depthRows("equivariance", 0.9, 0.3, 0.2)
	for i := range lastAtChance {
		lastAtChance[i].Null = 0.25
	}
	distances := depthRows("cosine", 0.9, 0.1)
	for i := range distances {
		distances[i].Measure, distances[i].Null = "distance", 1
	}
	for _, c := range []struct {
		name string
		rows []scores.Row
		want []string
	}{
		{"no rows", nil, nil},
		{"a distance below that of unrelated samples", distances, []string{"Cosine distance under turn is highest at a (0.900) and lowest at b (0.100)."}},
		{"falls", depthRows("equivariance", 0.91, 0.8, 0.38), []string{"Equivariance under turn falls from 0.910 at a to 0.380 at c."}},
		{"rises", depthRows("invariance", 0.1, 0.2, 0.38), []string{"Invariance under turn rises from 0.100 at a to 0.380 at c."}},
		{"constant", depthRows("equivariance", 0.91, 0.90, 0.92), []string{"Equivariance under turn stays between 0.900 and 0.920 at all 3 layers."}},
		{"neither falls nor rises", depthRows("equivariance", 0.5, 0.9, 0.1, 0.5), []string{"Equivariance under turn is highest at b (0.900) and lowest at c (0.100)."}},
		{"one layer", depthRows("equivariance", 0.5), []string{"Equivariance under turn is 0.500 at a."}},
		{"only NaN", depthRows("equivariance", nan, nan), nil},
		{"last layer at chance", lastAtChance, []string{"Equivariance under turn falls from 0.900 at a to 0.200 at c; at 1 of 3 layers it is no better than chance."}},
		{"one model", []scores.Row{predictionRow("m", "turn", "effective-invariance", "ei", 0.61, 0.01)},
			[]string{"Effective invariance under turn is 0.610 (95 % interval 0.600 to 0.620)."}},
		{"two transformations of one model", []scores.Row{
			predictionRow("m", "turn", "effective-invariance", "ei", 0.61, 0.01), predictionRow("m", "grey", "effective-invariance", "ei", 0.9, 0.01)},
			[]string{"Effective invariance is highest under grey (0.900) and lowest under turn (0.610)."}},
		{"transformations with equal scores", []scores.Row{
			predictionRow("m", "turn", "effective-invariance", "ei", 0.61, 0.01), predictionRow("m", "grey", "effective-invariance", "ei", 0.6102, 0.01)},
			[]string{"Effective invariance is 0.610 under each of 2 transformations."}},
		{"models with equal scores", []scores.Row{
			predictionRow("m", "turn", "effective-invariance", "ei", 0.61, 0.01), predictionRow("k", "turn", "effective-invariance", "ei", 0.61, 0.01)},
			[]string{"Effective invariance under turn is 0.610 for each of 2 models."}},
		{"models that differ within their intervals", []scores.Row{
			predictionRow("m", "turn", "effective-invariance", "ei", 0.61, 0.01), predictionRow("k", "turn", "effective-invariance", "ei", 0.615, 0.01)},
			[]string{"Effective invariance under turn is 0.610 to 0.615 for each of 2 models, a difference that may be chance."}},
		{"accuracy", []scores.Row{
			predictionRow("m", "turn", "accuracy", "clean", 0.81, 0.01), predictionRow("m", "turn", "accuracy", "moved", 0.29, 0.01)},
			[]string{"Accuracy under turn falls from 0.810 to 0.290."}},
		{"accuracy kept", []scores.Row{
			predictionRow("m", "turn", "accuracy", "clean", 0.81, 0.01), predictionRow("m", "turn", "accuracy", "moved", 0.81, 0.01)},
			[]string{"Accuracy under turn stays at 0.810."}},
		{"accuracy of two models", []scores.Row{
			predictionRow("m", "turn", "accuracy", "clean", 0.81, 0.01), predictionRow("m", "turn", "accuracy", "moved", 0.29, 0.01),
			predictionRow("k", "turn", "accuracy", "clean", 0.9, 0.01), predictionRow("k", "turn", "accuracy", "moved", 0.91, 0.01)},
			[]string{"Accuracy under turn suffers most in m, where it falls from 0.810 to 0.290, and least in k, where it rises from 0.900 to 0.910."}},
		{"accuracy that changes within its interval", []scores.Row{
			predictionRow("m", "turn", "accuracy", "clean", 0.81, 0.02), predictionRow("m", "turn", "accuracy", "moved", 0.8, 0.02),
			predictionRow("m", "turn", "accuracy", "drop", 0.01, 0.02)},
			[]string{"Accuracy under turn is 0.800 in place of 0.810, a difference within its interval."}},
		{"accuracy of two models that change alike", []scores.Row{
			predictionRow("m", "turn", "accuracy", "clean", 0.81, 0.01), predictionRow("m", "turn", "accuracy", "moved", 0.29, 0.01), predictionRow("m", "turn", "accuracy", "drop", 0.52, 0.01),
			predictionRow("k", "turn", "accuracy", "clean", 0.9, 0.01), predictionRow("k", "turn", "accuracy", "moved", 0.39, 0.01), predictionRow("k", "turn", "accuracy", "drop", 0.51, 0.01)},
			[]string{"Accuracy under turn falls by 0.510 to 0.520 in 2 models, a difference that may be chance."}},
		{"a curve within its intervals", withIntervals(0.2, depthRows("equivariance", 0.5, 0.6, 0.7)),
			[]string{"Equivariance under turn is 0.500 to 0.700 at 3 layers, a difference that may be chance."}},
		{"accuracy without a transformation", []scores.Row{predictionRow("m", "", "accuracy", "clean", 0.81, 0.01)},
			[]string{"Accuracy is 0.810 (95 % interval 0.800 to 0.820)."}},
		{"a measure without a descriptor", []scores.Row{predictionRow("m", "turn", "custom", "entropy", 3, 1)},
			[]string{"Entropy under turn is 3.000 (95 % interval 2.000 to 4.000)."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Findings(c.rows, reporttest.Measures(), nil); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestChanceDependsOnDirection checks isAtChance. A score is at chance if its null, the value that
// unrelated samples give, lies within the interval or on its better side: above, or for a statistic
// such as a distance, where lower is better, below.
func TestChanceDependsOnDirection(t *testing.T) {
	t.Parallel()
	row := scores.Row{Value: 0.5, Low: 0.4, High: 0.6}
	for _, c := range []struct {
		null      float64
		direction measure.Direction
		want      bool
	}{
		{0.3, measure.Higher, false}, {0.45, measure.Higher, true}, {0.9, measure.Higher, true},
		{0.9, measure.Lower, false}, {0.55, measure.Lower, true}, {0.1, measure.Lower, true},
	} {
		row.Null = c.null
		if got := isAtChance(row, c.direction); got != c.want {
			t.Errorf("null %g, direction %q: at chance is %t, want %t", c.null, c.direction, got, c.want)
		}
	}
}

// TestOverviewPrefersMeans checks which scores of a transformation the overview takes. A row with
// an empty parameter is the mean over the parameter's values; it stands for the rows of single
// values. A row of scores.MeanOverTrials stands for the single trials (repetitions of all random
// draws). Where these are missing, the overview takes each value and trial 0. Rows of a class are
// left out.
func TestOverviewPrefersMeans(t *testing.T) {
	t.Parallel()
	row := func(transform, parameter, factor string, trial int) scores.Row {
		return scores.Row{Model: "m", Transform: transform, Parameter: parameter, Factor: factor, Trial: trial, Measure: "x", Statistic: "s"}
	}
	rows := []scores.Row{
		row("turn", "90", "", 0), row("turn", "180", "", 0), row("turn", "", "", 0), row("turn", "", "", 1), row("turn", "", "", scores.MeanOverTrials),
		row("blur", "1", "", 0), row("blur", "2", "", 0), row("blur", "2", "", 1),
		row("turn", "", "class=cat", 0),
	}
	want := []scores.Row{rows[4], rows[5], rows[6]}
	if got := Overview(rows); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestFindingsOfFactors checks sentences on measures whose rows all have a factor: what a probe (a
// small network trained on a layer's vectors) predicts, or the parameter of a grating (an image of
// stripes) along which a unit (a channel at a position) fires. Of the statistics of a probe the
// sentences take those with an upper bound, such as R², not the RMSE. Of a measure with factors
// only in some rows, here distance, they take the rows without.
func TestFindingsOfFactors(t *testing.T) {
	t.Parallel()
	row := func(layer string, depth int, measure, statistic, factor string, value float64) scores.Row {
		return scores.Row{Model: "net", Layer: layer, Depth: depth, Data: "d", Measure: measure, Statistic: statistic, Factor: factor, Value: value, Low: nan, High: nan, Null: nan}
	}
	var rows []scores.Row
	for i, layer := range []string{"first", "second", "third"} {
		d := float64(i)
		rows = append(rows,
			row(layer, i, "informativeness", "r2", "hue", 0.9-0.3*d), row(layer, i, "informativeness", "r2", "scale", 0.5-0.1*d),
			row(layer, i, "informativeness", "rmse", "hue", 0.1+d), row(layer, i, "informativeness", "baseline-accuracy", "shape", 0.3),
			row(layer, i, "informativeness", "accuracy", "shape", 0.5), row(layer, i, "firing", "invariance", "phase", 10+5*d),
			row(layer, i, "distance", "cosine", "", 0.1), row(layer, i, "distance", "cosine", "class=cat", 0.3*d))
	}
	want := []string{
		"Cosine distance is 0.100 at all 3 layers.",
		"Firing-rate invariance for phase rises from 10 at first to 20 at third.",
		"R² for hue falls from 0.900 at first to 0.300 at third.",
	}
	got := Findings(rows, reporttest.Measures(), nil)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("findings %q, want %q", got, want)
	}
	shown := Overview(rows)
	for _, m := range Describe(shown, reporttest.Measures()) {
		if m.Name != "informativeness" {
			continue
		}
		var texts []string
		for _, f := range withClaims(nil, func(c *claims) []finding { return findingsOf(shown, m, c) }) {
			texts = append(texts, f.text)
		}
		want := []string{want[2], "Accuracy of the probe for shape is 0.500 at all 3 layers.", "R² for scale falls from 0.500 at first to 0.300 at third."}
		if !slices.Equal(texts, want) {
			t.Errorf("findings on informativeness %q, want %q", texts, want)
		}
	}
}

// TestFindingsOfSingleLayers checks that the finding compares the models if each has one layer, and
// describes the curve over layers if one of them has more.
func TestFindingsOfSingleLayers(t *testing.T) {
	t.Parallel()
	row := func(model, layer string, depth int, value float64) scores.Row {
		return scores.Row{Model: model, Layer: layer, Depth: depth, Transform: "turn", Variant: "v", Measure: "seis", Statistic: "equivariance", Value: value, Low: value - 0.01, High: value + 0.01, Null: nan}
	}
	rows := []scores.Row{row("small", "conv", 2, 0.66), row("large", "relu", 3, 0.99)}
	if got := Findings(rows, reporttest.Measures(), nil); len(got) != 1 || got[0] != "Equivariance under turn (v) is highest for large (0.990) and lowest for small (0.660)." {
		t.Errorf("findings on two models with one layer each: %q, want one that compares the models", got)
	}
	rows = append(rows, row("small", "pool", 3, 0.2))
	if got := Findings(rows, reporttest.Measures(), nil); len(got) != 1 || !strings.HasPrefix(got[0], "Equivariance of small under turn (v) is highest at conv (0.660) and lowest at pool (0.200)") {
		t.Errorf("findings on models with one and with two layers: %q, want one that compares the layers of small", got)
	}
}

// TestDescribe checks the order of measures and statistics: that of their descriptors, which
// reporttest.Measures returns. Those without a descriptor come last: the measure custom, and the
// statistic unlisted of seis.
func TestDescribe(t *testing.T) {
	t.Parallel()
	rows := []scores.Row{
		{Measure: "custom", Statistic: "entropy"}, {Measure: "seis", Statistic: "rank"}, {Measure: "seis", Statistic: "unlisted"},
		{Measure: "seis", Statistic: "equivariance"}, {Measure: "accuracy", Statistic: "clean"},
	}
	var names []string
	for _, m := range Describe(rows, reporttest.Measures()) {
		for _, s := range m.Statistics {
			names = append(names, m.Name+" "+s.Name)
		}
	}
	want := []string{"accuracy clean", "seis equivariance", "seis rank", "seis unlisted", "custom entropy"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestSentencesNameFiniteValuesOnly checks that no sentence names an infinite value or a NaN.
func TestSentencesNameFiniteValuesOnly(t *testing.T) {
	t.Parallel()
	// UsualRun is a generated run, and conclude returns the sentences that summarise rows.
	rows, _ := reporttest.UsualRun.Rows()
	for i := range rows {
		switch i % 7 {
		case 0:
			rows[i].Value = math.Inf(1)
		case 3:
			rows[i].Value, rows[i].Low, rows[i].High = math.Inf(-1), nan, nan
		case 5:
			rows[i].Value = nan
		}
	}
	sentences := slices.Concat(conclude(rows), Findings(rows, reporttest.Measures(), nil))
	for _, sentence := range sentences {
		if strings.Contains(sentence, "Inf") || strings.Contains(sentence, "NaN") {
			t.Errorf("the sentence %q names a value that is not finite", sentence)
		}
	}
	if len(sentences) < 4 {
		t.Errorf("%d sentences, want 4 or more: %q", len(sentences), sentences)
	}
}

var nan = math.NaN()

// The weight of a finding (a sentence on scores) is the change relative to the range of the
// statistic, or without an upper bound to the larger magnitude. It is finite for a change to 0 too;
// JSON has no infinite numbers.
func TestWeightsAreFinite(t *testing.T) {
	t.Parallel()
	unbounded := measure.StatisticDescriptor{Range: measure.NotNegative}
	if w := 0.5 / width(unbounded, -0.5, 0); w != 1 {
		t.Errorf("the weight of a change from -0.5 to 0 is %v, want 1", w)
	}
	rows := []scores.Row{
		{Model: "m", Layer: "a", Depth: 1, Measure: "custom", Statistic: "entropy", Value: -0.5, Low: nan, High: nan, Null: nan},
		{Model: "m", Layer: "b", Depth: 2, Measure: "custom", Statistic: "entropy", Value: 0, Low: nan, High: nan, Null: nan},
	}
	statements := Statements(rows, nil, nil)
	if len(statements) == 0 {
		t.Fatal("there are no statements")
	}
	if _, err := json.Marshal(statements); err != nil {
		t.Error(err)
	}
}
