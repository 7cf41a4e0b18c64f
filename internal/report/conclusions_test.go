package report

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// conclude returns the sentences of a report that summarise rows (one score each), as text. Without
// replicates (nil, the scores without one group of samples each) differences of scores are judged
// by the scores' own intervals.
func conclude(rows []scores.Row) []string {
	var out []string
	found, _ := Conclusions(rows, scores.Record{Measures: reporttest.Measures()}, nil)
	for _, s := range found {
		out = append(out, s.String())
	}
	return out
}

func TestConclusions(t *testing.T) {
	t.Parallel()
	// ei returns a score of effective invariance (whether predictions stay the same, and how
	// confident they are), with a 95 % interval that reaches 0.01 to each side of the value.
	ei := func(model, transform string, value float64) scores.Row {
		return predictionRow(model, transform, "effective-invariance", "ei", value, 0.01)
	}
	// depthRows returns the given values of a statistic, without intervals, for layers in order of
	// depth, with the model m and the transformation turn. The next functions set the model,
	// transformation, measure and null (the score by chance).
	withModel := func(model string, rows []scores.Row) []scores.Row {
		for i := range rows {
			rows[i].Model = model
		}
		return rows
	}
	withTransform := func(transform string, rows []scores.Row) []scores.Row {
		for i := range rows {
			rows[i].Transform = transform
		}
		return rows
	}
	withMeasure := func(name string, rows []scores.Row) []scores.Row {
		for i := range rows {
			rows[i].Measure = name
		}
		return rows
	}
	withNull := func(r scores.Row, null float64) scores.Row { r.Null = null; return r }
	for _, c := range []struct {
		name string
		rows []scores.Row
		want []string
	}{
		{"no scores", nil, nil},
		{"one model", []scores.Row{ei("m", "turn", 0.6)}, nil},
		{"a significant difference", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.7)},
			[]string{"k is more robust than the other model under turn (0.700; next: m, 0.600), which is more than chance (p < 0.05 after correction for the number of comparisons)."}},
		{"an insignificant difference", []scores.Row{ei("m", "turn", 0.614), ei("k", "turn", 0.61)},
			[]string{"None of 2 models is clearly more robust: the differences in effective invariance are small or may be chance."}},
		{"a significant difference despite overlapping intervals", []scores.Row{ei("m", "turn", 0.616), ei("k", "turn", 0.6)},
			[]string{"m is more robust than the other model under turn (0.616; next: k, 0.600), which is more than chance (p < 0.05 after correction for the number of comparisons)."}},
		{"equal scores", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.6)},
			[]string{"None of 2 models is clearly more robust: the differences in effective invariance are small or may be chance."}},
		{"no intervals", []scores.Row{predictionRow("m", "turn", "effective-invariance", "ei", 0.6, nan), predictionRow("k", "turn", "effective-invariance", "ei", 0.7, nan)},
			[]string{"Whether one of 2 models is more robust cannot be said: the scores have no intervals."}},
		{"several transformations", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.7), ei("m", "blur", 0.6), ei("k", "blur", 0.605), ei("m", "grey", 0.89), ei("k", "grey", 0.9)},
			[]string{"k is more robust than the other model under 1 of 3 transformations (turn: 0.700; next: m, 0.600), which is more than chance (p < 0.05 after correction for the number of comparisons).",
				"Effective invariance is lowest under blur (0.600 to 0.605) and highest under grey (0.890 to 0.900)."}},
		{"only the lowest score differs significantly", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.7), ei("l", "turn", 0.705)},
			[]string{"m is the least robust of 3 models under turn (0.600; next: k, 0.700), which is more than chance (p < 0.05 after correction for the number of comparisons)."}},
		{"three models by a statistic where lower is better", []scores.Row{
			predictionRow("m", "turn", "prediction-divergence", "js", 0.3, 0.01), predictionRow("k", "turn", "prediction-divergence", "js", 0.1, 0.01),
			predictionRow("l", "turn", "prediction-divergence", "js", 0.2, 0.01)},
			[]string{"k is the most robust of 3 models under turn (0.100; next: l, 0.200), which is more than chance (p < 0.05 after correction for the number of comparisons)."}},
		{"all scores are no better than their null", []scores.Row{withNull(ei("m", "turn", 0.6), 0.7), withNull(ei("k", "turn", 0.5), 0.7)},
			[]string{"None of 2 models is clearly more robust: the differences in effective invariance are small or may be chance.", "2 of 2 scores are no better than chance."}},
		{"a fall over depth", depthRows("equivariance", 0.8, 0.9, 0.7, 0.5, 0.3),
			[]string{"Equivariance under turn falls from 0.900 to 0.300, half of the fall by 75 % of depth."}},
		{"no fall over depth", depthRows("equivariance", 0.8, 0.9, 0.85), nil},
		{"a fall within the intervals", withIntervals(0.3, depthRows("equivariance", 0.8, 0.9, 0.6)), nil},
		{"two models with a fall each", slices.Concat(depthRows("equivariance", 0.9, 0.5, 0.3), withModel("k", depthRows("equivariance", 0.9, 0.8, 0.3))),
			[]string{"Whether one of 2 models is more robust cannot be said: the scores have no intervals.",
				"Equivariance under turn falls from 0.900 to 0.300 in m, half of the fall by 50 % of depth; and from 0.900 to 0.300 in k, half of the fall by 100 % of depth."}},
		{"the fall under the first transformation, not the largest fall", slices.Concat(depthRows("equivariance", 0.9, 0.5), withTransform("noise", depthRows("equivariance", 0.9, 0.1))),
			[]string{"Equivariance is lowest under noise (0.100) and highest under turn (0.500).", "Equivariance under turn falls from 0.900 to 0.500, half of the fall by 100 % of depth."}},
		{"a transformation under which nothing falls is skipped", slices.Concat(depthRows("equivariance", 0.9, 0.9), withTransform("noise", depthRows("equivariance", 0.9, 0.1))),
			[]string{"Equivariance is lowest under noise (0.100) and highest under turn (0.900).", "Equivariance under noise falls from 0.900 to 0.100, half of the fall by 100 % of depth."}},
		{"a fall and a rise", depthRows("equivariance", 0.7, 0.4, 0.75), []string{"Equivariance under turn falls from 0.700 to 0.400, half of the fall by 50 % of depth, and rises again to 0.750."}},
		{"a rise of a distance", withTransform("turn", withMeasure("distance", depthRows("cosine", 0.1, 0.2, 0.7))), []string{"Cosine distance under turn rises from 0.100 to 0.700, half of the rise by 100 % of depth."}},
		{"a fall, a fall and rise, and no fall", slices.Concat(depthRows("equivariance", 0.9, 0.5, 0.3), withModel("k", depthRows("equivariance", 0.7, 0.4, 0.75)), withModel("l", depthRows("equivariance", 0.9, 0.9, 0.85))),
			[]string{"Whether one of 3 models is more robust cannot be said: the scores have no intervals.",
				"Equivariance under turn falls from 0.900 to 0.300 in m, half of the fall by 50 % of depth; from 0.700 to 0.400 in k, half of the fall by 50 % of depth, and rises again to 0.750; and does not clearly fall in l."}},
		{"scores that are NaN", slices.Concat(depthRows("equivariance", nan, nan), depthRows("invariance", nan, nan)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := conclude(c.rows); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// The note of a report's section on SEIS, a measure of layers with the statistics equivariance and
// invariance, advises a layer for localisation: of those whose equivariance exceeds its null (the
// value by chance), the one where it exceeds invariance most.
func TestSectionNote(t *testing.T) {
	t.Parallel()
	firstAtChance := depthRows("equivariance", 0.95, 0.9, 0.4)
	firstAtChance[0].Null = 0.96 // more than its value
	for _, c := range []struct {
		name string
		rows []scores.Row
		want string
	}{
		{"three layers", slices.Concat(depthRows("equivariance", 0.85, 0.9, 0.88), depthRows("invariance", 0.5, 0.2, 0.3)),
			"For tasks that need positions, such as detection, take layer 2 of 3 (equivariance 0.900, invariance 0.200): there equivariance is furthest above invariance, on average over the transformations."},
		{"a layer that is no better than its null is not taken", slices.Concat(firstAtChance, depthRows("invariance", 0.1, 0.2, 0.3)),
			"For tasks that need positions, such as detection, take layer 2 of 3 (equivariance 0.900, invariance 0.200): there equivariance is furthest above invariance, on average over the transformations."},
		{"no scores of invariance", depthRows("equivariance", 0.8, 0.9), ""},
	} {
		sections := Sections(c.rows, reporttest.Measures())
		if got := SectionNote(sections[0], c.rows).String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
