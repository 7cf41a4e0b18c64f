package figure

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// disentanglementRows returns scores of disentanglement: how the error (RMSE) of probes, here
// multi-layer perceptrons (mlp) that predict two factors (properties of samples) from a layer,
// changes when samples are transformed: in each quarter of the ranges of two transformations, and
// over each whole range. The parameter is the middle of the quarter, or "" for the whole range.
func disentanglementRows() []scores.Row {
	var rows []scores.Row
	for f, factor := range []string{"hue", "value"} {
		for t, transform := range []string{"hue-shift", "gain"} {
			for q, part := range [][]string{{"-0.1", "-0.05", "0.05", "0.1", ""}, {"10", "-30", "-10", "30", ""}}[t] {
				rows = append(rows, scores.Row{Model: "net", Layer: "pooled", Depth: 9, Data: "d", Transform: transform, Parameter: part, Measure: "disentanglement",
					Variant: "mlp", Factor: factor, Statistic: "rmse-change", Value: 0.1*float64(q) + 0.01*float64(f+2*t), Low: 0, High: 1, Null: 0, N: 40})
			}
		}
	}
	return rows
}

// A matrix of factors under transformations has a column for each quarter of the range of the
// transformation, in numerical order. The quarters are named – –, –, + and + +, the lowest first.
func TestMatrixOfQuarters(t *testing.T) {
	t.Parallel()
	// svg draws a figure as SVG, and textsOf returns the texts in it.
	text := textsOf(t, svg(t, disentanglementRows(), Options{Measures: reporttest.Measures(), Chart: Heat, Columns: 2}))
	all := strings.Join(text, "|")
	for _, want := range []string{"hue under hue-shift", "value under hue-shift", "hue under gain", "value under gain", "part of the range", "– –|–|+|+ +"} {
		if !strings.Contains(all, want) {
			t.Errorf("the figure lacks %q: %q", want, text)
		}
	}
	sides := report.Sides{Down: "pair", Across: "part"}
	rows := sides.Rows(disentanglementRows()) // without whole ranges, in the order of the parts
	if len(rows) != 16 {
		t.Fatalf("%d rows of parts, want 16", len(rows))
	}
	for i, r := range rows {
		if want := []string{"– –", "–", "+", "+ +"}[i/4]; r.Parameter != want {
			t.Errorf("row %d is of part %q, want %q", i, r.Parameter, want)
		}
	}
	// -30, which comes second in the rows, is the lowest quarter of gain.
	i := slices.IndexFunc(rows, func(r scores.Row) bool { return r.Transform == "gain" && r.Factor == "hue" })
	if r := rows[i]; fmt.Sprintf("%.2f", r.Value) != "0.12" {
		t.Errorf("the lowest quarter of gain has the value %v, want 0.12", r.Value)
	}
	three := slices.DeleteFunc(disentanglementRows(), func(r scores.Row) bool { return r.Parameter == "30" || r.Parameter == "0.1" })
	if rows = sides.Rows(three); rows[0].Parameter != "1" || rows[len(rows)-1].Parameter != "3" {
		t.Errorf("three parts are named from %q to %q, want 1 to 3", rows[0].Parameter, rows[len(rows)-1].Parameter)
	}
}

// Heat maps whose options name other axes are not divided into parts of ranges.
func TestMatrixOfFactorsByTransformations(t *testing.T) {
	t.Parallel()
	text := textsOf(t, svg(t, disentanglementRows(), Options{Measures: reporttest.Measures(), Chart: Heat, Across: "transform", Down: "factor", Columns: 2}))
	if slices.Contains(text, "+ +") || !slices.Contains(text, "hue") {
		t.Errorf("the figure has the texts %q, want factors and no parts", text)
	}
}
