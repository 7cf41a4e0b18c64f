package plan

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestCellKeyIsStable checks that the keys of cells do not change. A cell is a measure for one
// model, data set, value of a transformation and trial (repetition of the random draws). Its key
// names the file of its results in a run folder, so a changed key would discard earlier results.
func TestCellKeyIsStable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), []byte(`name: key
data: [{name: shapes, shapes: {n: 20, size: 16, seed: 2}}]
models: [{name: small, onnx: small.onnx}]
transforms: [{name: turn, rotate: {values: [90, 180]}}]
measures: [invariance]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	// want was recorded from this program.
	if got, want := plan.Cells[0].Key, "67895c8f13b32745d42e83d2"; got != want {
		t.Errorf("the key of %s is %s, want %s", plan.Cells[0], got, want)
	}
}
