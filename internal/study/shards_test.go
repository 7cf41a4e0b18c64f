package study_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
)

// TestShardsMergeToTheWhole checks that runs of five shards (parts of the samples) merge to the
// scores of a run over all samples. A shard leaves states, the running sums of its measures, which
// Merge combines. studytest.Text has 150 samples.
func TestShardsMergeToTheWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 5; i++ {
		if i == 4 {
			_, err := study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out}, o)
			var missing *results.MissingShards
			if !errors.As(err, &missing) || fmt.Sprint(missing.Shards) != "[4/5 5/5]" {
				t.Fatalf("merging three of five shards: %v", err)
			}
		}
		part := o
		part.Shard = study.Shard{Index: i, Count: 5}
		studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, part)
	}
	if _, err := study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out, out + "2"}, o); err == nil || err.Error() != out+"2 is not a run folder" {
		t.Errorf("merging a folder that does not exist: error %v", err)
	}
	got, err := study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
	if left, _ := filepath.Glob(filepath.Join(out, "states", "*")); len(left) > 0 {
		t.Errorf("the merge leaves the states %v", left)
	}
	again, err := study.ReadResult(out)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, got.Rows, again.Rows, 0)
	unknown := o
	unknown.Version = "" // without a version the files of a finished run are written again
	reopened := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, unknown)
	studytest.SameScores(t, got.Rows, reopened.Rows, 0)
	cells, _, err := study.ReadCells(out)
	if err != nil {
		t.Fatal(err)
	}
	for how, r := range map[string]*study.Result{"merged": got, "reopened": reopened} {
		if d := cmp.Diff(cells, r.Cells, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: the cells of the result differ from those in the folder: %s", how, d)
		}
	}
}

// TestMoreShardsThanSamples checks that a study of fewer samples than shards merges to the scores
// of the whole, and that the merge does not need the shards without samples.
func TestMoreShardsThanSamples(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	// With so few samples all correlations of SEIS are 1 by chance.
	text := strings.NewReplacer("n: 150", "n: 4", ", seis]", "]").Replace(studytest.Text)
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "shards")
	layout := measure.NewLayout(4) // the samples in two blocks of 2; a shard has whole blocks
	empty := 0
	for i := 1; i <= 9; i++ {
		part := o
		part.Shard = study.Shard{Index: i, Count: 9}
		if lo, hi := part.Shard.Positions(layout); lo == hi {
			if empty++; empty > 1 {
				continue // only one of the empty shards runs
			}
		}
		studytest.Run(t, studytest.Parse(t, dir, text), out, part)
	}
	if empty < 5 {
		t.Errorf("%d of 9 shards of 4 samples are empty", empty)
	}
	got, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}

// TestShardRunTwice checks that a shard that two runs compute at once gives the same scores. This
// happens when a process is taken for dead and another one starts its shard. With less memory a run
// needs more passes, readings of the samples.
func TestShardRunTwice(t *testing.T) {
	t.Parallel()
	for name, memory := range map[string]string{"one pass": "1GiB", "many passes": "16KiB"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			testmodel.Write(t, dir, "small", testmodel.Options{})
			o := studytest.Options(t)
			o.Complete = true // the last shard to end finishes the cells (units of work)
			text := strings.Replace(studytest.Text, ", seis]", "]", 1) + "batch: 14\nmemory: " + memory + "\n"
			want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
			out := filepath.Join(dir, "shared")
			o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 // save the state after every batch
			var group errgroup.Group
			for _, part := range []study.Shard{{Index: 1, Count: 2}, {Index: 2, Count: 2}, {Index: 1, Count: 2}, {Index: 2, Count: 2}} {
				group.Go(func() error {
					o := o
					o.Shard = part
					_, err := study.Run(t.Context(), studytest.Parse(t, dir, text), out, o)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			// Two merges at once, and a third one at the end.
			for range 2 {
				group.Go(func() error {
					_, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			got, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
			if err != nil {
				t.Fatal(err)
			}
			studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
			if left, _ := filepath.Glob(filepath.Join(out, "states", "*")); len(left) > 0 {
				t.Errorf("the merge leaves the states %v", left)
			}
		})
	}
}

// TestFinishedShardIsNotOverwritten checks that a slow run of a shard does not overwrite the
// results of a faster one with a state that is not complete: then the merge would fail.
func TestFinishedShardIsNotOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := studytest.Text + "batch: 14\n"
	out := filepath.Join(dir, "shared")
	o.Shard, o.SaveInterval, o.SaveFraction = study.Shard{Index: 1, Count: 2}, time.Nanosecond, 1e9 // save the state after every batch
	slow := o
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	slow.Progress = func(p study.Progress) {
		if p.Done > 60 { // forward passes of a sample, a part of all
			studytest.Run(t, studytest.Parse(t, dir, text), out, o)
			cancel(stop)
		}
	}
	if _, err := study.Run(ctx, studytest.Parse(t, dir, text), out, slow); !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.Shard = study.Shard{Index: 2, Count: 2}
	studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	if _, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o); err != nil {
		t.Error(err)
	}
}
