package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// TestCorrelateOverModels correlates two scores with accuracy over six models, which differ in the
// noise added to their weights, and checks the table, the rows and the figure. The scores are
// effective invariance (ei), how stable and confident predictions are under a transformation, and
// the Jensen-Shannon divergence (js) of the predictions. A flag --x has the form
// MEASURE.STATISTIC@TRANSFORM.
func TestCorrelateOverModels(t *testing.T) {
	dir := brokenFolder(t) // with the valid model good.onnx
	text := "name: zoo\ndata: {name: d, shapes: {n: 60, size: 16}}\nmeasures: [accuracy, effective-invariance, prediction-divergence]\ntransforms: {name: turn, rotate: {values: [90, 180]}}\nmodels:\n"
	for i := range 6 {
		name := fmt.Sprint("m", i)
		if code, message := call(t, "vary", filepath.Join(dir, "good.onnx"), "--noise", fmt.Sprint(0.3*float64(i+1)), "--seed", fmt.Sprint(i), "-o", filepath.Join(dir, name+".onnx")); code != 0 {
			t.Fatal(message)
		}
		text += fmt.Sprintf("  - {name: %s, onnx: %s.onnx, tags: {kind: %s}}\n", name, name, []string{"even", "odd"}[i%2])
	}
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", write(t, dir, "zoo.yaml", []byte(text)), "-o", run); code != 0 {
		t.Fatal(message)
	}
	csv, fig := filepath.Join(dir, "c.csv"), filepath.Join(dir, "c.svg")
	flags := []string{run, "--x", "effective-invariance.ei@turn", "--x", "prediction-divergence.js@turn", "--bootstrap", "60"}
	got, err := output(t, append([]string{"correlate", "--csv", csv}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "data") || strings.Count(lines[2], "/") != 2 {
		t.Errorf("the table is %q, want one row with r / rho of two scores", got)
	}
	file, err := os.Open(csv)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := scores.ReadCSV(file)
	// Six statistics of the correlation for each of the two scores.
	if err != nil || len(rows) != 12 || rows[0].Measure != "correlation" || rows[0].N != 6 {
		t.Errorf("%d rows, want 12 of correlations of 6 points; error %v: %+v", len(rows), err, rows)
	}
	if code, message := call(t, append([]string{"plot", "--chart", "scatter", "--group", "kind", "-o", fig}, flags...)...); code != 0 {
		t.Fatal(message)
	}
	drawn, _ := os.ReadFile(fig)
	for _, want := range []string{"to turn", "(js)", "even", "odd"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("the figure does not say %q", want)
		}
	}
	if got, err := output(t, "correlate", run, "--x", "effective-invariance.ei@turn", "--model", "m[0-4]", "--bootstrap", "60", "--json"); err != nil || !strings.Contains(got, `"n": 5,`) {
		t.Errorf("five of the models give %.200s, want n of 5; error %v", got, err)
	}
	// A model apart takes no part in the fit, and is above or below the line of the others.
	got, err = output(t, "correlate", run, "--x", "effective-invariance.ei@turn", "--apart", "m[05]", "--bootstrap", "60", "--json")
	var apart []struct {
		N     int
		Apart []struct {
			Label     string
			X, Y      float64
			Deviation struct{ Value, Low, High *float64 }
		}
		Intercept, Slope float64
	}
	if err != nil || json.Unmarshal([]byte(got), &apart) != nil || len(apart) != 1 || apart[0].N != 4 || len(apart[0].Apart) != 2 {
		t.Fatalf("two models apart give %s, %v", got, err)
	}
	for _, p := range apart[0].Apart {
		// The line is on the logit scale.
		want := p.Y - 1/(1+math.Exp(-apart[0].Intercept-apart[0].Slope*p.X))
		if d := p.Deviation; d.Value == nil || math.Abs(*d.Value-want) > 0.02 || d.Low == nil || *d.Low > *d.Value || *d.High < *d.Value {
			t.Errorf("%s is %+v from the line, want about %g", p.Label, d, want)
		}
	}
	if got, err := output(t, "correlate", run, "--x", "effective-invariance.ei@turn", "--apart", "m5", "--bootstrap", "60"); err != nil || !strings.Contains(got, "d, m5") || !strings.Contains(got, "above the line") {
		t.Errorf("a model apart prints %q, %v", got, err)
	}
	if code, message := call(t, "correlate", run, "--x", "a.b@turn", "--csv", csv); code != 1 || !strings.Contains(message, "no score matches a.b@turn") {
		t.Errorf("exit %d: %s, want exit 1 and a message with %q", code, message, "no score matches a.b@turn")
	}
}

// TestCorrelationsFit prints correlations, predictions and comparisons of arrays in 80 columns.
// Names that are too long are written below their rows and shortened, and decimal points are
// aligned. Units counts the groups of points that are independent of each other.
func TestCorrelationsFit(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a-long-name-of-a-test-set-", 4)
	around := func(v float64) interval { return interval{number(v), number(v - 0.1), number(v + 0.1)} }
	var results []correlationResult
	for i, x := range []string{"effective-invariance.ei@rotation", "prediction-divergence.js@rotation"} {
		results = append(results, correlationResult{By: "model", Of: name, X: x, Y: "accuracy.clean", N: 12 * (1 + 10*i), Units: 5, Pearson: around(0.5), Spearman: around(math.NaN()),
			MeanAbsoluteError: number([]float64{0.0125, 12.5}[i]), Predicted: []predicted{{name, 0.5, around([]float64{0.75, 12.25}[i])}}})
	}
	for what, write := range map[string]func(w io.Writer){
		"correlations": func(w io.Writer) { printCorrelations(w, results, 80) },
		"columns":      func(w io.Writer) { printColumns(w, results, 80) },
		"comparison": func(w io.Writer) {
			printComparison(w, []measure.Score{{Statistic: "linear-cka", Value: 0.5, Low: 0.25, High: 1, Null: 1e-5, N: 10}, {Statistic: "procrustes-distance", Value: 123.25, Low: math.NaN(), High: math.NaN(), Null: math.NaN(), N: 1000}}, 80)
		},
	} {
		var out strings.Builder
		write(&out)
		text := out.String()
		pointColumns := map[int]bool{} // of decimal points
		for line := range strings.Lines(text) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: a line of %d columns in a terminal of 80: %q", what, n, line)
			}
			for _, value := range []string{"123.25", "0.5 "} {
				if at := strings.Index(line, value); at >= 0 && what == "comparison" {
					pointColumns[ansi.StringWidth(line[:at])+strings.Index(value, ".")] = true
				}
			}
		}
		if what == "comparison" && len(pointColumns) != 1 {
			t.Errorf("%s: decimal points in the columns %v:\n%s", what, pointColumns, text)
		}
		if what != "comparison" && !strings.Contains(text, "…") {
			t.Errorf("%s: no name is shortened:\n%s", what, text)
		}
	}
}
