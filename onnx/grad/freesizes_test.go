//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// TestDynamicAxesOfSizeOne checks gradients where a dynamic axis, whose size is declared as -1, has
// size 1 when the graph runs and is broadcast. They must equal those of the same graph with
// declared sizes.
func TestDynamicAxesOfSizeOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		graph func(b *onnx.Builder, x, w onnx.Value) onnx.Value
	}{
		{"sum and product", func(b *onnx.Builder, x, w onnx.Value) onnx.Value { return b.Mul(b.Add(x, w), x) }},
		{"sum of sums", func(b *onnx.Builder, x, w onnx.Value) onnx.Value { return b.Exp(b.Add(b.Add(x, w), b.Add(x, x))) }},
		{"products of matrices", func(b *onnx.Builder, x, w onnx.Value) onnx.Value {
			x = b.Unsqueeze(x, 2, 3)
			return b.Mul(b.MatMul(x, b.Unsqueeze(w, 2, 3)), x)
		}},
		{"unknown rank", func(b *onnx.Builder, x, w onnx.Value) onnx.Value { // Squeeze without axes
			y := b.Op("Squeeze", nil, b.Unsqueeze(b.Mul(x, w), 0))
			return b.Mul(b.Mul(y, y), y)
		}},
	} {
		for _, sizes := range [][2]int{{1, 4}, {4, 1}, {4, 4}, {1, 1}} {
			for _, opset := range []int{13, 18} {
				x, w := operand{shape: []int{3, sizes[0]}}, operand{shape: []int{3, sizes[1]}}
				for i := range 3 * sizes[0] {
					x.floats = append(x.floats, float32(i%5)/2-1)
				}
				for i := range 3 * sizes[1] {
					w.floats = append(w.floats, float32(i%7)/3-0.75)
				}
				// gradients returns those by x and w; dynamic says for each whether its second axis
				// is.
				gradients := func(dynamic ...bool) (list [][]float32, shapes [][]int) {
					b := onnx.NewBuilder(opset)
					declared := func(size int, dynamic bool) int {
						if dynamic {
							return -1
						}
						return size
					}
					in := []onnx.Value{b.Input("x0", onnx.Float, 3, declared(sizes[0], dynamic[0])), b.Input("x1", onnx.Float, 3, declared(sizes[1], dynamic[1]))}
					y := c.graph(b, in[0], in[1])
					dx, err := grad.Of(b, b.ReduceSum(b.Mul(y, y), false), "", in...)
					if err != nil {
						t.Fatalf("%s: %v", c.name, err)
					}
					addOutputWithShape(b, "dx", dx[0])
					addOutputWithShape(b, "dw", dx[1])
					for _, v := range compile(t, build(t, b)).run(t, map[string]operand{"x0": x, "x1": w}) {
						list, shapes = append(list, v.Data), append(shapes, v.Shape)
					}
					return list, shapes
				}
				want, shapes := gradients(false, false)
				for _, dynamic := range [][]bool{{true, false}, {false, true}, {true, true}} {
					got, gotShapes := gradients(dynamic...)
					for k := range want {
						if !slices.Equal(gotShapes[k], shapes[k]) || !(maxDifference(got[k], want[k]) <= 1e-5*max(1, maxAbs(want[k]))) {
							t.Errorf("%s, sizes %v, dynamic %v, opset %d: gradient %d is %v of shape %v, want %v of %v", c.name, sizes, dynamic, opset, k, got[k], gotShapes[k], want[k], shapes[k])
						}
					}
				}
			}
		}
	}
}
