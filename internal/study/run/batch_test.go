package run_test

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestMemoryLimitDoesNotChangeScores runs a study with the default memory and with a limit, under
// which the samples are read in several passes, for some scores at a time. studytest.Text
// has 150 images and five measures.
func TestMemoryLimitDoesNotChangeScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	unlimited, limited := studytest.Options(t), studytest.Options(t)
	limited.Memory = 2 << 20 // bytes
	passes := func(o study.Options) int {
		s := studytest.Parse(t, dir, studytest.Text)
		p, err := study.NewPlan(t.Context(), s, o)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		return len(plan.Passes(p.Cells, plan.LimitsOf(s, &o), study.Shard{}))
	}
	if few, many := passes(unlimited), passes(limited); many <= few {
		t.Errorf("the limit makes %d passes of %d, want more", many, few)
	}
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "unlimited"), unlimited)
	got := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "limited"), limited)
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}

// TestRunRecordsTimeAndMemory checks the times of the stages of a run, its peak memory, which is at
// least 10 MiB in a program with ONNX Runtime, and the counters that show its progress. A cell is
// one measure of one model and data set under one transformation value, in one trial (repetition).
func TestRunRecordsTimeAndMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	o.Stats = &study.Stats{}
	out := filepath.Join(dir, "run")
	r := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o)
	used := r.Record.Used
	if used == nil || used.PeakMemory < 10<<20 || used.Seconds <= 0 {
		t.Fatalf("the record has %+v, want a time and at least 10 MiB", used)
	}
	took := map[string]float64{}
	for _, s := range used.Stages {
		took[s.Name] = s.Seconds
		if s.Seconds > used.Seconds && s.Name != "decode" && s.Name != "transform" { // these two run in parallel with the engine
			t.Errorf("%s took %v s of %v", s.Name, s.Seconds, used.Seconds)
		}
	}
	// The engine is ONNX Runtime.
	for _, name := range []string{"open", "decode", "transform", "engine", "measure", "score", "save"} {
		if took[name] <= 0 {
			t.Errorf("%s took no time: %v", name, took)
		}
	}
	got := o.Stats.Snapshot()
	if got.Cells != int64(r.Record.Cells) || got.Finished != got.Cells || got.Done != got.Total || got.Total == 0 || got.Decoded != 150 || got.Failures != 0 {
		t.Errorf("the counters are %+v", got)
	}
	plan, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, studytest.Text), o)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	for _, c := range plan.Cells {
		if cell := studytest.StoredCell(t, out, c.Key); cell.PeakMemory < 10<<20 {
			t.Errorf("%s: %d bytes", c, cell.PeakMemory)
		}
	}
}
