package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// studytest.Text has 150 samples and needs 600 forward passes: the clean (not
// transformed) samples, two values of quarter, and one draw of tilt. A run stores the state of
// unfinished accumulators (running sums of measures) at most once per SaveInterval, and spends at
// most SaveFraction of its time on that. sameScores compares rows within a tolerance, which is
// relative for values above 1.

func TestScoresDoNotDependOnHowTheyAreComputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "whole"), o)

	for name, change := range map[string]func(*study.Study, *study.Options){
		"batch 1":    func(s *study.Study, _ *study.Options) { s.Batch = 1 },
		"batch 7":    func(s *study.Study, _ *study.Options) { s.Batch = 7 },
		"one thread": func(_ *study.Study, o *study.Options) { o.Threads = 1 },
		"saved as often as possible": func(s *study.Study, o *study.Options) {
			s.Batch = 13
			o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := studytest.Parse(t, dir, studytest.Text), o
			change(s, &o)
			studytest.SameScores(t, want.Rows, studytest.Run(t, s, filepath.Join(t.TempDir(), "run"), o).Rows, 1e-5)
		})
	}
}

// TestMemoryBoundKeepsScores checks that a run gives the same scores if a bound on memory makes it
// read the samples several times, in passes.
func TestMemoryBoundKeepsScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := strings.Replace(studytest.Text, "distance, seis]", "distance, seis: {interval: false}]", 1)
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	var passes int
	o.Progress = func(p study.Progress) { passes = max(passes, p.Passes) }
	got := studytest.Run(t, studytest.Parse(t, dir, text+"memory: 400KiB\n"), filepath.Join(dir, "passes"), o)
	if passes < 2 {
		t.Fatalf("%d passes, want at least 2: the bound on memory has had no effect", passes)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-9)
}

// TestStoppedRunResumes stops a run after every 10 progress reports until it ends.
func TestStoppedRunResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := studytest.Text + "batch: 16\n"
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "stopped")
	stop := errors.New("stop")
	var remaining int64 // forward passes of the last run, counted in samples
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := o
		reports := 0
		stopped.Progress = func(p study.Progress) {
			if reports++; reports > 9 {
				cancel(stop)
			}
			remaining = p.Total
		}
		got, err := study.Run(ctx, studytest.Parse(t, dir, text), out, stopped)
		cancel(nil)
		if err == nil {
			if stops < 3 {
				t.Fatalf("the run ended after %d stops, want at least 3", stops)
			}
			if remaining >= 150*4 {
				t.Errorf("the last run has %d forward passes, want fewer than all 600: nothing was saved", remaining)
			}
			studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
			return
		}
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

func TestFinishedWorkIsNotRepeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	text := strings.Replace(studytest.Text, "transforms:", "  - {name: other, onnx: other.onnx, layers: [output]}\ntransforms:", 1)
	out := filepath.Join(dir, "run")
	o := studytest.Options(t)
	studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	models := map[string]bool{}
	o.Progress = func(p study.Progress) { models[p.Model] = true }
	studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	if len(models) > 0 {
		t.Errorf("a finished run computes %v again", models)
	}
	testmodel.Write(t, dir, "other", testmodel.Options{Poison: 1}) // other weights under the same name
	studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	if !models["other"] || models["small"] {
		t.Errorf("after a change of the model other, %v run again, want it alone", models)
	}
}

