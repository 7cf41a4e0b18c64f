//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// In a network whose layers each read all those before, the gradient of what an earlier Concat has
// joined goes there in one piece. The gradient by that Concat's own output is still that of its own
// readers alone.
func TestDenseConcat(t *testing.T) {
	t.Parallel()
	differentiate := func(by ...string) (int, []float32) {
		b := onnx.NewBuilder(13)
		x := b.Input("x", onnx.Float, 2, 3)
		layers := []onnx.Value{x}
		for i := range 6 {
			layers = append(layers, b.Mul(b.ReduceSum(b.Concat(1, layers...), true, 1), b.Scalar(float32(i)-1.5)))
		}
		var values []onnx.Value
		for _, v := range by {
			values = append(values, onnx.Value(v))
		}
		dx, err := grad.Of(b, b.Concat(1, layers...), "", values...)
		if err != nil {
			t.Fatal(err)
		}
		observe(b, "dx", dx[0])
		m := build(t, b)
		count := 0
		for _, n := range m.Nodes() {
			if n.GetOpType() == "Slice" {
				count++
			}
		}
		feed := map[string]operand{"x": {shape: []int{2, 3}, floats: []float32{1, 2, 3, 4, 5, 6}}}
		return count, compile(t, m).run(t, feed)[0].Data
	}
	// d[k] is the gradient by the k-th layer of the sum of all: 1 and what later layers pass on.
	d := make([]float32, 7)
	for k := range slices.Backward(d) {
		d[k] = 1
		for later := k + 1; later < len(d); later++ {
			d[k] += d[later] * (float32(later-1) - 1.5)
		}
	}
	slicesOf6, dx := differentiate("x")
	if slicesOf6 > 12 {
		t.Errorf("%d slices: a layer is cut out of each later one", slicesOf6)
	}
	if want := slices.Repeat([]float32{d[0]}, 6); !slices.Equal(dx, want) {
		t.Errorf("dx is %v, want %v", dx, want)
	}
	_, direct := differentiate("Concat_2") // read by the third layer only
	if want := slices.Repeat([]float32{d[3] * 0.5}, 10); !slices.Equal(direct, want) {
		t.Errorf("the gradient by what is joined is %v, want %v", direct, want)
	}
}
