//go:build cgo

package grad_test

import (
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// TestCeilMode checks gradients of pools with ceil_mode (sizes are rounded up) before opset 22,
// where the shape that ONNX Runtime infers also counts windows that start after the input's last
// element, which it does not compute. In these cases h has one such window, and w has one that
// exists only because of ceil_mode. From opset 16 on the gradient of MaxPool uses
// ScatterElements, which adds there. check compares gradients with finite differences, so elements
// are distinct (a maximum has no ties) or, for LpPool, positive: |x| has a kink at 0.
func TestCeilMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, op string
		opset    int
		attrs    onnx.Attrs
		h, w     int
	}{
		{"count_include_pad", "AveragePool", 11, onnx.Attrs{"kernel_shape": []int{2, 3}, "strides": []int{3, 2}, "pads": []int{0, 0, 1, 0}, "count_include_pad": 1}, 6, 6},
		{"padding excluded", "AveragePool", 11, onnx.Attrs{"kernel_shape": []int{2, 3}, "strides": []int{3, 2}, "pads": []int{0, 0, 1, 0}}, 6, 6},
		{"average with dilations", "AveragePool", 19, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{3, 5}, "dilations": []int{1, 4}, "pads": []int{0, 0, 1, 0}, "count_include_pad": 1}, 6, 8},
		{"maximum with dilations", "MaxPool", 12, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{3, 5}, "dilations": []int{1, 4}, "pads": []int{0, 0, 1, 0}}, 6, 8},
		{"maximum with dilations, by ScatterElements", "MaxPool", 16, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{3, 5}, "dilations": []int{1, 4}, "pads": []int{0, 0, 1, 0}}, 6, 8},
		{"LpPool with dilations", "LpPool", 18, onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{3, 5}, "dilations": []int{1, 4}, "pads": []int{0, 0, 1, 0}}, 6, 8},
		{"elements that no window reads", "MaxPool", 16, onnx.Attrs{"kernel_shape": []int{1, 2}, "strides": []int{3, 5}, "dilations": []int{1, 4}}, 5, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.attrs["ceil_mode"] = 1
			g := &generator{Rand: seed.Rand(17, c.name), opset: c.opset}
			x := g.distinct(2, 2, c.h, c.w)
			if c.op == "LpPool" {
				x = g.positive(2, 2, c.h, c.w)
			}
			tc := testCase{operands: []operand{x}, graph: func(b *onnx.Builder, in []onnx.Value) onnx.Value {
				y := b.Op(c.op, c.attrs, in[0])
				return b.Mul(y, y) // its gradient reads the output of the pool
			}}
			tc.check(t, c.op, c.opset, g.Rand)
		})
	}
}
