package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// TestStack checks the names of the networks of depth.onnx, which are stacks of autoencoders:
// decays0.01,0,0.1/layer2 is the second layer of a stack whose layers were trained with these
// weight decays. stack returns the decays up to the layer.
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
// t.ppf. The interval of the difference is from a numerical integral of the t distribution.
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
	value, half := resample.Welch(a, b)
	near("the difference", value, 0.695)
	near("half of the interval of the difference", half, 0.5798503904470147)
	mean, half := resample.Student(a)
	near("the mean", mean, 3.18)
	near("half of the interval", half, 0.34454777651513435)
}

// TestCorrelationOfEachTraining checks the rank correlation of the tests pan and turn (images under
// a moving camera). A cell is a target activation and a weight decay with which several networks
// were trained, and a correlation is over one network of each cell. The scores of the first
// training give 1, and those of the second -1.
func TestCorrelationOfEachTraining(t *testing.T) {
	t.Parallel()
	tab := table{}
	for i, decay := range ridgeDecays[:4] {
		for number, sign := range []float64{1, -2} {
			layer := fmt.Sprintf("%s/training%d/layer1", cell(targets[1], decay), number+1)
			tab.add(scores.Row{Model: "ridge", Layer: layer, Data: "pan", Value: float64(i)})
			tab.add(scores.Row{Model: "ridge", Layer: layer, Data: "turn", Value: sign * float64(i*i)})
		}
	}
	got := tab.correlationOfEachTraining("pan", "turn")
	if len(got) != 2 || math.Abs(got[0]-1) > 1e-12 || math.Abs(got[1]+1) > 1e-12 {
		t.Errorf("correlations %v, want 1 and -1", got)
	}
	found := 0
	for _, r := range tab.correlations() {
		if r.statistic != "in one training" {
			continue
		}
		found++
		if r.value != "0.00" || r.low != "-1.00" || r.high != "1.00" {
			t.Errorf("mean %s [%s, %s], want 0 and an interval within -1 and 1", r.value, r.low, r.high)
		}
	}
	if found != 1 {
		t.Errorf("%d means over trainings, want 1, of turn and pan", found)
	}
}

// TestBestOfEachDepth checks that best selects, for each depth, the stack with the highest mean
// over the tests (here pan and turn: images under a moving camera). As in TestStack, a stack is
// named by its weight decays. One row is of the null, the value that chance alone gives.
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

// TestGrids checks that the best of each depth is that of each grid of decays alone: a network with
// 1e-5 is in the paper's grid only, one with 0.3 in the other only.
func TestGrids(t *testing.T) {
	t.Parallel()
	scored := table{}
	for layer, pan := range map[string]float64{"decays0.3,0,0/layer1": 5, "decays1e-05,0,0/layer1": 3, "decays0,0,0/layer1": 4,
		"decays0.3,1e-05,0/layer2": 9, "decays0,1e-05,0/layer2": 7, "decays0,0,0/layer2": 6} {
		scored.add(scores.Row{Model: "depth", Layer: layer, Data: "pan", Statistic: "invariance", Value: pan})
	}
	list, err := scored.depths()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range list {
		got[strings.Join(append(r.keys, r.statistic), " / ")] = r.value
	}
	want := map[string]string{"with 0.3 / 1 / 0.3 / best": "5.0", "of the paper / 1 / 0 / best": "4.0", "with 0.3 / 1 / 0.3 / networks": "2",
		"with 0.3 / 2 / 0, 0 / best": "6.0", "of the paper / 2 / 0, 1e-05 / best": "7.0", "of the paper / 2 / 0, 1e-05 / networks": "2"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %s", key, got[key], value)
		}
	}
}

