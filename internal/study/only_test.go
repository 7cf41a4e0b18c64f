package study_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// smallAndOther writes the models small and other, and returns the text of a study of both:
// studytest.Text with the second model, and SEIS without intervals. SEIS
// measures how equivariant and invariant a layer is.
func smallAndOther(t *testing.T, dir string) string {
	t.Helper()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	text := strings.Replace(studytest.Text, "transforms:", "  - {name: other, onnx: other.onnx, layers: [output]}\ntransforms:", 1)
	return strings.Replace(text, ", seis]", ", seis: {interval: false}]", 1)
}

// TestOneRunPerModel checks that runs of one model each fill one run folder. A shard is a run on a
// part of the samples. It leaves states, partial sums of its measures, from which a merge computes
// scores. A run on all samples leaves none, nor, with Options.Complete, the last shard of a model.
// A cell, which Record counts, is one measure of a model under one transformation value.
func TestOneRunPerModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := smallAndOther(t, dir)
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "per-model")
	part := o
	part.Only = []string{"other"}
	studytest.Run(t, studytest.Parse(t, dir, text), out, part)
	if _, err := os.Stat(filepath.Join(out, "run.json")); err == nil {
		t.Error("a run of one of two models writes the record of the whole study")
	}
	part.Only, part.Complete = []string{"small"}, true
	part.Shard = study.Shard{Index: 1, Count: 2}
	studytest.Run(t, studytest.Parse(t, dir, text), out, part)

	result, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
	var incomplete *study.Incomplete
	if !errors.As(err, &incomplete) || len(incomplete.ByModel()) != 1 {
		t.Fatalf("merging without a shard: %v", err)
	}
	if m := incomplete.ByModel()[0]; m.Model != "small" || fmt.Sprint(m.Shards) != "[2/2]" || m.Cells != result.Record.Cells-result.Record.Done {
		t.Errorf("missing from the merge: %+v, want shard 2/2 of small", m)
	}
	if result.Record.Finished != nil || len(result.Rows) == 0 || len(result.Record.Missing) != 1 {
		t.Errorf("an incomplete merge yields %d rows and the record %+v", len(result.Rows), result.Record)
	}
	for _, row := range result.Rows {
		if row.Model != "other" {
			t.Fatalf("a score of %s, which is not complete", row.Model)
		}
	}

	part.Shard = study.Shard{Index: 2, Count: 2}
	studytest.Run(t, studytest.Parse(t, dir, text), out, part)
	if left, _ := filepath.Glob(filepath.Join(out, "states", "*")); len(left) > 0 {
		t.Errorf("the last shard leaves the states %v", left)
	}
	got, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
	if got.Record.Finished == nil || got.Record.Missing != nil {
		t.Errorf("the record of a complete merge: %+v", got.Record)
	}
	part.Only = []string{"smal"}
	if _, err := study.Run(t.Context(), studytest.Parse(t, dir, text), out, part); err == nil || !strings.Contains(err.Error(), `"small"`) {
		t.Errorf("a misspelt model: error %v, want one that names small", err)
	}
}

// TestMergeRunsOfOneModel checks that runs of one model each, in one run folder or two, leave all
// that a merge needs: study.yaml with the hashes of the models, and the finished cells (records of
// scores).
func TestMergeRunsOfOneModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "samples: true\n" + smallAndOther(t, dir)
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	merge := func(dirs ...string) (*study.Result, error) {
		s, err := study.Load(filepath.Join(dirs[0], "study.yaml"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return study.Merge(t.Context(), s, dirs, o)
	}
	run := func(out, model string) {
		part := o
		part.Only = []string{model}
		studytest.Run(t, studytest.Parse(t, dir, text), out, part)
	}
	one, a, b := filepath.Join(dir, "one"), filepath.Join(dir, "a"), filepath.Join(dir, "b")
	run(one, "other")
	if result, err := merge(one); result == nil || err == nil || !strings.Contains(err.Error(), "model small lack every shard; run the study for them") {
		t.Errorf("merging before model small has run: error %v", err)
	}
	if _, err := study.ReadResult(a); err == nil || !strings.Contains(err.Error(), "not a run folder") {
		t.Errorf("reading an empty folder: %v", err)
	}
	run(one, "small")
	run(one, "other") // has nothing to do, and keeps the hash of small in the study
	resolved, err := study.Load(filepath.Join(one, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range resolved.Models {
		if m.SHA256 == "" {
			t.Errorf("the study has no hash of %s", m.Name)
		}
	}
	run(a, "small")
	run(b, "other")
	if _, err := study.ReadResult(b); err == nil || !strings.HasSuffix(err.Error(), "no scores yet: noether merge "+b) {
		t.Errorf("reading a folder before its merge: error %v", err)
	}
	for _, dirs := range [][]string{{one}, {a, b}} {
		got, err := merge(dirs...)
		if err != nil {
			t.Fatal(err)
		}
		studytest.SameScores(t, want.Rows, got.Rows, 1e-9)
		if got.Record.Finished == nil || got.Record.Done != want.Record.Done {
			t.Errorf("the record of %v: %+v", dirs, got.Record)
		}
		samples, err := os.ReadFile(filepath.Join(dirs[0], "samples.parquet"))
		whole, _ := os.ReadFile(filepath.Join(dir, "whole", "samples.parquet"))
		if err != nil || !bytes.Equal(samples, whole) {
			t.Errorf("%d bytes of samples in %v where the run of both models has %d: %v", len(samples), dirs, len(whole), err)
		}
	}
}
