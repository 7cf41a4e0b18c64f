package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestCorrelateOverModels checks that two scores of models with different accuracy, made with
// noise, are correlated, drawn and written as rows.
func TestCorrelateOverModels(t *testing.T) {
	dir := brokenFolder(t)
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
		t.Errorf("the table is %q, want one row with two columns", got)
	}
	file, err := os.Open(csv)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := scores.ReadCSV(file)
	if err != nil || len(rows) != 12 || rows[0].Measure != "correlation" || rows[0].N != 6 {
		t.Errorf("%d rows, %v: %+v", len(rows), err, rows)
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
		t.Errorf("five of the models: %v %.200s", err, got)
	}
	if code, message := call(t, "correlate", run, "--x", "a.b@turn", "--csv", csv); code != 1 || !strings.Contains(message, "no score matches a.b@turn") {
		t.Errorf("exit %d: %s", code, message)
	}
}
