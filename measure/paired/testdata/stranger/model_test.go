package stranger

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether"
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// The layer is the mean of each channel minus a half, which a flip does not change.
func TestModel(t *testing.T) {
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	b.Output("centred", b.Sub(b.Op("GlobalAveragePool", nil, x), b.Scalar(0.5)))
	graph, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := graph.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "centred.onnx")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	m, err := noether.Open(path, noether.ModelOptions{Layers: []string{"centred"}})
	if err != nil {
		t.Fatal(err)
	}
	shapes, err := dataset.OpenShapes(dataset.ShapesOptions{N: 40, Size: 16})
	if err != nil {
		t.Fatal(err)
	}
	layers, err := noether.Measure(t.Context(), m, shapes, transform.Flip{}, SignAgreement())
	if err != nil {
		t.Fatal(err)
	}
	if s := layers[0].Scores[0]; len(layers) != 1 || s.Statistic != "agreement" || s.Value != 1 || s.N != 40 {
		t.Errorf("scores %+v, want an agreement of 1 on 40 samples", layers)
	}
}
