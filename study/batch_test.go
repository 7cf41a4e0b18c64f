package study

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestLittleMemoryMakesSmallBatchesAndTheSameScores checks that a smaller memory limit changes
// batches and passes but no scores.
func TestLittleMemoryMakesSmallBatchesAndTheSameScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	s := parseIn(t, dir, studyText)
	want := mustRun(t, s, filepath.Join(dir, "wide"), o)
	o.Memory = 64 << 20
	sameScores(t, want.Rows, mustRun(t, parseIn(t, dir, studyText), filepath.Join(dir, "narrow"), o).Rows, 1e-5)
}

func TestRunRecordsTimeAndMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	o.Stats = &Stats{}
	out := filepath.Join(dir, "run")
	r := mustRun(t, parseIn(t, dir, studyText), out, o)
	used := r.Record.Used
	if used == nil || used.PeakMemory < 10<<20 || used.Seconds <= 0 {
		t.Fatalf("the record has %+v", used)
	}
	took := map[string]float64{}
	for _, s := range used.Stages {
		took[s.Name] = s.Seconds
		if s.Seconds > used.Seconds && s.Name != "decode" && s.Name != "transform" { // which run beside the engine
			t.Errorf("%s took %v s of %v", s.Name, s.Seconds, used.Seconds)
		}
	}
	for _, name := range []string{"open", "decode", "transform", "engine", "measure", "score", "save"} {
		if took[name] <= 0 {
			t.Errorf("%s took no time: %v", name, took)
		}
	}
	got := o.Stats.Snapshot()
	if got.Cells != int64(r.Record.Cells) || got.Finished != got.Cells || got.Done != got.Total || got.Total == 0 || got.Decoded != 150 || got.Failures != 0 {
		t.Errorf("the counters are %+v", got)
	}
	plan, err := NewPlan(t.Context(), parseIn(t, dir, studyText), o)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	for _, c := range plan.Cells {
		cell, err := scores.ReadCell(filepath.Join(out, "cells", c.Key+".json"))
		if err != nil || cell.PeakMemory < 10<<20 {
			t.Errorf("%s: %d bytes, %v", c, cell.PeakMemory, err)
		}
	}
}
