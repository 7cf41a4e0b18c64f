//go:build !noaccel && amd64

package kernels_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// ChannelsLast moves channels to the last axis, and ChannelsFirst back.
func TestLayoutChanges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shape := []int{rapid.IntRange(0, 3).Draw(r, "samples"), rapid.IntRange(1, 150).Draw(r, "channels")}
		for range rapid.IntRange(0, 3).Draw(r, "axes") {
			shape = append(shape, rapid.IntRange(1, 9).Draw(r, "size"))
		}
		x := filled(1, shape...)
		last, err := run(t, "ChannelsLast", nil, 2, 1, x)
		if err != nil {
			r.Fatal(err)
		}
		if want := toNHWC(x); !slices.Equal(last[0].Shape, want.Shape) || !slices.Equal(last[0].Data, want.Data) {
			r.Fatalf("%v in NHWC has shape %v", shape, last[0].Shape)
		}
		first, err := run(t, "ChannelsFirst", nil, 2, 1, last[0])
		if err != nil || !slices.Equal(first[0].Shape, shape) || !slices.Equal(first[0].Data, x.Data) {
			r.Fatalf("%v has shape %v after both: %v", shape, first[0].Shape, err)
		}
	})
	if _, err := run(t, "ChannelsLast", nil, 1, 1, filled(1, 4)); err == nil || !strings.Contains(err.Error(), "fewer than two axes") {
		t.Error(err)
	}
}

// Constant weights of convolutions in NHWC, which are packed or transformed once, give the same
// result to the bit as weights that are inputs.
func TestConvolutionNHWCConstantWeights(t *testing.T) {
	for _, c := range []struct{ size, stride, out int }{{1, 1, 70}, {1, 2, 33}, {3, 2, 20}, {3, 1, 40}, {7, 2, 16}} {
		x, w, bias := toNHWC(filled(1, 2, 50, 9, 13)), filled(3, c.out, 50, c.size, c.size), filled(4, c.out)
		pad := c.size / 2
		attrs := onnx.Attrs{"strides": []int{c.stride, c.stride}, "dilations": []int{1, 1}, "pads": []int{pad, pad, pad, pad}, "relu": 1, "side": 4}
		want, err := run(t, "ConvChannelsLast", attrs, 2, 1, x, w, bias)
		if err != nil {
			t.Fatal(err)
		}
		b := onnx.NewBuilder(16)
		b.NeedDomain("noether", 1)
		b.Output("y", b.Node("noether", "ConvChannelsLast", 1, attrs, b.Input("x", onnx.Float, x.Shape...), b.Const("", w), b.Const("", bias))[0])
		if got := runGraph(t, b, map[string]tensor.Tensor{"x": x})["y"]; !slices.Equal(got.Data, want[0].Data) {
			t.Errorf("a kernel of %d x %d with strides of %d differs with constant weights", c.size, c.size, c.stride)
		}
	}
}
