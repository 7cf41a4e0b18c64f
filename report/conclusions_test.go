package report

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	ei := func(model, transform string, value float64) scores.Row {
		return predictionRow(model, transform, "effective-invariance", "ei", value, 0.01)
	}
	of := func(model string, rows []scores.Row) []scores.Row {
		for i := range rows {
			rows[i].Model = model
		}
		return rows
	}
	chance := depthRows("equivariance", 0.95, 0.9, 0.4)
	chance[0].Null = 0.96
	for _, c := range []struct {
		name string
		rows []scores.Row
		want []string
	}{
		{"nothing", nil, nil},
		{"one model", []scores.Row{ei("m", "turn", 0.6)}, nil},
		{"beyond doubt", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.7)},
			[]string{"k is more invariant than m under turn: effective invariance 0.700 against 0.600, more than their intervals."}},
		{"in doubt", []scores.Row{ei("m", "turn", 0.614), ei("k", "turn", 0.61)},
			[]string{"Which of 2 models is the more invariant under turn is open: m leads with effective invariance 0.614 against 0.610, a difference within their intervals."}},
		{"overlapping intervals that tell apart", []scores.Row{ei("m", "turn", 0.616), ei("k", "turn", 0.6)},
			[]string{"m is more invariant than k under turn: effective invariance 0.616 against 0.600, more than their intervals."}},
		{"a tie", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.6)}, nil},
		{"no intervals", []scores.Row{predictionRow("m", "turn", "effective-invariance", "ei", 0.6, nan), predictionRow("k", "turn", "effective-invariance", "ei", 0.7, nan)},
			[]string{"Which of 2 models is the more invariant under turn is open: k leads with effective invariance 0.700 against 0.600, a difference within their intervals."}},
		{"several transformations", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.7), ei("m", "blur", 0.6), ei("k", "blur", 0.605), ei("m", "grey", 0.9), ei("k", "grey", 0.8)},
			[]string{"k is more invariant than m in 2 of 3 cases, in 1 by more than their intervals; under turn it has effective invariance 0.700 against 0.600."}},
		{"several transformations in doubt", []scores.Row{ei("m", "turn", 0.6), ei("k", "turn", 0.601), ei("m", "blur", 0.6), ei("k", "blur", 0.602)},
			[]string{"Which of 2 models is the most invariant is open: k leads in 2 of 2 cases, in none of them by more than their intervals."}},
		{"three models by a divergence", []scores.Row{
			predictionRow("m", "turn", "prediction-divergence", "js", 0.3, 0.01), predictionRow("k", "turn", "prediction-divergence", "js", 0.1, 0.01),
			predictionRow("l", "turn", "prediction-divergence", "js", 0.2, 0.01)},
			[]string{"k is the most invariant of 3 models under turn: Jensen-Shannon divergence 0.100 against 0.200 of l, more than their intervals."}},
		{"a loss", depthRows("equivariance", 0.8, 0.9, 0.7, 0.5, 0.3),
			[]string{"Half of the loss of equivariance under turn has happened by d (depth 3; 0.900 to 0.300)."}},
		{"no loss", depthRows("equivariance", 0.8, 0.9, 0.85), nil},
		{"losses", slices.Concat(depthRows("equivariance", 0.9, 0.5, 0.3), of("k", depthRows("equivariance", 0.9, 0.8, 0.3))),
			[]string{"Half of the loss of equivariance under turn has happened by b in m (depth 1; 0.900 to 0.300) and by c in k (depth 2; 0.900 to 0.300)."}},
		{"a layer for localisation", slices.Concat(depthRows("equivariance", 0.85, 0.9, 0.88), depthRows("invariance", 0.5, 0.2, 0.3)),
			[]string{"To localise, take b (equivariance 0.900, invariance 0.200): there equivariance is furthest above invariance, on average over the transformations."}},
		{"a layer by chance is none", slices.Concat(chance, depthRows("invariance", 0.1, 0.2, 0.3)),
			[]string{"Half of the loss of equivariance under turn has happened by c (depth 2; 0.950 to 0.400).",
				"To localise, take b (equivariance 0.900, invariance 0.200): there equivariance is furthest above invariance, on average over the transformations."}},
		{"no numbers", slices.Concat(depthRows("equivariance", nan, nan), depthRows("invariance", nan, nan)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := Conclusions(c.rows, reporttest.Measures()); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}
