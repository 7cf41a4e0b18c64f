package onnx_test

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// Engines leave a window out that begins in the padding behind; with the pads that PlainPools gives, it is not inferred either.
func TestPlainPools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opset int
		attrs onnx.Attrs
		shape [2]int
		pads  string
	}{
		"left out on one axis, added on the other": {17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}}, [2]int{4, 3}, "[0 0 1 1]"},
		"none left out":      {17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 2}}, [2]int{4, 5}, "[]"},
		"the standard's own": {22, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}}, [2]int{4, 3}, "[0 0 0 1]"},
		"padding that counts": {17, onnx.Attrs{"kernel_shape": []int{3, 2}, "strides": []int{2, 3}, "pads": []int{0, 0, 0, 1}, "count_include_pad": 1},
			[2]int{4, 3}, "[0 0 0 1]"},
	} {
		b := onnx.NewBuilder(c.opset)
		c.attrs["ceil_mode"] = 1
		y := b.Op("AveragePool", c.attrs, b.Input("x", onnx.Float, -1, 2, 8, 9))
		b.PlainPools()
		if b.Err() != nil {
			t.Fatal(b.Err())
		}
		n := b.Nodes()[0]
		if got := fmt.Sprint(onnx.AttrInts(n, "pads")); got != c.pads {
			t.Errorf("%s: pads %s, want %s", name, got, c.pads)
		}
		if plain := onnx.AttrInt(n, "ceil_mode", 0) == 0; plain != (name[:4] == "left") {
			t.Errorf("%s: ceil_mode is gone: %v", name, plain)
		}
		if s := b.Static().Shape(string(y)); s[2] != c.shape[0] || s[3] != c.shape[1] {
			t.Errorf("%s: shape %v, want %v", name, s, c.shape)
		}
	}
}
