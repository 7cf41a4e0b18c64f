// Package studytest runs studies in tests.
package studytest

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/scores"
)

// Text is a study of 150 images, with four forward passes for each: the clean image, rotations by
// 90 and 180 degrees, and a tilt by a random angle. The shift needs no forward pass.
const Text = `name: test
seed: 3
data: [{name: shapes, shapes: {n: 150, size: 16, seed: 2}}]
models:
  - {name: small, onnx: small.onnx, layers: ["op:Conv", "op:Relu", output]}
transforms:
  - {name: quarter, rotate: {values: [90, 180]}}
  - {name: tilt, rotate: [-15, 15], per: trial}
  - {name: shift, translate: [-0.2, 0.2], on: activations, per: trial}
measures: [accuracy, effective-invariance: {per-class: true}, prediction-divergence, distance, seis]
`

// Options returns the settings of a run.
func Options(t *testing.T) study.Options {
	t.Helper()
	return study.Options{Runtime: orttest.Load(t), Threads: 2, Version: "1.2.3"} // without a version the files of a finished run would be written again
}

// Parse parses a study as if it were in a folder.
func Parse(t *testing.T, dir, text string) *study.Study {
	t.Helper()
	s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Run runs a study in a folder.
func Run(t *testing.T, s *study.Study, dir string, o study.Options) *study.Result {
	t.Helper()
	r, err := study.Run(t.Context(), s, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Pictures returns the pictures of a run folder.
func Pictures(t *testing.T, dir string) fs.FS {
	t.Helper()
	set, err := pictures.Open(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	return set
}

// SameScores compares two runs: the same rows, with values within a tolerance.
func SameScores(t *testing.T, want, got []scores.Row, tolerance float64) {
	t.Helper()
	if len(want) == 0 || len(want) != len(got) {
		t.Fatalf("%d rows, want %d, and at least one", len(got), len(want))
	}
	near := func(a, b float64) bool {
		return math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) <= tolerance*max(1, math.Abs(a))
	}
	for i, w := range want {
		g := got[i]
		if !near(w.Value, g.Value) || !near(w.Null, g.Null) || !near(w.Low, g.Low) || !near(w.High, g.High) {
			t.Errorf("row %d: %s %s %s %s %s: %v [%v, %v] null %v, want %v [%v, %v] null %v", i, w.Measure, w.Statistic, w.Layer, w.Transform, w.Parameter,
				g.Value, g.Low, g.High, g.Null, w.Value, w.Low, w.High, w.Null)
		}
		// p-values follow from these, and adjusted ones from all rows of a table.
		w.Value, w.Null, w.Low, w.High, w.P, w.PAdjusted = 0, 0, 0, 0, 0, 0
		g.Value, g.Null, g.Low, g.High, g.P, g.PAdjusted = 0, 0, 0, 0, 0, 0
		if w != g {
			t.Errorf("row %d is %+v, want %+v", i, g, w)
		}
	}
}
