package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiff compares two runs of the same study. The zero value of smallStudy is a small valid study
// of good.onnx, a model in brokenFolder; see mistakes_test.go.
func TestDiff(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy, distance", transform: "{name: quarter, rotate: 90}, {name: half, rotate: 180}"}.text()))
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, run := range []string{a, b} {
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
	}
	text, err := output(t, "diff", a, b, "--all", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var lines []struct {
		Difference struct{ Value float64 }
		Beyond     bool // beyond chance: the interval of the difference excludes 0
	}
	if err := json.Unmarshal([]byte(text), &lines); err != nil || len(lines) == 0 {
		t.Fatalf("%v: %.300s", err, text)
	}
	for _, l := range lines {
		if l.Difference.Value != 0 || l.Beyond {
			t.Errorf("a run differs from itself: %+v", l)
		}
	}
	// A condition that ends in ! includes differences that are not beyond chance. accuracy.clean is
	// the accuracy on images that are not transformed.
	for _, c := range []struct {
		args []string
		code int    // exit code
		want string // part of the final message
	}{
		{[]string{a, b, "--fail-if", "accuracy.clean < -0.02"}, 0, ""},
		{[]string{a, b, "--fail-if", "accuracy.clean > -1!"}, 1, "accuracy.clean > -1!: 1 difference, the largest +0 ("},
		{[]string{a, b, "--fail-if", "accuracy.clean@half > -1!"}, 1, ": 1 difference, the largest +0 ("},
		{[]string{a, b, "--fail-if", "seis.equivariance < 0"}, 1, "available:"},
		{[]string{a, b, "--fail-if", "seis < 0"}, 2, "MEASURE.STATISTIC"},
		{[]string{a, b, "--models", "x"}, 2, "A=B"},
		{[]string{a, b, "--models", "x=y"}, 1, "a has no model \"x\"; it has m"},
		{[]string{a, b, "--models", "m=y"}, 1, "b has no model \"y\"; it has m"},
		{[]string{a, dir}, 1, "not a run folder"},
		{[]string{a, a}, 1, "are one run: name the models to compare, as in --models m=OTHER"},
		{[]string{a, b, "--accept", "model"}, 2, "it must be one of data, n, seed, transforms, preprocess"},
		{[]string{a}, 2, "takes RUN_A RUN_B"},
	} {
		code, message := call(t, append([]string{"diff"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[1:], code, message, c.code, c.want)
		}
	}
}

// TestDiffOfUnlikeRuns checks that a gate refuses runs that differ in something other than the
// model, unless it is accepted, and that a comparison without a gate says so.
func TestDiffOfUnlikeRuns(t *testing.T) {
	dir := brokenFolder(t)
	transform := "{name: turn, rotate: {values: [90, 180]}}"
	runs := map[string]smallStudy{
		"a":          {},
		"seed":       {more: "seed: 7"},
		"transforms": {transform: "{name: turn, rotate: {values: [90, 270]}}"},
		"preprocess": {preprocess: ", preprocess: {mean: 0.5, std: 0.5}"},
		"n":          {data: "shapes: {n: 30, size: 16}"},
		"data":       {data: "shapes: {n: 40, size: 16, seed: 9}"},
	}
	for name, s := range runs {
		s.measures, s.transform = "accuracy", cmp.Or(s.transform, transform)
		if code, message := call(t, "run", write(t, dir, "study.yaml", []byte(s.text())), "-o", filepath.Join(dir, name)); code != 0 {
			t.Fatal(name, message)
		}
	}
	for _, kind := range unlikeKinds {
		gate := []string{"diff", filepath.Join(dir, "a"), filepath.Join(dir, kind), "--fail-if", "accuracy.moved < -0.5"}
		if code, message := call(t, gate...); code != 1 || !strings.Contains(message, "accept it by --accept "+kind) {
			t.Errorf("%s: exit %d, %q; want a refusal", kind, code, message)
		}
		if code, message := call(t, append(gate, "--accept", kind)...); code != 0 {
			t.Errorf("%s, accepted: exit %d, %q", kind, code, message)
		}
		if text, err := output(t, gate[:3]...); err != nil || !strings.Contains(text, "not alike") {
			t.Errorf("%s: %v: diff does not say that the runs are not alike: %s", kind, err, text)
		}
	}
}

// TestDiffWithSTIR checks that STIR (similarity through inverted representations: which inputs are
// the same to one model, and are they to the other?) is near 1 between two runs of the same model,
// and that a condition on it passes.
func TestDiffWithSTIR(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy"}.text()))
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, run := range []string{a, b} {
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
	}
	common := []string{"diff", a, b, "--stir", "--stir-images", "20", "--stir-steps", "100", "--stir-layer", "conv"}
	text, err := output(t, append(common, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Differences []any
		STIR        []struct {
			Model     string
			Other     string `json:"other_model"`
			Statistic string
			Layer     string
			Value     float64
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	found := 0 // rows of the statistic stir
	for _, row := range got.STIR {
		if row.Statistic == "stir" {
			found++
			// The names of the models end in (A) and (B), for the two runs.
			if row.Layer != "conv" || row.Value < 0.9 || !strings.HasSuffix(row.Model, ")") || row.Model == row.Other {
				t.Errorf("a row is %+v, want the layer conv, a value of at least 0.9 and two models", row)
			}
		}
	}
	if found != 2 || got.Differences == nil {
		t.Errorf("%d rows of stir and %d differences in %.500s, want a row for each of two directions, and a list of differences", found, len(got.Differences), text)
	}
	text, err = output(t, append(common, "--fail-if", "stir.stir < 0.5")...)
	if err != nil || !strings.Contains(text, "→") {
		t.Errorf("diff prints %s, error %v; want an arrow between models and no failure", text, err)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{append(common, "--fail-if", "stir.stir > 0.5"), 1, "2 scores, the worst"},
		{append(common, "--fail-if", "stir.nothing > 0.5"), 1, "available:"},
		{[]string{"diff", a, b, "--stir-images", "3"}, 2, "--stir"},
		{[]string{"diff", a, b, "--stir", "--stir-images", "1"}, 2, "must be at least 2"},
		{[]string{"diff", a, b, "--stir", "--stir-steps", "0"}, 2, "must be at least 1"},
		{[]string{"diff", a, b, "--stir", "--stir-layer", "nolayer"}, 1, "nolayer"},
	} {
		code, message := call(t, c.args...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[3:], code, message, c.code, c.want)
		}
	}
	if err := os.Remove(filepath.Join(dir, "good.onnx")); err != nil {
		t.Fatal(err)
	}
	if code, message := call(t, common...); code != 1 || !strings.Contains(message, "good.onnx") || strings.Contains(message, "\n") {
		t.Errorf("without the model: exit %d: %q, want exit 1 and one line that names good.onnx", code, message)
	}
}

// TestCorrelateErrors checks the exit codes and messages of noether correlate. accuracy.moved is
// the accuracy on transformed images. A run of one model gives a single point.
func TestCorrelateErrors(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(smallStudy{measures: "accuracy"}.text()))
	run := filepath.Join(dir, "run")
	if code, message := call(t, "run", study, "-o", run); code != 0 {
		t.Fatal(message)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{run}, 1, "no score matches effective-invariance.ei; available: accuracy.clean"},
		{[]string{run, "--x", "accuracy.moved"}, 1, "too few points"},
		{[]string{run, "--x", "accuracy.moved", "--x", "accuracy.drop"}, 1, "none of the 2 sets"},
		{[]string{run, "--x", "accuracy"}, 2, "--x"},
		{[]string{run, "--by", "layer"}, 2, "it must be model or data"},
		{[]string{dir}, 1, "not a run folder"},
	} {
		code, message := call(t, append([]string{"correlate"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[1:], code, message, c.code, c.want)
		}
	}
}

// TestDiffOfPredictions checks flips between two runs of the same model, and conditions on them.
// Flips are samples of which one run predicts the class correctly and the other does not; negative
// ones are correct in the first run, A, and wrong in the second, B.
func TestDiffOfPredictions(t *testing.T) {
	dir := brokenFolder(t)
	text := smallStudy{measures: "accuracy, distance"}.text()
	// The run "without" has no measure of predictions.
	a, b, without := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "without")
	for run, text := range map[string]string{a: text + "\nsamples: true\n", b: text, without: smallStudy{measures: "distance"}.text()} {
		if code, message := call(t, "run", write(t, dir, "study.yaml", []byte(text)), "-o", run); code != 0 {
			t.Fatal(message)
		}
	}
	text, err := output(t, "diff", a, b, "--flips", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Differences []any
		Flips       []struct {
			Model, Statistic string
			Value            float64
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Flips) == 0 {
		t.Fatalf("%v: %.300s", err, text)
	}
	negative := 0
	for _, f := range got.Flips {
		if f.Statistic != "negative-flips" {
			continue
		}
		negative++
		if f.Value != 0 || !strings.HasSuffix(f.Model, " (A)") {
			t.Errorf("flips between runs of the same model: %+v", f)
		}
	}
	if negative == 0 {
		t.Errorf("no negative flips in %+v", got.Flips)
	}
	if text, err = output(t, "diff", a, b); err != nil || !strings.Contains(text, "negative flips") {
		t.Errorf("diff prints %s, error %v; want negative flips", text, err)
	}
	const flips = "prediction-agreement.negative-flips"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{a, b, "--fail-if", flips + " > 0.01"}, 0, ""},
		{[]string{a, b, "--fail-if", flips + " < 0.5"}, 1, "scores, the worst 0"},
		{[]string{a, b, "--fail-if", "prediction-agreement.flips > 0.01"}, 1, "available: prediction-agreement.accuracy-difference"},
		{[]string{a, without, "--fail-if", flips + " > 0.01"}, 1, "no predictions of the same samples"},
		{[]string{a, without, "--flips"}, 1, "no predictions of the same samples"},
		{[]string{a, without}, 0, ""},
	} {
		code, message := call(t, append([]string{"diff"}, c.args...)...)
		if code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args[1:], code, message, c.code, c.want)
		}
	}
}
