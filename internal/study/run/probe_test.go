package run_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// probeText is a study of the measures that train probes, small models such as ridge regression, on
// the vectors of a layer. A factor is a known property of an image, which a probe predicts: here
// the position x of a shape, or its label.
const probeText = `name: probes
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models: [{name: one, onnx: one.onnx, layers: ["op:Relu", output]}]
transforms:
  - {name: drawn, brightness: [0.2, 1.8]}
  - {name: dim, brightness: {values: [0.25, 0.5]}}
  - {name: flip, flip: horizontal}
measures:
  - informativeness: {factors: [x, label], probe: ridge}
  - parameter-equivariance: {probe: [ridge]}
  - representation-equivariance: {probe: [ridge]}
  - invariance: {parts: 2}
  - disentanglement: {factors: x, probe: ridge, pool: flatten}
`

// TestProbesInStudies checks that the run of a study has the rows of each measure: measure,
// transformation, parameter, factor and statistic.
func TestProbesInStudies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	o := studytest.Options(t)
	o.FeatureCache = &features.Store{Dir: filepath.Join(dir, "store")}
	result := studytest.Run(t, studytest.Parse(t, dir, probeText), filepath.Join(dir, "run"), o)
	count := map[string]int{}
	for _, r := range result.Rows {
		if r.Layer == "" || r.Model != "one" || r.N == 0 {
			t.Errorf("a row lacks its layer, the model one or its number of samples: %+v", r)
		}
		count[strings.Join([]string{r.Measure, r.Transform, r.Parameter, r.Factor, r.Statistic}, " ")]++
	}
	// The parameters of drawn are the centres of equal parts of its range [0.2, 1.8]: two parts for
	// invariance, four quarters for disentanglement.
	for _, want := range []string{
		"informativeness   x r2", "informativeness   label f1", "informativeness   x baseline-rmse",
		"parameter-equivariance drawn   rmse", "parameter-equivariance dim   rmse",
		"representation-equivariance flip   gain", "representation-equivariance drawn   cosine",
		"invariance drawn 0.6  cosine", "invariance drawn 1.4  l2", "invariance dim 0.25  cosine", "invariance flip   cosine",
		"disentanglement drawn 0.4 x rmse-change", "disentanglement dim 0.5 x rmse-change", "disentanglement flip  x rmse-change",
	} {
		if count[want] != 2 {
			t.Errorf("there are %d rows of %q, want one for each of 2 layers", count[want], want)
		}
	}
	skipped := fmt.Sprint(result.Record.Skipped)
	if !strings.Contains(skipped, "flip has no parameter that varies") {
		t.Errorf("the skipped measures are %s, want one that names flip", skipped)
	}
}

// TestWrongFactors checks that an unknown factor is reported before anything runs, with its
// position (line and column) and the nearest name or the known ones. A change is a replacement of
// text in probeText.
func TestWrongFactors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	for change, want := range map[string]string{
		"factors: [x, label] -> factors: [x, labels]":                                                         `:9:36: model one on shapes: informativeness: no factor "labels"; did you mean "label"?`,
		"factors: [x, label] -> factors: [x], classes: shap":                                                  `:9:46: model one on shapes: informativeness: no factor "shap"; did you mean "shape"?`,
		"factors: [x, label] -> scale: {huge: 360}":                                                           `:9:31: model one on shapes: informativeness: no factor "huge"; did you mean "hue"?`,
		"{factors: x, -> {factors: colour,":                                                                   `no factor "colour"; known are`,
		"parameter-equivariance: {probe: -> parameter-equivariance: {test: {factor: y2, values: [1]}, probe:": `:10:45: model one on shapes: parameter-equivariance: no factor "y2"; did you mean "y"?`,
	} {
		from, to, _ := strings.Cut(change, " -> ")
		text := strings.Replace(probeText, from, to, 1)
		if text == probeText {
			t.Fatalf("the study lacks the text to replace: %s", change)
		}
		plan, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text), studytest.Options(t))
		if err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, f := range plan.Failed() {
			failed = append(failed, f.Error)
		}
		if !slices.ContainsFunc(failed, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("%s: the failures are %q, want one with %q", change, failed, want)
		}
		if err := plan.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestFactorsOfOtherData checks that scale may name a factor (hue) that only one of two data sets
