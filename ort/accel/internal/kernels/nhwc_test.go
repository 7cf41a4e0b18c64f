//go:build !noaccel && amd64

package kernels_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// lastOf is n x c x ... with its channels last.
func lastOf(x tensor.Tensor) tensor.Tensor {
	n, c := x.Shape[0], x.Shape[1]
	places := tensor.Size(x.Shape[2:])
	y := tensor.New(slices.Concat(x.Shape[:1], x.Shape[2:], x.Shape[1:2])...)
	for s := range n {
		for k := range c {
			for i := range places {
				y.Data[(s*places+i)*c+k] = x.Data[(s*c+k)*places+i]
			}
		}
	}
	return y
}

// Convolutions with their channels last, and their gradients by the image, are those of the package comment, with what follows: a sum, max(0, .)
// and a mask, each perhaps.
func TestConvolutionLast(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWindow(r)
		in, out := rapid.IntRange(1, 40).Draw(r, "in"), rapid.IntRange(1, 40).Draw(r, "out")
		if rapid.Bool().Draw(r, "near") { // 3 x 3 places next to one another
			w = drawNear(r)
		}
		n, relu := rapid.IntRange(1, 3).Draw(r, "samples"), rapid.IntRange(0, 1).Draw(r, "relu")
		attrs := w.attrs(rapid.SampledFrom([]int{0, 8, 16}).Draw(r, "lanes"))
		x, dy := filled(1, append([]int{n, in}, w.last(w.size)...)...), filled(2, append([]int{n, out}, w.last([2]int{w.places(0), w.places(1)})...)...)
		kernel, bias := filled(3, append([]int{out, in}, w.last(w.kernel)...)...), filled(4, out)
		more, mask := rapid.Bool().Draw(r, "more"), rapid.Bool().Draw(r, "mask")
		for _, c := range []struct {
			op, last string
			in       []tensor.Tensor
			like     tensor.Tensor
			terms    int
		}{
			{"Conv", "ConvChannelsLast", []tensor.Tensor{x, kernel, bias}, dy, in * tensor.Size(w.kernel[:])},
			{"ConvTranspose", "ConvTransposeChannelsLast", []tensor.Tensor{dy, kernel}, x, out * tensor.Size(w.kernel[:])},
		} {
			sums, err := run(t, c.op, attrs, 2, 1, c.in...)
			if err != nil {
				r.Fatal(err)
			}
			add, keep := filled(5, c.like.Shape...), filled(6, c.like.Shape...)
			want := tensor.Tensor{Shape: c.like.Shape, Data: sums[0].Data}
			summed, added, outputs := want.Clone(), want.Clone(), 1
			if c.last == "ConvChannelsLast" {
				outputs = rapid.SampledFrom([]int{1, 2, 4}).Draw(r, "outputs")
			}
			for i := range want.Data {
				if more || mask { // inputs are left out only at the end
					want.Data[i] += add.Data[i]
				}
				added.Data[i] = want.Data[i]
				if relu == 1 {
					want.Data[i] = max(0, want.Data[i])
				}
				if mask && keep.Data[i] <= 0 {
					want.Data[i] = 0
				}
			}
			given := []tensor.Tensor{lastOf(c.in[0]), c.in[1], bias} // ConvTransposeChannelsLast ignores it
			if more || mask {
				given = append(given, lastOf(add))
			}
			if mask {
				given = append(given, lastOf(keep))
			}
			for _, side := range []int{2, 4} {
				attrs := maps.Clone(attrs)
				attrs["relu"], attrs["side"] = relu, side
				got, err := run(t, c.last, attrs, 2, outputs, given...)
				if err != nil {
					r.Fatal(err)
				}
				closeTo(r, c.last, got[0], lastOf(want), c.terms*side/2)
				for i, want := range []tensor.Tensor{want, added, summed}[:outputs-1] { // the same with the channels first, at three stages
					closeTo(r, c.last+" with the channels first", got[1+i], want, c.terms*side/2)
				}
			}
		}
	})
}

// closeTo compares sums of so many products of normal numbers.
func closeTo(t *rapid.T, what string, got, want tensor.Tensor, terms int) {
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%s has the shape %v, not %v", what, got.Shape, want.Shape)
	}
	for i, v := range want.Data {
		if d := math.Abs(float64(got.Data[i] - v)); !(d <= 5e-6*math.Sqrt(float64(terms))*max(1, math.Abs(float64(v)))) {
			t.Fatalf("%s %d is %g, not %g", what, i, got.Data[i], v)
		}
	}
}

// Where a convolution with its channels last is prepared, split among threads or ends in something that is not a number, the result is the same.
func TestConvolutionLastInPieces(t *testing.T) {
	x, w := lastOf(filled(1, 5, 70, 9, 13)), filled(3, 50, 70, 3, 3)
	x.Data[70*20] = float32(math.NaN())
	for _, side := range []int{2, 4} {
		attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{1, 1}, "pads": []int{1, 1, 1, 1}, "side": side, "relu": 1}
		one, err1 := run(t, "ConvChannelsLast", attrs, 1, 1, x, w)
		two, err2 := run(t, "ConvChannelsLast", attrs, 2, 1, x, w)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		lost := 0
		for i, v := range one[0].Data {
			if v != v {
				lost++
			}
			if v != two[0].Data[i] && (v == v || two[0].Data[i] == two[0].Data[i]) {
				t.Fatalf("%d is %g with one thread and %g with two", i, v, two[0].Data[i])
			}
		}
		if lost < 6*50 {
			t.Errorf("what is not a number has reached %d results", lost)
		}
	}
}
