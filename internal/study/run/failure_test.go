package run_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// failures runs a study of which parts fail, and returns its result and its list of failures. A
// part is a model, a data set or a cell: one measure of a model and data set under one value of a
// transformation, in one trial (repetition of the random draws).
func failures(t *testing.T, s *study.Study, dir string, o study.Options) (*study.Result, *study.Failures) {
	t.Helper()
	r, err := study.Run(t.Context(), s, dir, o)
	var f *study.Failures
	if !errors.As(err, &f) {
		t.Fatalf("the error is %v, want a list of failures", err)
	}
	return r, f
}

const twoModels = `name: two
seed: 3
data:
  - {name: shapes, shapes: {n: 90, size: 16, seed: 2}}
models:
  - {name: good, onnx: good.onnx, layers: [conv, penultimate]}
  - {name: other, onnx: other.onnx, layers: [conv, penultimate]}
transforms: [{name: quarter, rotate: {values: [90, 180]}}]
measures: [accuracy, distance, seis]
`

// TestMissingModelFailsAlone checks that a study of two models, one without a file, gives the
// scores of the other model, and that running it again with the file computes only what is missing.
func TestMissingModelFailsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	o := studytest.Options(t)
	alone := studytest.Run(t, studytest.Parse(t, dir, strings.Replace(twoModels, "  - {name: other, onnx: other.onnx, layers: [conv, penultimate]}\n", "", 1)),
		filepath.Join(dir, "alone"), o)
	out := filepath.Join(dir, "run")
	r, f := failures(t, studytest.Parse(t, dir, twoModels), out, o)
	if len(f.Failed) != 1 || f.Failed[0].Model != "other" || !strings.Contains(f.Error(), "other.onnx") {
		t.Errorf("failures %+v: %v", f.Failed, f)
	}
	studytest.SameScores(t, alone.Rows, r.Rows, 1e-9)
	again, err := study.ReadResult(out)
	if err != nil || len(again.Record.Failed) != 1 || len(again.Rows) != len(r.Rows) || again.Record.Failed[0].Describe() != "model other" {
		t.Errorf("the folder records %+v and has %d rows: %v", again.Record.Failed, len(again.Rows), err)
	}
	fast := o
	fast.FailFast = true
	if _, err := study.Run(t.Context(), studytest.Parse(t, dir, twoModels), filepath.Join(dir, "fast"), fast); err == nil || errors.As(err, &f) {
		t.Errorf("with FailFast the error is %v, want the first one instead of a list", err)
	}

	testmodel.Write(t, dir, "other", testmodel.Options{})
	models := map[string]bool{}
	o.Progress = func(p study.Progress) { models[p.Model] = true }
	complete := studytest.Run(t, studytest.Parse(t, dir, twoModels), out, o)
	if models["good"] || !models["other"] || len(complete.Rows) != 2*len(r.Rows) {
		t.Errorf("the second run ran %v and gave %d rows, want only other and twice %d rows", models, len(complete.Rows), len(r.Rows))
	}
	if left, _ := os.ReadDir(filepath.Join(out, "failures")); len(left) > 0 {
		t.Errorf("failures are still recorded: %v", left)
	}
}

func TestDataThatCannotBeOpenedFailAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	text := strings.Replace(twoModels, "models:", "  - {name: none, cifar10: none.bin}\nmodels:", 1)
	r, f := failures(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	if len(f.Failed) != 1 || f.Failed[0].Data != "none" || f.Failed[0].Model != "" || r.Record.Done != r.Record.Cells {
		t.Errorf("failures %+v, %d of %d cells", f.Failed, r.Record.Done, r.Record.Cells)
	}
}

// A faulty measure is a measure whose second accumulator (its running sums) returns an error or
// panics.
type faulty struct {
	measure.Measure
	how  string // where it fails: new, update or scores; "crash in ..." for a panic
	made *int   // number of accumulators so far
}

// New is called for each layer and transformation value. A Site is the layer.
func (f faulty) New(s measure.Site) (measure.Accumulator, error) {
	*f.made++
	if *f.made == 2 && f.how == "new" {
		return nil, errors.New("injected failure")
	}
	acc, err := f.Measure.New(s)
	if *f.made != 2 {
		return acc, err
	}
	return &faultyAccumulator{acc, f.how, 0}, err
}

type faultyAccumulator struct {
	measure.Accumulator
	how string
	n   int // number of updates so far
}

func (f *faultyAccumulator) Update(b *measure.Batch) error {
	if f.n++; f.n == 3 {
		switch f.how {
		case "update":
			return errors.New("injected failure")
		case "crash in update":
			panic("injected failure")
		}
	}
	return f.Accumulator.Update(b)
}

func (f *faultyAccumulator) Scores() ([]measure.Score, error) {
	switch f.how {
	case "scores":
		return nil, errors.New("injected failure")
	case "crash in scores":
		panic("injected failure")
	}
	return f.Accumulator.Scores()
}

