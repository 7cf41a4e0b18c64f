package blocks

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// TestRestored checks that of a quantised network the tensors after DequantizeLinear are chosen,
// with which it computes, unless the tensors before are read too.
func TestRestored(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	scale := b.Scalar(0.1)
	restore := func(x onnx.Value) onnx.Value {
		return b.Op("DequantizeLinear", nil, b.Op("QuantizeLinear", nil, x, scale), scale)
	}
	x := b.Input("x", onnx.Float, -1, 3, 8, 8)
	a := b.Conv(x, b.Full(0.1, 4, 3, 1, 1), "", nil)
	ra := restore(a)
	c := b.Conv(ra, b.Full(0.1, 4, 4, 1, 1), "", nil)
	y := b.Add(restore(c), c)
	b.Output("y", y)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	got := restored(m)
	if len(got) != 1 || got[string(a)] != string(ra) {
		t.Errorf("restored %v, want %s for %s", got, ra, a)
	}
	layers := m.Layers()
	for i := range layers {
		layers[i].Axes, layers[i].Shape = "NCHW", []int{4, 8, 8}
	}
	for _, l := range Choose(m, "x", "y", layers) {
		if l.Name == string(a) {
			t.Errorf("%s is chosen, which only the quantisation reads", a)
		}
	}
}
