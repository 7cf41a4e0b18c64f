package study

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// studyText (helpers_test.go) has 150 samples and needs 600 forward passes: the clean (not
// transformed) samples, two values of quarter, and one draw of tilt. A run stores the state of
// unfinished accumulators (running sums of measures) at most once per SaveInterval, and spends at
// most SaveFraction of its time on that. sameScores compares rows within a tolerance, which is
// relative for values above 1.

func TestScoresDoNotDependOnHowTheyAreComputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	want := mustRun(t, parseIn(t, dir, studyText), filepath.Join(dir, "whole"), o)

	for name, change := range map[string]func(*Study, *Options){
		"batch 1":                    func(s *Study, _ *Options) { s.Batch = 1 },
		"batch 7":                    func(s *Study, _ *Options) { s.Batch = 7 },
		"one thread":                 func(_ *Study, o *Options) { o.Threads = 1 },
		"saved as often as possible": func(s *Study, o *Options) { s.Batch = 13; o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := parseIn(t, dir, studyText), o
			change(s, &o)
			sameScores(t, want.Rows, mustRun(t, s, filepath.Join(t.TempDir(), "run"), o).Rows, 1e-5)
		})
	}
}

// TestMemoryBoundKeepsScores checks that a run gives the same scores if a bound on memory makes it
// read the samples several times, in passes.
func TestMemoryBoundKeepsScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	text := strings.Replace(studyText, "distance, seis]", "distance, seis: {interval: false}]", 1)
	want := mustRun(t, parseIn(t, dir, text), filepath.Join(dir, "whole"), o)
	var passes int
	o.Progress = func(p Progress) { passes = max(passes, p.Passes) }
	got := mustRun(t, parseIn(t, dir, text+"memory: 400KiB\n"), filepath.Join(dir, "passes"), o)
	if passes < 2 {
		t.Fatalf("%d passes, want at least 2: the bound on memory has had no effect", passes)
	}
	sameScores(t, want.Rows, got.Rows, 1e-9)
}

// TestStoppedRunResumes stops a run after every 10 progress reports until it ends.
func TestStoppedRunResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	text := studyText + "batch: 16\n"
	want := mustRun(t, parseIn(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "stopped")
	stop := errors.New("stop")
	var remaining int64 // forward passes of the last run, counted in samples
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := o
		reports := 0
		stopped.Progress = func(p Progress) {
			if reports++; reports > 9 {
				cancel(stop)
			}
			remaining = p.Total
		}
		got, err := Run(ctx, parseIn(t, dir, text), out, stopped)
		cancel(nil)
		if err == nil {
			if stops < 3 {
				t.Fatalf("the run ended after %d stops, want at least 3", stops)
			}
			if remaining >= 150*4 {
				t.Errorf("the last run has %d forward passes, want fewer than all 600: nothing was saved", remaining)
			}
			sameScores(t, want.Rows, got.Rows, 1e-5)
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
	text := strings.Replace(studyText, "transforms:", "  - {name: other, onnx: other.onnx, layers: [output]}\ntransforms:", 1)
	out := filepath.Join(dir, "run")
	o := options(t)
	mustRun(t, parseIn(t, dir, text), out, o)
	models := map[string]bool{}
	o.Progress = func(p Progress) { models[p.Model] = true }
	mustRun(t, parseIn(t, dir, text), out, o)
	if len(models) > 0 {
		t.Errorf("a finished run computes %v again", models)
	}
	testmodel.Write(t, dir, "other", testmodel.Options{Poison: 1}) // other weights under the same name
	mustRun(t, parseIn(t, dir, text), out, o)
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
	text := strings.Replace(studyText, "measures:", "trials: 3\nmeasures:", 1)
	opened, err := NewPlan(t.Context(), parseIn(t, dir, text), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var forwards int64
	for _, p := range plan.Passes(opened.Cells, plan.Limits{Memory: 1 << 30, Cores: 2}, Shard{}) {
		forwards += p.Forwards()
	}
	if want := int64(150 * (1 + 2 + 3)); forwards != want { // clean, quarter at 2 values, tilt in 3 trials; shift transforms activations
		t.Errorf("%d forward passes, want %d", forwards, want)
	}
	r := mustRun(t, parseIn(t, dir, text), filepath.Join(dir, "run"), options(t))
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
	o := options(t)
	want := mustRun(t, parseIn(t, dir, studyText), filepath.Join(dir, "run"), o)
	got := mustRun(t, parseIn(t, fixed, studyText), filepath.Join(fixed, "run"), o)
	sameScores(t, want.Rows, got.Rows, 1e-5)
}

// TestDamagedStateStartsAgain truncates the saved accumulators of a shard, a run on half of the
// samples. The shard is computed again, with a warning for each file.
func TestDamagedStateStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	out := filepath.Join(dir, "run")
	o.Shard = Shard{Index: 1, Count: 2}
	mustRun(t, parseIn(t, dir, studyText), out, o)
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
	mustRun(t, parseIn(t, dir, studyText), out, o)
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
	o := options(t)
	text := strings.Replace(studyText, ", seis]", "]", 1) + "batch: 14\nmemory: " + memory + "\n"
	want := mustRun(t, parseIn(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shared")
	o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9
	// The second run starts from the state that the first has saved. Both continue.
	second := make(chan error, 1)
	started := false
	first := o
	first.Progress = func(p Progress) {
		if p.Done > 300 && !started { // after half of the forward passes
			started = true
			go func() {
				_, err := Run(t.Context(), parseIn(t, dir, text), out, o)
				second <- err
			}()
		}
	}
	got := mustRun(t, parseIn(t, dir, text), out, first)
	if !started {
		t.Fatal("the second run did not start")
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	sameScores(t, want.Rows, got.Rows, 1e-5)
	again, err := ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, want.Rows, again.Rows, 1e-5)
}

// TestResolvedStudyHasTheSameCells runs the study.yaml that a run writes into its folder. It has
// the same cells (a measure of a model on a data set, under one transformation value, in one trial)
// as the study itself, however its numbers are written, so all are finished.
func TestResolvedStudyHasTheSameCells(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := options(t)
	text := strings.Replace(studyText, "values: [90, 180]", "values: [0.50, +90, 1e-05]", 1)
	out := filepath.Join(dir, "run [1]") // as a glob pattern it does not match itself
	mustRun(t, parseIn(t, dir, text), out, o)
	resolved, err := Load(filepath.Join(out, "study.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Progress = func(p Progress) { t.Errorf("the resolved study computes %s again", p.Model) }
	mustRun(t, resolved, out, o)
	if left, _ := os.ReadDir(filepath.Join(out, "states")); len(left) > 0 {
		t.Errorf("saved states remain after the run: %v", left)
	}
}