// has.
func TestFactorsOfOtherData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	text := strings.Replace(probeText, "seed: 2}}]", "seed: 2}}, {name: gratings, gratings: {size: 16}}]", 1)
	text = strings.Replace(text, "factors: [x, label]", "scale: {hue: 360}", 1)
	plan, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	for _, f := range plan.Failed() {
		if f.Measure == "informativeness" {
			t.Errorf("the scale of a factor of the other data set is an error: %+v", f)
		}
	}
	if !slices.ContainsFunc(plan.Failed(), func(f scores.Failure) bool { return f.Measure == "disentanglement" && f.Data == "gratings" }) {
		t.Errorf("gratings have no factor x, but the failures are %+v", plan.Failed())
	}
}

// joinText is a study whose data set joins three others. The factor part says from which one a
// sample comes. Probes are ridge regression and a single-layer perceptron (slp).
const joinText = `name: joined
data:
  name: shapes
  join:
    train: {shapes: {n: 50, size: 16, seed: 2}}
    dev: {shapes: {n: 12, size: 16, seed: 3}, limit: 11}
    test: {shapes: {n: 20, size: 16, seed: 4}}
models: [{name: one, onnx: one.onnx, layers: output}]
measures:
  - informativeness: {factors: [x], probe: [ridge, slp], epochs: 2, seeds: 1, test: {factor: part, names: test}, validation: {factor: part, names: [dev]}}
`

// TestSeparateTestData checks a probe with separate test data: the scores are those of their 20
// samples, and change with the test data.
func TestSeparateTestData(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	o := studytest.Options(t)
	o.FeatureCache = &features.Store{Dir: filepath.Join(dir, "store")}
	// rmse returns the error of each probe after replacements of text in joinText.
	rmse := func(name string, changes ...string) map[string]float64 {
		text := joinText
		for _, change := range changes {
			from, to, _ := strings.Cut(change, " -> ")
			text = strings.Replace(text, from, to, 1)
		}
		out := map[string]float64{}
		for _, r := range studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, name), o).Rows {
			if r.Statistic == "rmse" {
				out[r.Variant] = r.Value
				if r.N != 20 {
					t.Errorf("%s: %d test samples, want 20", r.Variant, r.N)
				}
			}
		}
		return out
	}
	first, otherTest, otherValidation := rmse("first"), rmse("test", "seed: 4 -> seed: 5"), rmse("validation", "seed: 3}, limit: 11 -> seed: 9}, limit: 11")
	if len(first) != 2 || first["ridge"] == otherTest["ridge"] || first["slp"] == otherTest["slp"] {
		t.Errorf("the errors are %v, and with other test data %v; want others", first, otherTest)
	}
	if first["ridge"] == otherValidation["ridge"] && first["slp"] == otherValidation["slp"] {
		t.Errorf("with other validation data the errors are still %v", first)
	}
	_, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, strings.Replace(joinText, "names: test", "names: tset", 1)), o)
	if want := `:10:107: model one on shapes: informativeness: no part "tset"; did you mean "test"?`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
	for change, want := range map[string]string{
		"train: {shapes: -> train: {name: x, shapes:":                                                                     "leave out name",
		"train: {shapes: -> train: {classes: [1], shapes:":                                                                "classes cannot be set for a part",
		"train: {shapes: -> train: {shape:":                                                                               "shape",
		"train: {shapes: {n: 50, size: 16, seed: 2}} -> train: photos":                                                    "a part must be a data entry",
		"    train: {shapes: {n: 50, size: 16, seed: 2}}\n    dev: {shapes: {n: 12, size: 16, seed: 3}, limit: 11}\n -> ": "two or more data entries",
	} {
		from, to, _ := strings.Cut(change, " -> ")
		text := strings.Replace(joinText, from, to, 1)
		if text == joinText {
			t.Fatalf("the study lacks the text to replace: %s", change)
		}
		if _, err := study.Parse("study.yaml", []byte(text), nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", change, err, want)
		}
	}
}
