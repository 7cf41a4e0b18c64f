//go:build unix

package main

import (
	"context"
	"maps"
	"testing"
)

func TestParseBenchmark(t *testing.T) {
	t.Parallel()
	m, err := parseBenchmark("goos: linux\nBenchmarkTapsAll-2 \t 10\t 116000000 ns/op\t 68.7 images/s\t 643 peak-MiB\nPASS\n")
	if err != nil || !maps.Equal(m, metrics{"ns/op": 116e6, "s/op": 0.116, "images/s": 68.7, "peak-MiB": 643}) {
		t.Errorf("%v, error %v; want the four metrics", m, err)
	}
	for _, out := range []string{"", "PASS", "BenchmarkA 1 2 ns/op\nBenchmarkB 1 2 ns/op\n", "BenchmarkA 1 x ns/op\n"} {
		if m, err := parseBenchmark(out); err == nil {
			t.Errorf("parseBenchmark(%q) = %v, want an error", out, m)
		}
	}
}

// fake returns a source with the given values as the metric v, one for each run, and ten times that
// as the metric peak.
func fake(values ...float64) *source {
	return &source{func(context.Context, *runner) (metrics, error) {
		v := values[0]
		values = values[1:]
		return metrics{"v": v, "peak": 10 * v}, nil
	}}
}

// A row of a table compares the medians over three rounds of a peer and of Noether. Each is a cell.
// A peer may be measured once only, or not at all: errSkip reports that it cannot run on this
// machine.
func TestMeasure(t *testing.T) {
	t.Parallel()
	skipped := &source{func(context.Context, *runner) (metrics, error) { return nil, errSkip }}
	shared := fake(1, 2, 3)
	tab := table{Columns: []string{"work"}, Rows: []row{
		{Text: map[string]string{"work": "rates"}, Ratios: []string{"ratio"}, Cells: []cell{
			{Column: "peer", from: fake(2, 4, 3), Metric: "v", Unit: "images/s"},
			{Column: "Noether", from: fake(6, 9, 7), Metric: "v", Unit: "images/s", Memory: "peak"}}},
		{Text: map[string]string{"work": "times"}, Ratios: []string{"ratio"}, Cells: []cell{
			{Column: "peer", from: fake(30), Metric: "v", Unit: "s", Once: true},
			{Column: "Noether", from: fake(10, 10, 10), Metric: "v", Unit: "s"}}},
		{Text: map[string]string{"work": "alone"}, Ratios: []string{"ratio"}, Cells: []cell{
			{Column: "peer", from: skipped, Metric: "v", Unit: "s"},
			{Column: "Noether", from: fake(1, 1, 1), Metric: "v", Unit: "s"}}},
		{Text: map[string]string{"work": "rivals"}, Ratios: []string{"ratio"}, Cells: []cell{
			{Column: "peer", from: fake(30, 30, 30), Metric: "v", Unit: "s"},
			{Column: "Noether", from: fake(10, 10, 10), Metric: "v", Unit: "s"},
			{Column: "faster", from: fake(20, 20, 20), Metric: "v", Unit: "s", Rival: true},
			{Column: "slower", from: fake(40, 40, 40), Metric: "v", Unit: "s", Rival: true}}},
		{Text: map[string]string{"work": "one source"}, Cells: []cell{
			{Column: "time", from: shared, Metric: "v", Unit: "s"},
			{Column: "peak", from: shared, Metric: "peak", Unit: "s"}}},
	}}
	got, err := tab.measure(t.Context(), nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]measurement{
		{"work": {Text: "rates"}, "rounds": {Value: "3"}, "ratio": {Value: "2.33"},
			"peer":    {Value: "3.00", Unit: "images/s", Low: "2.00", High: "4.00"},
			"Noether": {Value: "7.00", Unit: "images/s", Low: "6.00", High: "9.00", Memory: "90 MiB"}},
		{"work": {Text: "times"}, "rounds": {Value: "3"}, "ratio": {Value: "3.00"},
			"peer": {Value: "30.0", Unit: "s"}, "Noether": {Value: "10.0", Unit: "s"}},
		{"work": {Text: "alone"}, "rounds": {Value: "3"}, "Noether": {Value: "1.00", Unit: "s"}},
		{"work": {Text: "rivals"}, "rounds": {Value: "3"}, "ratio": {Value: "2.00"}, "peer": {Value: "30.0", Unit: "s"},
			"Noether": {Value: "10.0", Unit: "s"}, "faster": {Value: "20.0", Unit: "s"}, "slower": {Value: "40.0", Unit: "s"}},
		{"work": {Text: "one source"}, "rounds": {Value: "3"}, "time": {Value: "2.00", Unit: "s", Low: "1.00", High: "3.00"},
			"peak": {Value: "20.0", Unit: "s", Low: "10.0", High: "30.0"}},
	} {
		if !maps.Equal(got.Rows[i], want) {
			t.Errorf("row %d: %v, want %v", i, got.Rows[i], want)
		}
	}
}

// TestDigits checks that numbers have three significant digits, or all digits before the point.
func TestDigits(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0: "0", 0.12345: "0.123", 1.2: "1.20", 68.74: "68.7", 298.4: "298", 19932: "19932"} {
		if got := digits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// Without names, all tables but those marked as slow are chosen. "gpu" is the name of a table.
func TestChoose(t *testing.T) {
	t.Parallel()
	tables, err := readTables()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := choose(tables, nil); err != nil || len(all) == 0 || len(all) == len(tables) {
		t.Errorf("without names: %d of %d tables, error %v; want some of them, not all", len(all), len(tables), err)
	}
	if one, err := choose(tables, []string{"gpu"}); err != nil || len(one) != 1 {
		t.Errorf("%d tables, error %v; want 1", len(one), err)
	}
	if _, err := choose(tables, []string{"tsaks"}); err == nil {
		t.Error("an unknown table is accepted")
	}
}

// TestTables checks that every text and cell of a row has a column in its table, and that every
// cell has a source and a metric.
func TestTables(t *testing.T) {
	t.Parallel()
	tables, err := readTables()
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range tables {
		columns := map[string]bool{}
		for _, c := range tab.Columns {
			columns[c] = true
		}
		for _, r := range tab.Rows {
			for c := range r.Text {
				if !columns[c] {
					t.Errorf("%s: no column %q", tab.Name, c)
				}
			}
			for _, c := range r.Cells {
				if !columns[c.Column] || c.from == nil || c.Metric == "" {
					t.Errorf("%s: cell %+v, want a column of the table, a source and a metric", tab.Name, c)
				}
			}
		}
	}
}
