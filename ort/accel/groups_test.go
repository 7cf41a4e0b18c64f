package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Groups of connected convolutions are selected by their multiplications, the layout changes at
// their border, and the size of their transformed weights. Here large is a group of two 3 x 3
// convolutions, small one of one, and one a 1 x 1 convolution.
func TestSelectGroups(t *testing.T) {
	skipWithoutOperators(t)
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, out, in, size int) onnx.Value {
		return b.Conv(x, b.Const("", tensor.New(out, in, size, size)), "", onnx.Attrs{"pads": []int{size / 2, size / 2, size / 2, size / 2}})
	}
	x := b.Input("x", onnx.Float, -1, 64, 16, 16)
	large := conv(conv(b.Op("Elu", nil, x), 64, 64, 3), 64, 64, 3)
	small := conv(b.Op("Elu", nil, large), 64, 64, 3)
	one := conv(b.Op("Elu", nil, small), 64, 64, 1)
	b.Output("y", one)
	g := newGraph(b)
	each := 36 * 64 * 64 // transformed weights of one convolution: 6 x 6 for each pair of channels
	for _, c := range []struct {
		costModel
		large, small bool
	}{
		{costModel{layoutChange: 200, maxWeights: 3 * each}, true, true},
		{costModel{layoutChange: 200, maxWeights: 3*each - 1}, true, false},
		{costModel{layoutChange: 200, maxWeights: 2*each - 1}, false, true},
		{costModel{layoutChange: 400, maxWeights: 3 * each}, true, false},
		{costModel{layoutChange: 800, maxWeights: 3 * each}, false, false},
	} {
		got := selectGroups(g, b.Nodes(), nil, c.costModel)
		if got[string(large)] != c.large || got[string(small)] != c.small || got[string(one)] {
			t.Errorf("%+v: selected %v", c.costModel, got)
		}
	}
	// A group of a 3 x 3 convolution and larger 1 x 1 convolutions is selected only if the latter
	// cost nothing.
	y := conv(b.Relu(conv(b.Relu(conv(b.Op("Elu", nil, x), 64, 64, 3)), 512, 64, 1)), 64, 512, 1)
	for other, want := range []bool{true, false} {
		if got := selectGroups(newGraph(b), b.Nodes(), nil, costModel{layoutChange: 1, other: float64(other), maxWeights: 9 * each}); got[string(y)] != want {
			t.Errorf("other convolutions cost %d: selected %v", other, got)
		}
	}
}
