//go:build cgo

package grad_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// Gradients do not change if an output that no node reads has an empty name, as exporters write
// outputs that are left out.
func TestRecurrentOutputsLeftOut(t *testing.T) {
	t.Parallel()
	for i, draw := range []func(*generator) testCase{drawLSTM, drawGRU, drawRNN} {
		op := []string{"LSTM", "GRU", "RNN"}[i]
		g := &generator{Rand: seed.Rand(21, op), opset: 14}
		tc := draw(g) // a random node, with its operands: inputs and their values
		n := tc.operands[0].shape[1]
		// Operand 4 is the lengths of the sequences. Output 0, which is left out below, is all
		// hidden states; output 1, which is differentiated, is the last one.
		tc.operands[4] = operand{shape: []int{n}, isInt32: true, ints: slices.Repeat([]int64{1}, n)}
		gradients := func(unnamed bool) [][]float32 {
			b := onnx.NewBuilder(14)
			in, out := tc.node(b, op, tc.plainForm(14))
			if unnamed {
				nodes := b.Nodes()
				nodes[len(nodes)-1].Output[0] = ""
			}
			dx, err := grad.Of(b, out[1], "", in[:2]...)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range dx {
				addOutputWithShape(b, fmt.Sprintf("grad%d", k), v)
			}
			var values [][]float32
			for _, v := range compile(t, build(t, b)).run(t, tc.feed()) {
				values = append(values, v.Data)
			}
			return values
		}
		want := gradients(false)
		for k, got := range gradients(true) {
			if d := maxDifference(got, want[k]); !(d <= 1e-6*maxAbs(want[k])) || maxAbs(want[k]) == 0 {
				t.Errorf("%s: the gradient by operand %d is %v, with all outputs %v", op, k, got, want[k])
			}
		}
	}
}

// The attribute clip bounds the argument of the activation. From a state of zeros, one step of an
// RNN is the tanh of the clipped product of input and weights, and must have its gradient.
func TestRecurrentClip(t *testing.T) {
	t.Parallel()
	for _, opset := range []int{7, 14} {
		g := &generator{Rand: seed.Rand(23, opset), opset: opset}
		tc := testCase{
			attrs: onnx.Attrs{"hidden_size": 4, "clip": 0.5}, outputs: 2,
			// Input (steps, batch, features), input weights and recurrent weights.
			operands: []operand{g.smooth(1, 3, 2), g.smooth(1, 4, 2), g.smooth(1, 4, 4)},
		}
		b := onnx.NewBuilder(opset)
		in, out := tc.node(b, "RNN", tc.plainForm(opset))
		sum := b.MatMul(in[0], b.Transpose(in[1], 0, 2, 1))
		var bounded onnx.Value
		if opset >= 11 {
			bounded = b.Clip(sum, b.Scalar(-0.5), b.Scalar(0.5))
		} else {
			bounded = b.Op("Clip", onnx.Attrs{"min": -0.5, "max": 0.5}, sum)
		}
		for i, y := range []onnx.Value{out[1], b.Tanh(bounded)} {
			dx, err := grad.Of(b, y, "", in[:2]...)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range dx {
				addOutputWithShape(b, fmt.Sprintf("grad%d/%d", i, k), v)
			}
		}
		got := compile(t, build(t, b)).run(t, tc.feed())
		for k := range 2 {
			if d := maxDifference(got[k].Data, got[2+k].Data); !(d <= 1e-5) || maxAbs(got[k].Data) == 0 {
				t.Errorf("opset %d: the gradient by operand %d is %v, that of the clipped product %v", opset, k, got[k], got[2+k])
			}
		}
	}
}

// The gradient of an LSTM with the attribute layout = 1 is an error that says why. With it the
// first axis of the input is the batch, not the time, and its size may be unknown.
func TestRecurrentLayout(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(14)
	x := b.Input("x", onnx.Float, -1, 5, 2)
	w, r := b.Full(1, 1, 12, 2), b.Full(1, 1, 12, 3) // ones; 12 is 4 gates of 3 units
	y := b.Ops("LSTM", 2, onnx.Attrs{"hidden_size": 3, "layout": 1}, x, w, r)[1]
	if _, err := grad.Of(b, y, "", x); err == nil || !strings.Contains(err.Error(), "layout 1 is not supported") {
		t.Errorf("the error is %v", err)
	}
}
