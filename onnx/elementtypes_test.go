package onnx_test

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// TestElementTypesOfAttributes checks the element types of outputs that an attribute of the
// operator names, and the defaults without the attribute. No node runs, so the operators that need
// other inputs than the number 8 get it too.
func TestElementTypesOfAttributes(t *testing.T) {
	t.Parallel()
	double := onnx.Attrs{"output_datatype": onnx.Double}
	for _, c := range []struct {
		op    string
		attrs onnx.Attrs
		want  onnx.Type
	}{
		{"HannWindow", double, onnx.Double},
		{"HammingWindow", nil, onnx.Float},
		{"MelWeightMatrix", double, onnx.Double},
		{"MelWeightMatrix", nil, onnx.Float},
		{"RandomNormal", onnx.Attrs{"dtype": onnx.Double}, onnx.Double},
		{"QuantizeLinear", onnx.Attrs{"output_dtype": onnx.Int8}, onnx.Int8},
		{"QuantizeLinear", nil, onnx.Uint8},
	} {
		b := onnx.NewBuilder(21) // the first operator set with the attribute output_dtype
		y := b.Op(c.op, c.attrs, b.Int(8))
		if got := b.Snapshot().ElementTypes()[string(y)]; got != c.want {
			t.Errorf("%s with %v: %v, want %v", c.op, c.attrs, got, c.want)
		}
	}
}
