package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Of two groups only the larger one is taken where weights may become no more numbers than its own do, and none where other convolutions count too much.
func TestTerms(t *testing.T) {
	if Width() == 0 {
		t.Skip("the native operators are left out, or slow on this processor")
	}
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
	each := 36 * 64 * 64 // numbers of one convolution
	for _, c := range []struct {
		terms
		large, small bool
	}{
		{terms{crossing: 200, weights: 3 * each}, true, true},
		{terms{crossing: 200, weights: 3*each - 1}, true, false},
		{terms{crossing: 200, weights: 2*each - 1}, false, true},
		{terms{crossing: 400, weights: 3 * each}, true, false},
		{terms{crossing: 800, weights: 3 * each}, false, false},
	} {
		got := groupsOf(g, b.Nodes(), nil, c.terms)
		if got[string(large)] != c.large || got[string(small)] != c.small || got[string(one)] {
			t.Errorf("%+v chooses %v", c.terms, got)
		}
	}
	// Beside convolutions of one place, which take more products, that of nine pays only where those do not count.
	y := conv(b.Relu(conv(b.Relu(conv(b.Op("Elu", nil, x), 64, 64, 3)), 512, 64, 1)), 64, 512, 1)
	for others, want := range []bool{true, false} {
		if got := groupsOf(newGraph(b), b.Nodes(), nil, terms{crossing: 1, others: float64(others), weights: 9 * each}); got[string(y)] != want {
			t.Errorf("with others at %d: %v", others, got)
		}
	}
}
