package onnx_test

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
)

func TestOrigin(t *testing.T) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3)
	y := b.Relu(x)
	once := b.Identity(y)
	twice := b.Identity(once)
	copied := b.Identity(x)
	m := b.Snapshot()
	for name, want := range map[onnx.Value]onnx.Value{x: x, y: y, once: y, twice: y, copied: copied, "absent": "absent"} {
		if got := m.Origin(string(name)); got != string(want) {
			t.Errorf("%s is a copy of %s, want %s", name, got, want)
		}
	}
}