// TestNaNFailsOnlyCellsOfItsModel checks that all cells of a model with NaN in one weight fail,
// each with its error, and that those of another model do not.
func TestNaNFailsOnlyCellsOfItsModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{Poison: float32(math.NaN())})
	out := filepath.Join(dir, "run")
	r, f := failures(t, studytest.Parse(t, dir, twoModels), out, studytest.Options(t))
	// Each model has 6 cells: three measures under two angles.
	if len(f.Failed) != 6 || f.Done != 6 || f.Cells != 12 || !strings.Contains(f.Error(), "6 of 12 planned cells") || !strings.Contains(f.Error(), "layer conv of model other") {
		t.Fatalf("%d failures, %d of %d: %v", len(f.Failed), f.Done, f.Cells, f)
	}
	files, _ := filepath.Glob(filepath.Join(out, "failures", "*.json"))
	if len(files) != 6 {
		t.Errorf("files %v, want one for each of 6 failures", files)
	}
	for _, file := range files {
		x, err := scores.ReadFailure(file)
		if err != nil || x.Model != "other" || !strings.Contains(x.Error, "NaN") || len(x.Inputs) == 0 || len(x.Log) == 0 || x.When.IsZero() {
			t.Errorf("%s: error %v, failure %+v; want the error NaN of other, with the inputs, the log and the time", file, err, x)
		}
	}
	for _, row := range r.Rows {
		if row.Model != "good" {
			t.Fatalf("a row of a cell that failed: %+v", row)
		}
	}
	_, f = failures(t, studytest.Parse(t, dir, twoModels), out, studytest.Options(t)) // it fails in the same way again
	if len(f.Failed) != 6 {
		t.Errorf("%d failures in a second run, want 6", len(f.Failed))
	}
	fast := studytest.Options(t)
	fast.FailFast = true
	_, err := study.Run(t.Context(), studytest.Parse(t, dir, twoModels), filepath.Join(dir, "fast"), fast)
	if err == nil || errors.As(err, &f) || !strings.Contains(err.Error(), "NaN") {
		t.Errorf("with FailFast the error is %v, want the first one, on NaN, instead of a list", err)
	}
}

// TestFailureUnderOneValue checks that, if a measure fails under one value of a transformation,
// that cell and the means over the values have no scores, but the other cells that the same pass
// over the data computes have.
func TestFailureUnderOneValue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	const text = `name: views
data: [{name: d, shapes: {n: 60, size: 16}}]
models: [{name: good, onnx: good.onnx, layers: [conv]}]
transforms: [{name: turn, rotate: {values: [10, 20, 30]}}]
measures: [distance]
batch: 8
`
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	var rest []scores.Row // of the values that do not fail
	for _, r := range want.Rows {
		if r.Parameter == "10" || r.Parameter == "30" {
			rest = append(rest, r)
		}
	}
	for _, how := range []string{"new", "update", "crash in update", "scores", "crash in scores"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := studytest.Parse(t, dir, text)
			s.Measures[0].Method = faulty{s.Measures[0].Method.(measure.Measure), how, new(int)}
			got, err := study.Run(t.Context(), s, filepath.Join(t.TempDir(), "run"), o)
			var f *study.Failures
			if !errors.As(err, &f) || len(f.Failed) != 1 || f.Failed[0].Parameter != "20" || !strings.Contains(f.Error(), "injected failure") {
				t.Fatalf("error %v, want the failure of the cell of the value 20 alone", err)
			}
			if strings.HasPrefix(how, "crash") && !strings.Contains(strings.Join(f.Failed[0].Log, "\n"), "failure_test.go") {
				t.Errorf("the log does not contain the stack trace of the panic: %q", f.Failed[0].Log)
			}
			studytest.SameScores(t, rest, got.Rows, 1e-9)
		})
	}
}

// TestMergeNamesFailedShard checks that the merge of two shards, runs on half of the samples each,
// repeats the errors of the shards.
func TestMergeNamesFailedShard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{Poison: float32(math.NaN())})
	o := studytest.Options(t)
	out := filepath.Join(dir, "run")
	for i := 1; i <= 2; i++ {
		o.Shard = study.Shard{Index: i, Count: 2}
		o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 // save after every batch
		failures(t, studytest.Parse(t, dir, twoModels), out, o)
	}
	o.Shard = study.Shard{}
	r, err := study.Merge(t.Context(), studytest.Parse(t, dir, twoModels), []string{out}, o)
	var f *study.Failures
	if !errors.As(err, &f) || len(f.Failed) != 6 || f.Done != 6 || len(r.Rows) == 0 {
		t.Fatalf("error %v, want failures of the 6 cells of other and scores of good", err)
	}
	for _, want := range []string{"lacks every shard", "shard 1/2 failed", "NaN"} {
		if !strings.Contains(f.Failed[0].Error, want) {
			t.Errorf("error %q does not contain %q", f.Failed[0].Error, want)
		}
	}
}
