package plan

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestLabelsAreModelOutputs checks that forModel replaces the labels of the data by the indices of
// the model's outputs for these classes. Entry.Classes lists the output for each class, here in
// reverse: output 7 for class 0, and output 0 for class 7.
func TestLabelsAreModelOutputs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	s, err := catalog.Parse(filepath.Join(dir, "study.yaml"), []byte(`name: labels
data: [{name: shapes, shapes: {n: 150, size: 16, seed: 2}}]
models: [{name: small, onnx: small.onnx}]
measures: [accuracy]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := New(t.Context(), s, Options{Runtime: orttest.Load(t), Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	d := plan.Data[0]
	d.Entry.Classes = []string{"7", "6", "5", "4", "3", "2", "1", "0"}
	// A model without class outputs leaves the labels as they are.
	plain, err := d.forModel(0, nil).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reversed := d.forModel(8, nil) // a model with 8 outputs without names
	if reversed.mismatch != nil {
		t.Fatal(reversed.mismatch)
	}
	got, err := reversed.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if got[i].Label != 7-plain[i].Label {
			t.Fatalf("sample %d has label %d, and %d for a model with reversed outputs", i, plain[i].Label, got[i].Label)
		}
	}
}