// TestTrialsWithoutRandomDrawsRunOnce checks that a transformation without random draws is applied
// and run once for all trials (repetitions of every random draw). Each trial still has its own
// rows, since nulls, the values of statistics on shuffled pairs, are random.
func TestTrialsWithoutRandomDrawsRunOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	text := strings.Replace(studytest.Text, "measures:", "trials: 3\nmeasures:", 1)
	opened, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var forwards int64
	for _, p := range plan.Passes(opened.Cells, plan.Limits{Memory: 1 << 30, Cores: 2}, study.Shard{}) {
		forwards += p.Forwards()
	}
	if want := int64(150 * (1 + 2 + 3)); forwards != want { // clean, quarter at 2 values, tilt in 3 trials; shift transforms activations
		t.Errorf("%d forward passes, want %d", forwards, want)
	}
	r := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	values := map[string]map[float64]int{}
	for _, row := range r.Rows {
		if row.Transform == "quarter" && row.Parameter == "90" && row.Trial != scores.MeanOverTrials && row.Layer == "conv" {
			id := row.Statistic + " " + row.Variant
			if values[id] == nil {
				values[id] = map[float64]int{}
			}
			values[id][row.Value]++
		}
	}
	if n := values["cosine "]; len(n) != 1 {
		t.Errorf("the distances of three trials are %v, want one value", n)
	}
	if n := values["null-equivariance "]; len(n) != 3 {
		t.Errorf("the nulls of three trials are %v, want three values", n)
	}
}

// TestFixedBatchKeepsScores compares a model whose graph fixes the batch size with one whose batch
// dimension is dynamic.
func TestFixedBatchKeepsScores(t *testing.T) {
	t.Parallel()
	dir, fixed := t.TempDir(), t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	testmodel.Write(t, fixed, "small", testmodel.Options{Batch: 4})
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "run"), o)
	got := studytest.Run(t, studytest.Parse(t, fixed, studytest.Text), filepath.Join(fixed, "run"), o)
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}

// TestDamagedStateStartsAgain truncates the saved accumulators of a shard, a run on half of the
// samples. The shard is computed again, with a warning for each file.
func TestDamagedStateStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	out := filepath.Join(dir, "run")
	o.Shard = study.Shard{Index: 1, Count: 2}
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o)
	files, _ := filepath.Glob(filepath.Join(out, "states", "*.log"))
	if len(files) == 0 {
		t.Fatal("the shard left no state")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, raw[:len(raw)-5], 0o666); err != nil {
			t.Fatal(err)
		}
	}
	warned := 0
	o.Warn = func(string) { warned++ }
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o)
	if warned != len(files) {
		t.Errorf("%d warnings, want one for each of %d damaged files", warned, len(files))
	}
}

// TestConcurrentRunsInOneFolder starts a second run in the folder of a first, in the middle of it.
// The less memory is allowed, the more passes (readings of the samples) a run needs.
func TestConcurrentRunsInOneFolder(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]string{"one pass": "1GiB", "many passes": "16KiB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			concurrentRuns(t, memory)
		})
	}
}

func concurrentRuns(t *testing.T, memory string) {
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := strings.Replace(studytest.Text, ", seis]", "]", 1) + "batch: 14\nmemory: " + memory + "\n"
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shared")
	o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9
	// The second run starts from the state that the first has saved. Both continue.
	second := make(chan error, 1)
	started := false
	first := o
	first.Progress = func(p study.Progress) {
		if p.Done > 300 && !started { // after half of the forward passes
			started = true
			go func() {
				_, err := study.Run(t.Context(), studytest.Parse(t, dir, text), out, o)
				second <- err
			}()
		}
	}
	got := studytest.Run(t, studytest.Parse(t, dir, text), out, first)
	if !started {
		t.Fatal("the second run did not start")
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
	again, err := study.ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, again.Rows, 1e-5)
}

// TestResolvedStudyHasTheSameCells runs the study.yaml that a run writes into its folder. It has
// the same cells (a measure of a model on a data set, under one transformation value, in one trial)
// as the study itself, however its numbers are written, so all are finished.
func TestResolvedStudyHasTheSameCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := strings.Replace(studytest.Text, "values: [90, 180]", "values: [0.50, +90, 1e-05]", 1)
	out := filepath.Join(dir, "run [1]") // as a glob pattern it does not match itself
	studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	resolved, err := study.Load(filepath.Join(out, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Progress = func(p study.Progress) { t.Errorf("the resolved study computes %s again", p.Model) }
	studytest.Run(t, resolved, out, o)
	if left, _ := os.ReadDir(filepath.Join(out, "states")); len(left) > 0 {
		t.Errorf("saved states remain after the run: %v", left)
	}
}
