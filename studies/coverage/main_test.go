package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestCoverageCountsIntervalsWithTheMean checks that of intervals of width 2 around 0, 1, 2, 3 and
// 4 those around 1, 2 and 3 contain the mean.
func TestCoverageCountsIntervalsWithTheMean(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for i := range 5 {
		v := float64(i)
		rows = append(rows, scores.Row{Measure: "m", Statistic: "s", Value: v, Low: v - 1, High: v + 1})
	}
	c := coverageOf(rows)
	if c.sets != 5 || c.mean != 2 || math.Abs(c.covered-0.6) > 1e-12 || math.Abs(c.width-1/(1.96*math.Sqrt(2.5))) > 1e-12 || c.widthVariation != 0 {
		t.Errorf("coverage %+v, want 3 of 5 intervals with the mean 2, all of one width", c)
	}
	var out bytes.Buffer
	rows = append(rows, scores.Row{Measure: "m", Statistic: "none", Low: math.NaN(), High: math.NaN()})
	if err := write(&out, rows); err != nil || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "| 5 | 2.0000 |") || !strings.Contains(out.String(), "| 60 % |") {
		t.Errorf("error %v, want a table with one line, 5 sets and 60 %%; it is\n%s", err, out.String())
	}
}

func TestSetsShareNoImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := make([]byte, 12*record)
	for i := range 12 {
		data[i*record] = byte(i)
	}
	file := filepath.Join(dir, "batch.bin")
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "sets")
	if err := run([]string{"sets", "-n", "4", "-sets", "3", "-model", "m.onnx", "-o", out, file}, nil); err != nil {
		t.Fatal(err)
	}
	seen := map[byte]bool{}
	for _, name := range []string{"000.bin", "001.bin", "002.bin"} {
		set, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || len(set) != 4*record {
			t.Fatalf("%s has %d bytes (error %v), want %d", name, len(set), err, 4*record)
		}
		for i := range 4 {
			seen[set[i*record]] = true
		}
	}
	if len(seen) != 12 {
		t.Errorf("the sets have %d different images, want 12", len(seen))
	}
	if err := run([]string{"sets", "-n", "5", "-sets", "3", "-o", out, file}, nil); err == nil {
		t.Error("no error where there are too few images")
	}
}
