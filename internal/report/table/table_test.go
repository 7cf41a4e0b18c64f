package table

import (
	"encoding/csv"
	"math"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// exampleRows returns scores of two models under two transformations: effective invariance, the
// accuracy on untransformed data, which is the same under both, and a distance at one layer.
func exampleRows() []scores.Row {
	nan := math.NaN()
	var rows []scores.Row
	for i, model := range []string{"resnet_20", "vit"} {
		for j, transform := range []string{"gray", "tilt"} {
			base := scores.Row{Model: model, Depth: scores.NoDepth, Data: "d", Transform: transform, Null: nan, N: 100}
			ei, clean := base, base
			ei.Measure, ei.Statistic, ei.Value, ei.Low, ei.High = "effective-invariance", "ei", 0.5+0.1*float64(i)+0.01*float64(j), 0.4, 0.7
			clean.Measure, clean.Statistic, clean.Value, clean.Low, clean.High = "accuracy", "clean", 0.8+0.05*float64(i), nan, nan
			layer := base
			layer.Measure, layer.Statistic, layer.Layer, layer.Depth = "distance", "cosine", "relu", 3
			rows = append(rows, ei, clean, layer)
		}
	}
	return rows
}

// written returns the text of a table of scores that write, a method for one format, writes.
func written(t *testing.T, rows []scores.Row, o Options, write func(*Table, *strings.Builder) error) string {
	t.Helper()
	table, err := Of(rows, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := write(table, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	got := written(t, exampleRows(), Options{Measures: reporttest.Measures()}, func(t *Table, b *strings.Builder) error { return t.Markdown(b) })
	want := `| model | accuracy | gray: effective invariance | tilt: effective invariance |
| --- | ---: | ---: | ---: |
| resnet\_20 | 0.800 | 0.500 [0.400, 0.700] | 0.510 [0.400, 0.700] |
| vit | 0.850 | 0.600 [0.400, 0.700] | 0.610 [0.400, 0.700] |
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestLaTeX writes a table without intervals (Plain).
func TestLaTeX(t *testing.T) {
	t.Parallel()
	got := written(t, exampleRows(), Options{Measures: reporttest.Measures(), Plain: true}, func(t *Table, b *strings.Builder) error { return t.LaTeX(b) })
	want := `% \usepackage{booktabs}
\begin{tabular}{lrrr}
\toprule
& \multicolumn{1}{c}{} & \multicolumn{1}{c}{gray} & \multicolumn{1}{c}{tilt} \\
\cmidrule(lr){3-3} \cmidrule(lr){4-4}
model & accuracy & effective invariance & effective invariance \\
\midrule
resnet\_20 & 0.800 & 0.500 & 0.510 \\
vit & 0.850 & 0.600 & 0.610 \\
\bottomrule
\end{tabular}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	got := written(t, exampleRows(), Options{Measures: reporttest.Measures()}, func(t *Table, b *strings.Builder) error { return t.CSV(b) })
	lines, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(lines) != 3 || lines[2][3] != "0.610 [0.400, 0.700]" {
		t.Errorf("error %v, lines %q; want 3 lines", err, lines)
	}
}

// Hostile names are escaped in each format, and a missing score is a dash.
func TestHostileAndMissing(t *testing.T) {
	t.Parallel()
	rows := exampleRows()
	for i := range rows {
		if rows[i].Model == "vit" {
			rows[i].Model = `a|b<script>\input{/etc/passwd}$&` + "\x1b\n"
		}
	}
	rows = rows[1:] // the first model lacks a score
	md := written(t, rows, Options{Measures: reporttest.Measures()}, func(t *Table, b *strings.Builder) error { return t.Markdown(b) })
	if strings.Contains(md, "<script>") || strings.Contains(md, "\x1b") || strings.Count(md, "\n") != 4 || !strings.Contains(md, `a\|b`) || !strings.Contains(md, "–") {
		t.Errorf("the Markdown is %q, want four lines with escaped names", md)
	}
	tex := written(t, rows, Options{Measures: reporttest.Measures()}, func(t *Table, b *strings.Builder) error { return t.LaTeX(b) })
	if strings.Contains(tex, `\input{`) || !strings.Contains(tex, `\textbackslash{}input\{`) || !strings.Contains(tex, " -- ") {
		t.Errorf("the LaTeX is %q, want escaped names", tex)
	}
	if _, err := Of(nil, Options{Measures: reporttest.Measures()}); err == nil {
		t.Error("a table without scores: no error")
	}
}

// Each layer has a line if there are no scores of whole models.
func TestLayers(t *testing.T) {
	t.Parallel()
	rows, err := scores.Filter{Measure: []string{"distance"}}.Rows(exampleRows())
	if err != nil {
		t.Fatal(err)
	}
	rows[1].Layer = "relu2" // of the first model under tilt
	table, err := Of(rows, Options{Measures: reporttest.Measures()})
	if err != nil || strings.Join(table.Labels, ",") != "model,layer" || len(table.Lines) != 3 {
		t.Errorf("error %v, table %+v; want 3 lines labelled by model and layer", err, table)
	}
}
