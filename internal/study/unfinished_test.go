package study_test

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// threeTurns is a study of a model under rotations by three angles.
const threeTurns = `name: turns
seed: 3
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models: [{name: small, onnx: small.onnx}]
transforms: [{name: quarter, rotate: {values: [90, 180, 270]}}]
measures: [accuracy, effective-invariance]
`

// TestUnfinishedRunHasNoPartialMeans checks that there is no mean over the values of a parameter
// while one of them is missing, since the mean would change later.
func TestUnfinishedRunHasNoPartialMeans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	whole := studytest.Run(t, studytest.Parse(t, dir, threeTurns), out, studytest.Options(t))
	record := whole.Record
	record.Finished = nil // as in the record of a run that was stopped
	if err := scores.WriteRecord(filepath.Join(out, "run.json"), record); err != nil {
		t.Fatal(err)
	}
	unfinished, err := study.ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, whole.Rows, unfinished.Rows, 0)

	for _, key := range record.Keys {
		if c := studytest.StoredCell(t, out, key); c.Measure == "accuracy" && c.Parameter == "270" {
			studytest.RemoveRecord(t, out, "cells", key)
		}
	}
	partial, err := study.ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	var want []scores.Row
	for _, r := range whole.Rows {
		if r.Measure != "accuracy" || r.Parameter == "90" || r.Parameter == "180" {
			want = append(want, r)
		}
	}
	studytest.SameScores(t, want, partial.Rows, 0)
	cells, _, err := study.ReadCells(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if c.Measure == "accuracy" && c.Parameter == "" { // a mean over angles
			t.Error("there is a mean of accuracy over two of three angles")
		}
	}
}
