package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// searchText is a study of two networks whose values a search chooses, with the limit of the
// tolerance to fill in.
const searchText = `name: search
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models:
  - {name: small, onnx: small.onnx, layers: [output]}
  - {name: other, onnx: other.onnx, layers: [output]}
transforms: [{name: tilt, rotate: {values: auto, range: [0, 64]}, tolerance: distance.l2 <= %v}]
measures: [distance, effective-invariance]
pictures: 0
batch: 16
`

// tiltPoints returns the breaking points of the models of a run.
func tiltPoints(t *testing.T, r *study.Result, limit float64) []scores.BreakingPoint {
	t.Helper()
	tolerance, err := scores.ParseTolerance(fmt.Sprintf("distance.l2 <= %v", limit))
	if err != nil {
		t.Fatal(err)
	}
	points, err := scores.BreakingPoints(r.Rows, tolerance, func(string) (float64, error) { return 0, nil })
	if err != nil || len(points) != 2 {
		t.Fatalf("%v, %v", points, err)
	}
	return points
}

func tried(r *study.Result) []string {
	return scores.DistinctValues(r.Rows, func(r *scores.Row) string { return r.Parameter })
}

// TestSearchAgreesWithFineGrid compares the breaking points that a search finds with those of a
// fine grid, and checks that a search that is stopped in each round, or run again, has the same
// scores, and that it refuses to run in parts.
func TestSearchAgreesWithFineGrid(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	o := studytest.Options(t)
	var grid []string
	for v := 0; v <= 64; v += 2 {
		grid = append(grid, fmt.Sprint(v))
	}
	fineText := strings.Replace(fmt.Sprintf(searchText, 1), "values: auto, range: [0, 64]", "values: ["+strings.Join(grid, ", ")+"]", 1)
	fine := studytest.Run(t, studytest.Parse(t, dir, fineText), filepath.Join(dir, "fine"), o)
	at := slices.IndexFunc(fine.Rows, func(r scores.Row) bool {
		return r.Measure == "distance" && r.Statistic == "l2" && r.Parameter == "26"
	})
	limit := fine.Rows[at].Value
	want := tiltPoints(t, fine, limit)
	text := fmt.Sprintf(searchText, limit)
	found := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "auto"), o)
	got := tiltPoints(t, found, limit)
	for i, w := range want {
		g := got[i]
		t.Logf("%s: %s by a search of %d values, %s by a grid of %d", g.Row.Model, g, len(tried(found)), w, len(tried(fine)))
		if g.State != w.State || g.State == scores.Found && (!(g.Low <= w.Strength && w.Strength <= g.High) || math.Abs(g.Strength-w.Strength) > (g.High-g.Low)/4) {
			t.Errorf("%s: %s, want %s", g.Row.Model, g, w)
		}
	}
	if n := len(tried(found)); n > len(tried(fine))/2 || want[0].State != scores.Found {
		t.Errorf("%d values were tried, of a grid of %d, for %s", n, len(tried(fine)), want[0])
	}

	if again := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "auto"), o); !again.Unchanged {
		t.Error("a finished search is run again")
	}
	resolved, err := os.ReadFile(filepath.Join(dir, "auto", "study.yaml"))
	if err != nil || strings.Contains(string(resolved), "auto,") {
		t.Errorf("the resolved study does not list the values: %s, %v", resolved, err)
	}

	// Stopped after every report of progress, it ends with the same scores.
	out := filepath.Join(dir, "stopped")
	stop := errors.New("stop")
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := o
		reports := 0
		stopped.Progress = func(study.Progress) {
			if reports++; reports > 9 {
				cancel(stop)
			}
		}
		r, err := study.Run(ctx, studytest.Parse(t, dir, text), out, stopped)
		cancel(nil)
		if err == nil {
			studytest.SameScores(t, found.Rows, r.Rows, 1e-9)
			if stops == 0 {
				t.Error("the search was never stopped")
			}
			break
		}
		if stops > 100 || !errors.Is(err, stop) && !errors.Is(err, context.Canceled) {
			t.Fatalf("stop %d: %v", stops, err)
		}
	}

	for name, change := range map[string]func(*study.Options){
		"a shard":      func(o *study.Options) { o.Shard = study.Shard{Index: 1, Count: 2} },
		"of one model": func(o *study.Options) { o.Only = []string{"small"} },
	} {
		part := o
		change(&part)
		if _, err := study.Run(t.Context(), studytest.Parse(t, dir, text), filepath.Join(dir, "part"), part); err == nil || !strings.Contains(err.Error(), "run the study as a whole") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
