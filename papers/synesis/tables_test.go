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

// The kind of a network is how it was trained: the setting in its name that is not the seed.
func TestKind(t *testing.T) {
	t.Parallel()
	for network, want := range map[string]string{
		"images/seed-1-augment-plain": "plain", "speech/seed-12-label-speaker": "speaker", "speech/label-digit-seed-3": "digit", "adversarial/seed-2": "adversarial", "autoencoder": "autoencoder",
	} {
		if got := kind(network); got != want {
			t.Errorf("%s is of the kind %q, want %q", network, got, want)
		}
	}
}

// rows are the scores of a small study: three networks of each of two kinds of training, plain and
// colour augmentation. Informativeness is how well a probe, a small network trained on the layer's
// vectors, predicts a factor of the images, here the hue. There are two probes, slp (single-layer
// perceptron) and mlp (multi-layer perceptron). The null is the error that chance alone gives.
func rows() []scores.Row {
	row := func(model, variant string, value float64) scores.Row {
		return scores.Row{Study: "small", Model: model, Layer: "p", Measure: "informativeness", Factor: "hue", Variant: variant, Statistic: "rmse", Value: value, Null: 0.5}
	}
	var out []scores.Row
	for i, v := range []float64{1, 2, 4} {
		out = append(out, row("n/seed-"+string(rune('1'+i))+"-augment-plain", "slp", v), row("n/seed-"+string(rune('1'+i))+"-augment-plain", "mlp", v-1))
	}
	for i, v := range []float64{5, 5.5, 7} {
		out = append(out, row("n/seed-"+string(rune('1'+i))+"-augment-colour", "slp", v), row("n/seed-"+string(rune('1'+i))+"-augment-colour", "mlp", v-1))
	}
	// The tables leave out scores with a parameter, here of a quarter of a transformation's range.
	quarter := row("n/seed-1-augment-plain", "slp", 9)
	quarter.Parameter = "-1.5"
	return append(out, quarter)
}

// TestTables checks means and differences, each with its 95 % interval. The expected intervals were
// computed from a numerical integral of the t distribution. The columns are the statistic, the
// factor and probe, the kind or difference, the value, and the bounds of the interval.
func TestTables(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := write(folder, rows()); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"small.csv":             {`"informativeness, RMSE","hue, slp",plain,2.333,-1.461,6.128`, `"informativeness, RMSE","hue, mlp",plain,1.333,`, `"informativeness, RMSE","hue, slp",null,0.500,,`},
		"small-differences.csv": {`"informativeness, RMSE","hue, slp",colour - plain,3.500,0.374,6.626`, `"informativeness, RMSE","hue, slp",slp - mlp,1.000,1.000,1.000`},
	} {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range want {
			if !strings.Contains(string(raw), line) {
				t.Errorf("%s lacks %s:\n%s", name, line, raw)
			}
		}
	}
}

// A network with scores of one probe only, or a kind without scores of one, does not count in the
// difference of the probes.
func TestOneProbe(t *testing.T) {
	t.Parallel()
	scores := slices.DeleteFunc(rows(), func(r scores.Row) bool {
		return strings.HasSuffix(r.Model, "colour") && r.Variant == "slp" || r.Model == "n/seed-3-augment-plain" && r.Variant == "mlp"
	})
	table, err := collect(scores)
	if err != nil {
		t.Fatal(err)
	}
	got := table.differences()
	if want := "slp - mlp,1.000,1.000,1.000"; !slices.ContainsFunc(got, func(r []string) bool { return strings.Join(r[2:], ",") == want }) {
		t.Errorf("the differences are %q, want one with %s", got, want)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	if _, err := collect(append(rows(), rows()[0])); err == nil || !strings.Contains(err.Error(), "two scores") {
		t.Errorf("two scores of one network: error %v, want one with %q", err, "two scores")
	}
	if _, err := collect([]scores.Row{{Measure: "informativeness", Statistic: "rmse", Value: math.NaN()}}); err == nil || !strings.Contains(err.Error(), "no scores") {
		t.Errorf("without scores: error %v, want one with %q", err, "no scores")
	}
	if err := writeTables([]string{"-o", t.TempDir()}); err == nil || !strings.Contains(err.Error(), "scores.csv") {
		t.Errorf("without files: error %v, want one with %q", err, "scores.csv")
	}
}
