//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// In a DenseNet each layer reads a Concat of all earlier ones. The part of a Concat's gradient that
// belongs to the inputs of the Concat before it is passed on to that Concat in one Slice, not in
// one for each layer. The gradient by the output of a Concat is still that of its own readers
// alone.
func TestDenseConcat(t *testing.T) {
	t.Parallel()
	// differentiate returns the number of Slice nodes in the gradient by the tensors of the given
	// names, and the gradient by the first.
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
		addOutputWithShape(b, "dx", dx[0])
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
	// d[k] is the gradient of the sum by the k-th layer: 1 plus the terms of later layers.
	d := make([]float32, 7)
	for k := range slices.Backward(d) {
		d[k] = 1
		for later := k + 1; later < len(d); later++ {
			d[k] += d[later] * (float32(later-1) - 1.5)
		}
	}
	sliceNodes, dx := differentiate("x")
	if sliceNodes > 12 {
		t.Errorf("%d Slice nodes, want at most 12, two for each layer", sliceNodes)
	}
	if want := slices.Repeat([]float32{d[0]}, 6); !slices.Equal(dx, want) {
		t.Errorf("dx is %v, want %v", dx, want)
	}
	_, direct := differentiate("Concat_2") // 2x5; read by the third layer only, with factor 0.5
	if want := slices.Repeat([]float32{d[3] * 0.5}, 10); !slices.Equal(direct, want) {
		t.Errorf("the gradient by the output of the Concat is %v, want %v", direct, want)
	}
}
