//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// The gradient of Dropout in training has the mask of the forward pass of the same run, so for an
// input of ones it equals the output.
func TestDropoutInTraining(t *testing.T) {
	t.Parallel()
	ones := operand{shape: []int{50}, floats: slices.Repeat([]float32{1}, 50)}
	for _, constant := range []bool{true, false} { // whether ratio and training mode are constants
		b := onnx.NewBuilder(13)
		x := b.Input("x", onnx.Float, 50)
		ratio := operand{shape: []int{}, floats: []float32{0.25}}
		mode := operand{shape: []int{}, bools: []bool{true}}
		feed := map[string]operand{"x": ones}
		r, training := ratio.constant(b, "ratio"), mode.constant(b, "training")
		if !constant {
			r, training = b.Input("r", onnx.Float), b.Input("t", onnx.Bool)
			feed["r"], feed["t"] = ratio, mode
		}
		y := b.Op("Dropout", onnx.Attrs{"seed": 3}, x, r, training)
		dx, err := grad.Of(b, y, "", x)
		if err != nil {
			t.Fatal(err)
		}
		addOutputWithShape(b, "y", y)
		addOutputWithShape(b, "dx", dx[0])
		out := compile(t, build(t, b)).run(t, feed)
		kept := 0
		for _, v := range out[0].Data {
			if v != 0 {
				kept++
			}
		}
		if kept == 0 || kept == 50 {
			t.Fatalf("%d of 50 elements are kept", kept)
		}
		if !slices.Equal(out[0].Data, out[1].Data) {
			t.Errorf("y is %v and its gradient %v", out[0].Data, out[1].Data)
		}
	}
}