// TestBeliefTable checks that the change from layer 1 to layer 2 of the belief networks (cdbn) is
// the mean of the changes within networks, +100 % and 0 %, not the change of the means, 25 to 30.
func TestBeliefTable(t *testing.T) {
	t.Parallel()
	scored := table{}
	for network, pan := range map[string][2]float64{"cdbn/seed-1": {10, 20}, "cdbn/seed-2": {40, 40}} {
		for i, layer := range []string{"layer1", "layer2"} {
			scored.add(scores.Row{Model: network, Layer: layer, Data: "pan", Statistic: "invariance", Value: pan[i]})
		}
	}
	scored.add(scores.Row{Model: "depth", Layer: "decays0/layer1", Data: "pan", Statistic: "invariance", Value: 1})
	networks := scored.belief()
	if !slices.Equal(networks, []string{"cdbn/seed-1", "cdbn/seed-2"}) {
		t.Fatalf("the belief networks are %v, want those of seeds 1 and 2", networks)
	}
	got := map[string]string{}
	for _, r := range scored.beliefTable(networks) {
		if r.keys[0] == "pan" {
			got[r.statistic] = r.value
		}
	}
	for statistic, want := range map[string]string{"layer 1": "25.0", "layer 2": "30.0", "change in percent": "50"} {
		if got[statistic] != want {
			t.Errorf("%s is %q, want %s", statistic, got[statistic], want)
		}
	}
}

// TestScoresOfEachTarget checks that the first training, which selects the best weight decay of a
// target activation, does not count for the scores. A decay with fewer than two other scores has
// none.
func TestScoresOfEachTarget(t *testing.T) {
	t.Parallel()
	scored := table{}
	for _, c := range []struct {
		decay  float64
		values []float64
	}{{0, []float64{1, 5, 7}}, {0.1, []float64{9, 3, 4}}, {3, []float64{2, math.NaN(), 1}}} {
		for i, v := range c.values {
			scored.add(scores.Row{Model: "ridge", Layer: fmt.Sprintf("%s/training%d/layer1", cell(-0.9, c.decay), i+1), Data: "pan", Statistic: "invariance", Value: v})
		}
	}
	got := map[string]string{}
	for _, r := range scored.rows() {
		if r.keys[0] == "-0.9" {
			got[r.statistic] = r.value
		}
	}
	for name, want := range map[string]string{"best decay": "0.1", "score without decay": "6.0", "score at the best decay": "3.5", "score at decay 3": ""} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// TestClasses checks the table of the mutual information between units and classes: that networks
// are counted by kind, and that those without a value are left out. Kinds are autoencoders of one
// layer (ridge), stacks of them (depth) and belief networks (cdbn). Null is the value for shuffled
// labels.
func TestClasses(t *testing.T) {
	t.Parallel()
	scored := table{}
	for _, c := range []struct {
		model, layer string
		value        float64
	}{
		{"ridge", "targetnone/decay0/training1/layer1", 0.25}, {"ridge", "targetnone/decay1/training1/layer1", 0.75},
		{"depth", "decays0/layer1", 0.5}, {"depth", "decays0,1/layer2", math.NaN()},
		{"cdbn/seed-1", "layer1", 0.125}, {"cdbn/seed-1", "layer2", 0.5}, {"cdbn/seed-2", "layer1", 0.375}, {"cdbn/seed-2", "layer2", 0.5},
	} {
		scored.add(scores.Row{Model: c.model, Layer: c.layer, Data: "cifar10", Statistic: "mutual-information", Value: c.value, Null: 0.0625})
	}
	list := scored.classes()
	got := map[string]string{}
	for _, r := range list {
		got[r.keys[0]+" "+r.statistic] = r.value
	}
	for name, want := range map[string]string{
		"one layer mutual information": "0.5000", "one layer lowest and highest": "0.2500, 0.7500", "one layer networks": "2",
		"stacks, depth 1 mutual information": "0.5000", "stacks, depth 2 networks": "",
		"belief networks, layer 1 mutual information": "0.2500", "belief networks, layer 2 shuffled labels": "0.0625",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
