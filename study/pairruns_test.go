package study

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
)

func TestPairScoresDoNotDependOnHowTheyAreComputed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	small := correlation{cost: 1 << 10}
	want := mustRun(t, pairsStudy(t, dir, "", small, allPairs...), filepath.Join(dir, "whole"), o)
	for name, change := range map[string]func(*Study, *Options){
		"batch 1":            func(s *Study, _ *Options) { s.Batch = 1 },
		"batch 7":            func(s *Study, _ *Options) { s.Batch = 7 },
		"one thread":         func(_ *Study, o *Options) { o.Threads = 1 },
		"saved all the time": func(s *Study, o *Options) { s.Batch = 13; o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := pairsStudy(t, dir, "", small, allPairs...), o
			change(s, &o)
			sameScores(t, want.Rows, mustRun(t, s, filepath.Join(t.TempDir(), "run"), o).Rows, 1e-5)
		})
	}
	t.Run("pairs of one grid in several passes", func(t *testing.T) {
		t.Parallel()
		most := 0
		o := o
		o.Progress = func(p Progress) { most = max(most, p.Passes) }
		s := pairsStudy(t, dir, "memory: 100KiB\n", correlation{cost: 30 << 10}, allPairs...)
		got := mustRun(t, s, filepath.Join(t.TempDir(), "run"), o)
		if most < 5 {
			t.Errorf("%d passes: the bound on memory has had no effect", most)
		}
		sameScores(t, want.Rows, got.Rows, 1e-5)
	})
}

func TestShardsOfPairsMergeToTheWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	c := correlation{cost: 30 << 10}
	study := func() *Study { return pairsStudy(t, dir, "memory: 100KiB\n", c, allPairs...) }
	want := mustRun(t, study(), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 3; i++ {
		part := o
		part.Shard = Shard{Index: i, Count: 3}
		mustRun(t, study(), out, part)
	}
	got, err := Merge(t.Context(), study(), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, want.Rows, got.Rows, 1e-5)
}

func TestStoppedRunOfPairsResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	study := func() *Study {
		return pairsStudy(t, dir, "batch: 16\nmemory: 200KiB\n", correlation{cost: 30 << 10}, allPairs...)
	}
	want := mustRun(t, study(), filepath.Join(dir, "whole"), o)
	stop := errors.New("stop")
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		part, ticks := o, 0
		part.Warn = func(text string) { t.Errorf("a warning: %s", text) }
		part.Progress = func(Progress) {
			if ticks++; ticks > 29 { // reports of progress
				cancel(stop)
			}
		}
		got, err := Run(ctx, study(), filepath.Join(dir, "stopped"), part)
		cancel(nil)
		if err == nil {
			if stops < 3 {
				t.Fatalf("the run ended after %d stops: the test tests nothing", stops)
			}
			sameScores(t, want.Rows, got.Rows, 1e-5)
			return
		}
		if !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
}

// TestPairsAreFedWithTheSameSamples checks that a model and a copy of it under another name
// correlate by 1 at each layer, clean and under a transformation.
func TestPairsAreFedWithTheSameSamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	testmodel.Write(t, dir, "two", testmodel.Options{Poison: 0})
	o := options(t)
	s := pairsStudy(t, dir, "", correlation{}, "between: [[one, one], [one, two], [two, one]], layers: same")
	for i := range s.Models {
		s.Models[i].Layers = []string{"conv", "logits"}
	}
	s.Models[1].ONNX = s.Models[0].ONNX // two is one under another name
	r := mustRun(t, s, filepath.Join(dir, "run"), o)
	for _, transform := range []string{"", "quarter"} {
		rows := append(rowsOf(r, "one", "two", transform), rowsOf(r, "two", "one", transform)...)
		if len(rows) == 0 {
			t.Errorf("no scores under %q", transform)
		}
		for _, row := range rows {
			if math.Abs(row.Value-1) > 1e-6 {
				t.Errorf("a model and its copy correlate by %v at %s under %q", row.Value, row.Layer, row.Transform)
			}
		}
	}
}

func TestModelsOfAPairRunOnceForAllTheirPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	p, err := NewPlan(t.Context(), pairsStudy(t, dir, "", correlation{}, "between: all"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cost, err := Estimate(t.Context(), p, "", o)
	if err != nil {
		t.Fatal(err)
	}
	last := cost[len(cost)-1]
	if last.Model != "one, two, big" || last.Passes != 1 || last.Cells != 9 || last.Forwards != 150*3*3 {
		t.Errorf("three pairs of three models, clean and under two rotations, cost %+v", last)
	}
}

// TestRunsOfSingleModelsCoverAllPairs checks that each pair is computed with its first model, for
// any division of a study into runs of single models.
func TestRunsOfSingleModelsCoverAllPairs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePairs(t, dir)
	o := options(t)
	study := func() *Study {
		return pairsStudy(t, dir, "", correlation{}, "between: [[one, two], [two, big], [big, one]]")
	}
	want := mustRun(t, study(), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "divided")
	for _, model := range []string{"two", "one", "big"} {
		part := o
		part.Only = []string{model}
		part.Progress = func(p Progress) {
			if !strings.HasPrefix(p.Model, model) {
				t.Errorf("a run of %s runs %s", model, p.Model)
			}
		}
		mustRun(t, study(), out, part)
	}
	got, err := Merge(t.Context(), study(), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, want.Rows, got.Rows, 1e-9)
}
