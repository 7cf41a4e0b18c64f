package run_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// The studies of these tests (pairsStudy in between_test.go) compare pairs of layers by
// correlation (correlation_test.go), whose cost is the memory for one pair in bytes. allPairs are
// pairs of two models, of a model with itself, and of a layer on clean (not transformed) and on
// transformed images. A grid is the set of layer pairs of two models that one accumulator (running
// sums) measures. A pass is one reading of the samples: if the pairs
// exceed the bound on memory, a run has several.

func TestPairScoresDoNotDependOnHowTheyAreComputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	small := correlation{cost: 1 << 10}
	want := studytest.Run(t, pairsStudy(t, dir, "", small, allPairs...), filepath.Join(dir, "whole"), o)
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
			s, o := pairsStudy(t, dir, "", small, allPairs...), o
			change(s, &o)
			studytest.SameScores(t, want.Rows, studytest.Run(t, s, filepath.Join(t.TempDir(), "run"), o).Rows, 1e-5)
		})
	}
	t.Run("pairs of one grid in several passes", func(t *testing.T) {
		t.Parallel()
		passes := 0
		o := o
		o.Progress = func(p study.Progress) { passes = max(passes, p.Passes) }
		s := pairsStudy(t, dir, "memory: 100KiB\n", correlation{cost: 30 << 10}, allPairs...)
		got := studytest.Run(t, s, filepath.Join(t.TempDir(), "run"), o)
		if passes < 5 {
			t.Errorf("%d passes, want at least 5: the bound on memory has had too little effect", passes)
		}
		studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
	})
}

// TestMergedShardsOfPairsEqualWholeRun runs each third of the samples (a shard) separately.
func TestMergedShardsOfPairsEqualWholeRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	c := correlation{cost: 30 << 10}
	newStudy := func() *study.Study { return pairsStudy(t, dir, "memory: 100KiB\n", c, allPairs...) }
	want := studytest.Run(t, newStudy(), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 3; i++ {
		sharded := o
		sharded.Shard = study.Shard{Index: i, Count: 3}
		studytest.Run(t, newStudy(), out, sharded)
	}
	got, err := study.Merge(t.Context(), newStudy(), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}

// TestStoppedRunOfPairsResumes stops a run after every 30 progress reports until it ends.
func TestStoppedRunOfPairsResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	newStudy := func() *study.Study {
		return pairsStudy(t, dir, "batch: 16\nmemory: 200KiB\n", correlation{cost: 30 << 10}, allPairs...)
	}
	want := studytest.Run(t, newStudy(), filepath.Join(dir, "whole"), o)
	stop := errors.New("stop")
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped, reports := o, 0
		stopped.Warn = func(text string) { t.Errorf("a warning: %s", text) }
		stopped.Progress = func(study.Progress) {
			if reports++; reports > 29 {
				cancel(stop)
			}
		}
		got, err := study.Run(ctx, newStudy(), filepath.Join(dir, "stopped"), stopped)
		cancel(nil)
		if err == nil {
			if stops < 3 {
				t.Fatalf("the run ended after %d stops, want at least 3", stops)
			}
			studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
			return
		}
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// TestPairsReadTheSameSamples checks that at each layer the correlation of a model with a copy of
// it under another name is 1, clean and under a transformation.
func TestPairsReadTheSameSamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	testmodel.Write(t, dir, "two", testmodel.Options{Poison: 0})
	o := studytest.Options(t)
	s := pairsStudy(t, dir, "", correlation{}, "between: [[one, one], [one, two], [two, one]], layers: same")
	for i := range s.Models {
		s.Models[i].Layers = []string{"conv", "logits"}
	}
	s.Models[1].ONNX = s.Models[0].ONNX // two is one under another name
	r := studytest.Run(t, s, filepath.Join(dir, "run"), o)
	for _, transform := range []string{"", "quarter"} {
		rows := append(rowsOf(r, "one", "two", transform), rowsOf(r, "two", "one", transform)...)
		if len(rows) == 0 {
			t.Errorf("no scores under %q", transform)
		}
		for _, row := range rows {
			if math.Abs(row.Value-1) > 1e-6 {
				t.Errorf("the correlation of a model with its copy is %v at %s under %q, want 1", row.Value, row.Layer, row.Transform)
			}
		}
	}
}

// TestModelsRunOnceForAllTheirPairs checks the cost of three pairs of three models, clean and under
// the two values of quarter (rotations by 90 and by 180 degrees): each of 150 samples runs once
// through each model for each of these three. A cell is a pair of models in one of the three.
func TestModelsRunOnceForAllTheirPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	p, err := study.NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: all"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cost, err := study.Estimate(t.Context(), p, "", o)
	if err != nil {
		t.Fatal(err)
	}
	last := cost[len(cost)-1]
	if last.Model != "one, two, big" || last.Passes != 1 || last.Cells != 9 || last.Forwards != 150*3*3 {
		t.Errorf("the cost is %+v, want 9 cells in one pass and 1,350 forward passes", last)
	}
}

// TestRunsOfSingleModelsCoverAllPairs checks that each pair is computed with its first model, for
// any division of a study into runs of single models, which Options.Only selects.
func TestRunsOfSingleModelsCoverAllPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := studytest.Options(t)
	newStudy := func() *study.Study {
		return pairsStudy(t, dir, "", correlation{}, "between: [[one, two], [two, big], [big, one]]")
	}
	want := studytest.Run(t, newStudy(), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "divided")
	for _, model := range []string{"two", "one", "big"} {
		single := o
		single.Only = []string{model}
		single.Progress = func(p study.Progress) {
			if !strings.HasPrefix(p.Model, model) {
				t.Errorf("a run of %s runs %s", model, p.Model)
			}
		}
		studytest.Run(t, newStudy(), out, single)
	}
	got, err := study.Merge(t.Context(), newStudy(), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-9)
}
