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

// ChannelsLast moves the channels from the second axis to the last one, and ChannelsFirst moves
// them back. They are native operators (in C), here run with two threads and one output. Of other
// files here, filled(seed, shape...) returns normal values, and toNHWC does what ChannelsLast does.
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
			r.Fatalf("shape %v in NHWC is %v, want %v with the same values", shape, last[0].Shape, want.Shape)
		}
		first, err := run(t, "ChannelsFirst", nil, 2, 1, last[0])
		if err != nil || !slices.Equal(first[0].Shape, shape) || !slices.Equal(first[0].Data, x.Data) {
			r.Fatalf("a tensor of shape %v changes in both steps: %v, error %v", shape, first, err)
		}
	})
	if _, err := run(t, "ChannelsLast", nil, 1, 1, filled(1, 4)); err == nil || !strings.Contains(err.Error(), "fewer than two axes") {
		t.Errorf("a tensor of one axis: error %v, want one on fewer than two axes", err)
	}
}

// Convolutions in NHWC give the same result, bit for bit, with constant weights as with weights
// that are inputs. Constant weights are prepared once, as panels for vectors or transformed for
// Winograd's algorithm. The attribute side is that of its output tiles.
func TestConvolutionNHWCConstantWeights(t *testing.T) {
	for _, c := range []struct {
		size, stride int // of the kernel, a square
		out          int // channels of the output
	}{{1, 1, 70}, {1, 2, 33}, {3, 2, 20}, {3, 1, 40}, {7, 2, 16}} {
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
