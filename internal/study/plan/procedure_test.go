package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestTrialsTakeNewImages checks that each trial (repetition) of the measure stir takes images that
// no earlier trial takes, as long as there are enough, and that the job of a trial that has to take
// some of them again has Repeated set. A job is one run of a procedure, a measure that reads
// samples several times; it belongs to a cell, here a trial of stir on the two models.
func TestTrialsTakeNewImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "a", testmodel.Options{})
	testmodel.Write(t, dir, "b", testmodel.Options{})
	// By number of samples: whether each of three trials, which take 30 samples each, is Repeated.
	for n, repeated := range map[int][]bool{90: {false, false, false}, 75: {false, false, true}, 30: {false, true, true}} {
		s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), fmt.Appendf(nil, `name: trials
data: [{name: shapes, shapes: {n: %d, size: 16, seed: 2}}]
models: [{name: a, onnx: a.onnx}, {name: b, onnx: b.onnx}]
measures: [{stir: {between: [a, b], images: 30}}]
trials: 3
`, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer plan.Close()
		taken := map[int][]int{} // for each sample, the trials that take it
		for _, c := range plan.Cells {
			job := c.Procedure.Job
			if job.Data.Len() != 30 || job.Repeated != repeated[c.View.Trial] {
				t.Errorf("%d samples, trial %d: %d images, repeated %v; want 30, %v", n, c.View.Trial, job.Data.Len(), job.Repeated, repeated[c.View.Trial])
			}
			for i := range job.Data.Len() {
				sample, err := dataset.Describe(t.Context(), job.Data, i)
				if err != nil {
					t.Fatal(err)
				}
				if slices.Contains(taken[sample.Index], c.View.Trial) {
					t.Errorf("%d samples, trial %d: sample %d twice", n, c.View.Trial, sample.Index)
				}
				taken[sample.Index] = append(taken[sample.Index], c.View.Trial)
			}
		}
		if len(taken) != min(n, 90) {
			t.Errorf("three trials take %d different samples of %d, want %d", len(taken), n, min(n, 90))
		}
	}
}

// TestLabelsOfPairs checks that the labels of a job of model stitching are classes of the second
// model, that the first model may have another number of classes, and that a second model with
// fewer classes than the data is an error.
func TestLabelsOfPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "two", testmodel.Options{Classes: 2})
	testmodel.Write(t, dir, "eight", testmodel.Options{Classes: 8})
	plan := func(between string) (*Plan, error) {
		s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), fmt.Appendf(nil, `name: labels
data: [{name: shapes, shapes: {n: 60, size: 16}}]
models: [{name: two, onnx: two.onnx, layers: [conv]}, {name: eight, onnx: eight.onnx, layers: [conv]}]
measures: [{stitching: {between: %s}}]
`, between), nil)
		if err != nil {
			t.Fatal(err)
		}
		return New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 2})
	}
	valid, err := plan("[two, eight]")
	if err != nil {
		t.Fatal(err)
	}
	defer valid.Close()
	seen := map[int]bool{}
	for i := range 60 {
		sample, err := dataset.Describe(t.Context(), valid.Cells[0].Procedure.Job.Data, i)
		if err != nil {
			t.Fatal(err)
		}
		seen[sample.Label] = true
	}
	if len(seen) != 8 || seen[dataset.NoLabel] {
		t.Errorf("labels %v, want the eight classes of the second model", seen)
	}
	if _, err := plan("[eight, two]"); err == nil || !strings.Contains(err.Error(), "the data have 8 classes and the model has 2") {
		t.Errorf("error %v, want one about the second model's two classes", err)
	}
}
