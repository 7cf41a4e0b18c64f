package run_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

const agreementText = `name: agreement
seed: 3
data: [{name: shapes, shapes: {n: 150, size: 16, seed: 2}}]
models:
  - {name: one, onnx: one.onnx, layers: output}
  - {name: two, onnx: two.onnx, layers: output}
  - {name: copy, onnx: one.onnx, layers: output}
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
measures:
  - accuracy
  - prediction-agreement: {between: [[one, two], [one, copy]], per-class: true}
samples: true
`

// valueIn returns the first row of a statistic of prediction-agreement for a pair of models, over
// all classes. The transformation "" stands for images that are not transformed.
func valueIn(t *testing.T, rows []scores.Row, model, other, transform, statistic string) scores.Row {
	t.Helper()
	for _, r := range rows {
		if r.Measure == "prediction-agreement" && r.Model == model && r.OtherModel == other && r.Transform == transform && r.Statistic == statistic && r.Factor == "" {
			return r
		}
	}
	t.Fatalf("no %s of %s and %s under %q", statistic, model, other, transform)
	return scores.Row{}
}

// TestPredictionAgreement checks that negative flips (samples that only the first model has right)
// minus positive ones (only the second) are the difference of accuracy, on clean (not transformed)
// images and on transformed ones, for which accuracy has the statistics clean and moved. It also
// checks that CompareRuns gives the same scores from two run folders.
func TestPredictionAgreement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	testmodel.Write(t, dir, "two", testmodel.Options{})
	o := studytest.Options(t)
	run := filepath.Join(dir, "run")
	r := studytest.Run(t, studytest.Parse(t, dir, agreementText), run, o)
	accuracy := func(model, statistic, transform, parameter string) float64 {
		for _, row := range r.Rows {
			if row.Measure == "accuracy" && row.Model == model && row.Statistic == statistic && row.Transform == transform && row.Parameter == parameter {
				return row.Value
			}
		}
		t.Fatalf("no %s of %s", statistic, model)
		return 0
	}
	lost := valueIn(t, r.Rows, "one", "two", "", "negative-flips").Value - valueIn(t, r.Rows, "one", "two", "", "positive-flips").Value
	if want := accuracy("one", "clean", "quarter", "90") - accuracy("two", "clean", "quarter", "90"); math.Abs(lost-want) > 1e-9 {
		t.Errorf("negative minus positive flips are %v, and accuracy falls by %v", lost, want)
	}
	negative, positive := valueIn(t, r.Rows, "one", "two", "quarter", "negative-flips"), valueIn(t, r.Rows, "one", "two", "quarter", "positive-flips")
	angle := negative.Parameter
	if positive.Parameter != angle {
		t.Fatalf("the first negative flips are under %q, the first positive ones under %q", angle, positive.Parameter)
	}
	lost = negative.Value - positive.Value
	if want := accuracy("one", "moved", "quarter", angle) - accuracy("two", "moved", "quarter", angle); math.Abs(lost-want) > 1e-9 {
		t.Errorf("rotated by %s degrees negative minus positive flips are %v, accuracy falls by %v", angle, lost, want)
	}
	if s := valueIn(t, r.Rows, "one", "copy", "quarter", "error-consistency"); s.Value != 1 {
		t.Errorf("error consistency of equal models: %+v, want 1", s)
	}
	if s := valueIn(t, r.Rows, "one", "copy", "", "disagreement"); s.Value != 0 || s.High == 0 {
		t.Errorf("disagreement of equal models: %+v, want 0 with an upper bound above 0", s)
	}

	rows, err := study.CompareRuns([2]string{run, run}, [][2]string{{"one", "two"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 6*3 { // six statistics: clean, at 90 and at 180 degrees
		t.Errorf("%d rows, want 18", len(rows))
	}
	for _, row := range rows {
		if row.Transform != "" {
			continue
		}
		want := valueIn(t, r.Rows, "one", "two", "", row.Statistic)
		if math.Abs(row.Value-want.Value) > 1e-12 || math.Abs(row.Low-want.Low) > 1e-12 || math.Abs(row.High-want.High) > 1e-12 || row.N != want.N ||
			math.Abs(row.Null-want.Null) > 1e-12 {
			t.Errorf("%s of two runs is %+v, and %+v in one", row.Statistic, row, want)
		}
	}
}

func TestPredictionAgreementNeedsEqualClasses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	testmodel.Write(t, dir, "two", testmodel.Options{Classes: 9})
	s := studytest.Parse(t, dir, strings.ReplaceAll(strings.ReplaceAll(agreementText, ", [one, copy]", ""), "  - accuracy\n", ""))
	_, err := study.Run(t.Context(), s, filepath.Join(dir, "run"), studytest.Options(t))
	if err == nil || !strings.Contains(err.Error(), "model one has 8 classes and model two 9") {
		t.Errorf("error %v, want one with both numbers of classes", err)
	}
}

// TestAgreementWithoutLabels checks that on data without labels the disagreement with the first
// model stands in place of the accuracy, also if no measure asks for it, and that of two models alone
// if one does.
func TestAgreementWithoutLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "one", testmodel.Options{})
	testmodel.Write(t, dir, "two", testmodel.Options{})
	x := tensor.New(60, 16, 16, 3)
	r := seed.Rand(3, "images")
	for i := range x.Data {
		x.Data[i] = r.Float32()
	}
	f, err := os.Create(filepath.Join(dir, "x.npy"))
	if err == nil {
		err = dataset.WriteNPY(f, x)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	text := strings.ReplaceAll(agreementText, "shapes: {n: 150, size: 16, seed: 2}", "arrays: x.npy")
	text = strings.ReplaceAll(text[:strings.Index(text, "measures:")], "name: shapes", "name: d") + "measures: [effective-invariance]\n"
	rows := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t)).Rows
	if got := valueIn(t, rows, "one", "copy", "", "disagreement"); got.Value != 0 || got.N != 60 || !(got.High > 0) {
		t.Errorf("the disagreement of a copy is %+v", got)
	}
	got := valueIn(t, rows, "one", "two", "", "disagreement")
	text = strings.Replace(text, "measures: [", "measures: [prediction-agreement: {between: [[one, two]]}, ", 1)
	rows = studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "measured"), studytest.Options(t)).Rows
	if want := valueIn(t, rows, "one", "two", "", "disagreement"); got.Value != want.Value || got.Low != want.Low || got.High != want.High || got.N != want.N {
		t.Errorf("disagreement %+v, measured %+v", got, want)
	}
	n := 0
	for _, r := range rows {
		if r.OtherModel == "two" && r.Statistic == "disagreement" && r.Transform == "" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d rows of one and two, want 1", n)
	}
}
