package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A group of connected convolutions is computed in NHWC, with Winograd's algorithm for its 3 x 3
// convolutions, if that gains more than it costs. selectGroups compares the multiplications with
// the layout changes (between NCHW and NHWC) at the inputs and outputs of the group, and bounds the
// number of weights, counted after Winograd's algorithm has transformed them.
//
// Here large is a group of two 3 x 3 convolutions, small a group of one, and pointwise a 1 x 1
// convolution, which gains nothing. layoutChange is the cost of an element of an input or output,
// in multiplications. For each such element small has 9 x 64 x 64 / (2 x 64) = 288 multiplications,
// and large twice as many.
func TestSelectGroups(t *testing.T) {
	skipWithoutOperators(t)
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, out, in, size int) onnx.Value {
		return b.Conv(x, b.Const("", tensor.New(out, in, size, size)), "", onnx.Attrs{"pads": []int{size / 2, size / 2, size / 2, size / 2}})
	}
	x := b.Input("x", onnx.Float, -1, 64, 16, 16)
	large := conv(conv(b.Op("Elu", nil, x), 64, 64, 3), 64, 64, 3)
	small := conv(b.Op("Elu", nil, large), 64, 64, 3)
	pointwise := conv(b.Op("Elu", nil, small), 64, 64, 1)
	b.Output("y", pointwise)
	g := newGraph(b)
	weights := 36 * 64 * 64 // of one convolution, transformed: 6 x 6 for each pair of channels
	for _, c := range []struct {
		costModel
		large, small bool
	}{
		{costModel{layoutChange: 200, maxWeights: 3 * weights}, true, true},
		{costModel{layoutChange: 200, maxWeights: 3*weights - 1}, true, false},
		{costModel{layoutChange: 200, maxWeights: 2*weights - 1}, false, true},
		{costModel{layoutChange: 400, maxWeights: 3 * weights}, true, false},
		{costModel{layoutChange: 800, maxWeights: 3 * weights}, false, false},
	} {
		got := selectGroups(g, b.Nodes(), nil, c.costModel)
		if got[string(large)] != c.large || got[string(small)] != c.small || got[string(pointwise)] {
			t.Errorf("%+v: selected %v", c.costModel, got)
		}
	}
	// A group of a 3 x 3 convolution and 1 x 1 convolutions with more multiplications is selected
	// only if the cost of the latter, costModel.other, is 0 for each multiplication.
	y := conv(b.Relu(conv(b.Relu(conv(b.Op("Elu", nil, x), 64, 64, 3)), 512, 64, 1)), 64, 512, 1)
	for other, want := range []bool{true, false} { // other is the index: 0 or 1
		if got := selectGroups(newGraph(b), b.Nodes(), nil, costModel{layoutChange: 1, other: float64(other), maxWeights: 9 * weights}); got[string(y)] != want {
			t.Errorf("cost %d of a multiplication in other convolutions: selected %v", other, got)
		}
	}
}
