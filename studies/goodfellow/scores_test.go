package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/scores"
)

func TestStack(t *testing.T) {
	t.Parallel()
	got, err := stack("decays0.01,0,0.1/layer2")
	if err != nil || !slices.Equal(got, []float64{0.01, 0}) {
		t.Errorf("stack = %v, error %v; want 0.01 and 0", got, err)
	}
	if path(got) != "decays0.01,0" {
		t.Errorf("the stack is named %s, want %s", path(got), "decays0.01,0")
	}
	for _, bad := range []string{"decays0.01/layer2", "decays/layer1", "target-0.9/decay0/layer1", "decays0.1"} {
		if got, err := stack(bad); err == nil {
			t.Errorf("stack(%q) = %v, want an error", bad, got)
		}
	}
}

// TestStatistics checks that the values are scipy's: spearmanr, ttest_ind with equal_var=False, and
// t.ppf.
func TestStatistics(t *testing.T) {
	t.Parallel()
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	near("the rank correlation", rank([]float64{1, 2, 2, 5, 3}, []float64{2, 1, 4, 4, 9}), 0.605263157894737)
	a, b := []float64{3.1, 2.9, 3.6, 3.3, 3.0}, []float64{3.9, 3.5, 4.4, 3.7}
	near("the p-value", welch(a, b), 0.02700846021593839)
	mean, half := meanInterval(a)
	near("the mean", mean, 3.18)
	near("half of the interval", half, 0.34454777651513435)
}

func TestBestOfEachDepth(t *testing.T) {
	t.Parallel()
	row := func(layer, data string, value float64) scores.Row {
		return scores.Row{Model: "depth", Layer: layer, Data: data, Measure: "firing", Statistic: "invariance", Value: value}
	}
	rows := []scores.Row{
		row("decays0,0,0/layer1", "pan", 9), row("decays0,0,0/layer1", "turn", 1), row("decays0.1,0,0/layer1", "pan", 6), row("decays0.1,0,0/layer1", "turn", 6),
		row("decays0,0,0/layer2", "pan", 3), row("decays0,0.1,0/layer2", "pan", 4), row("decays0,0,0/layer3", "pan", 2),
		{Model: "depth", Layer: "decays0,0,0/layer3", Data: "pan", Measure: "firing", Statistic: "null"},
	}
	file := filepath.Join(t.TempDir(), "scores.csv")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := scores.WriteCSV(f, rows); err != nil {
		t.Fatal(err)
	}
	f.Close()
	best, err := plan{scores: []string{file}}.best()
	if err != nil {
		t.Fatal(err)
	}
	for d, want := range []string{"decays0.1", "decays0,0.1", "decays0,0,0"} {
		if path(best[d]) != want {
			t.Errorf("the best of depth %d is %s, want %s", d+1, path(best[d]), want)
		}
	}
	if _, err := (plan{}).best(); err == nil || !strings.Contains(err.Error(), "-scores") {
		t.Errorf("without scores: error %v, want one about -scores", err)
	}
}
