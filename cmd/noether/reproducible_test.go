package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
)

// TestRunsAreReproducible checks that runs of a study with the same number of threads have the same
// scores and intervals to the bit, although their goroutines end in different orders and their
// intermediate states, such as running sums, are saved at different times (--save-every).
// "per: trial" draws the translation once for all samples.
func TestRunsAreReproducible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t)
	for _, name := range []string{"one", "other"} {
		testmodel.Write(t, dir, name, testmodel.Options{Size: 32})
	}
	study := write(t, dir, "study.yaml", []byte(`name: reproducible
data: [{name: shapes, shapes: {n: 120, size: 32}}]
models: [{name: one, onnx: one.onnx, layers: [all]}, {name: other, onnx: other.onnx, layers: [all]}]
transforms: [{rotate: {values: [10, 20]}}, {translate: [-0.2, 0.2], per: trial}]
measures: [accuracy, effective-invariance, prediction-divergence, distance, seis, firing, similarity: {between: all}]
batch: 16
`))
	var want []byte
	for i, interval := range []string{"1m", "1ms", "1m", "20ms"} {
		out := filepath.Join(dir, fmt.Sprint(i))
		cmd := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--threads", "4", "--save-every", interval)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		got, err := os.ReadFile(filepath.Join(out, "scores.csv"))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case want == nil:
			want = got
		case !bytes.Equal(got, want):
			t.Errorf("states saved every %s: %s", interval, firstDifference(got, want))
		}
	}
}

// TestLastCellIsReproducible checks that a resumed run with one unfinished cell has the scores of
// an uninterrupted run to the bit. A cell that is computed alone must not get more BLAS threads
// than beside others.
func TestLastCellIsReproducible(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "run")
	program := buildProgram(t)
	testmodel.Write(t, dir, "small", testmodel.Options{Size: 16})
	study := write(t, dir, "study.yaml", []byte(`name: last
data: [{name: shapes, shapes: {n: 600, size: 16}}]
models: [{name: small, onnx: small.onnx, layers: [conv]}]
transforms: [{rotate: {values: [10, 20]}}]
measures: [seis]
`))
	run := func() []byte {
		if text, err := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--threads", "2").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		got, err := os.ReadFile(filepath.Join(out, "scores.csv"))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := run()
	cells := cellKeys(t, out)
	if len(cells) != 2 {
		t.Fatalf("%d cells, want 2", len(cells))
	}
	for _, cell := range cells {
		removeCells(t, out, cell)
		if got := run(); !bytes.Equal(got, want) {
			t.Errorf("without %s: %s", cell, firstDifference(got, want))
		}
	}
}

// firstDifference returns the first lines in which two texts differ.
func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(x), len(y))
}
