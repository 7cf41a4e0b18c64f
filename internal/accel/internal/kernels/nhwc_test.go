//go:build !noaccel && amd64

package kernels_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// toNHWC returns a tensor of n x c x ... as n x ... x c.
func toNHWC(x tensor.Tensor) tensor.Tensor {
	n, c := x.Shape[0], x.Shape[1]
	pixels := tensor.Size(x.Shape[2:])
	y := tensor.New(slices.Concat(x.Shape[:1], x.Shape[2:], x.Shape[1:2])...)
	for s := range n {
		for k := range c {
			for i := range pixels {
				y.Data[(s*pixels+i)*c+k] = x.Data[(s*c+k)*pixels+i]
			}
		}
	}
	return y
}

// Convolutions in NHWC (channels last), their gradients with respect to the image, and the
// operations that they include (adding a tensor, ReLU, zeros where a mask is not positive) agree
// with convolutions in NCHW followed by these operations. Of other files here, drawWindow draws the
// geometry of a convolution, filled(seed, shape...) returns normal values, and run(t, operator,
// attributes, threads, outputs, inputs...) runs one node. lanes is the largest number of float32 in
// a SIMD register; 0: the operator chooses.
func TestConvolutionNHWC(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWindow(r)
		in, out := rapid.IntRange(1, 40).Draw(r, "in"), rapid.IntRange(1, 40).Draw(r, "out")
		if rapid.Bool().Draw(r, "winograd") {
			w = drawWinogradWindow(r)
		}
		n, relu := rapid.IntRange(1, 3).Draw(r, "samples"), rapid.IntRange(0, 1).Draw(r, "relu")
		attrs := w.attrs(rapid.SampledFrom([]int{0, 8, 16}).Draw(r, "lanes"))
		x, dy := filled(1, append([]int{n, in}, w.used(w.size)...)...), filled(2, append([]int{n, out}, w.used([2]int{w.output(0), w.output(1)})...)...)
		kernel, bias := filled(3, append([]int{out, in}, w.used(w.kernel)...)...), filled(4, out)
		hasAddend, hasMask := rapid.Bool().Draw(r, "addend"), rapid.Bool().Draw(r, "mask")
		for _, c := range []struct {
			op, nhwc string // operators in NCHW and NHWC
			in       []tensor.Tensor
			result   tensor.Tensor // has the shape of the result
			terms    int           // number of products in an element of the result
		}{
			{"Conv", "ConvChannelsLast", []tensor.Tensor{x, kernel, bias}, dy, in * tensor.Size(w.kernel[:])},
			{"ConvTranspose", "ConvTransposeChannelsLast", []tensor.Tensor{dy, kernel}, x, out * tensor.Size(w.kernel[:])},
		} {
			sums, err := run(t, c.op, attrs, 2, 1, c.in...)
			if err != nil {
				r.Fatal(err)
			}
			addend, mask := filled(5, c.result.Shape...), filled(6, c.result.Shape...)
			want := tensor.Tensor{Shape: c.result.Shape, Data: sums[0].Data}
			// The outputs of ConvChannelsLast are the result in NHWC, and in NCHW the result, the
			// sum of convolution and addend, and the convolution.
			convolved, added, outputs := want.Clone(), want.Clone(), 1
			if c.nhwc == "ConvChannelsLast" {
				outputs = rapid.SampledFrom([]int{1, 2, 4}).Draw(r, "outputs")
			}
			for i := range want.Data {
				if hasAddend || hasMask { // only the last inputs can be left out
					want.Data[i] += addend.Data[i]
				}
				added.Data[i] = want.Data[i]
				if relu == 1 {
					want.Data[i] = max(0, want.Data[i])
				}
				if hasMask && mask.Data[i] <= 0 {
					want.Data[i] = 0
				}
			}
			// ConvTransposeChannelsLast ignores it.
			inputs := []tensor.Tensor{toNHWC(c.in[0]), c.in[1], bias}
			if hasAddend || hasMask {
				inputs = append(inputs, toNHWC(addend))
			}
			if hasMask {
				inputs = append(inputs, toNHWC(mask))
			}
			// Of the output tiles of Winograd's algorithm; 4 is less accurate.
			for _, side := range []int{2, 4} {
				attrs := maps.Clone(attrs)
				attrs["relu"], attrs["side"] = relu, side
				got, err := run(t, c.nhwc, attrs, 2, outputs, inputs...)
				if err != nil {
					r.Fatal(err)
				}
				assertClose(r, c.nhwc, got[0], toNHWC(want), c.terms*side/2)
				for i, want := range []tensor.Tensor{want, added, convolved}[:outputs-1] {
					assertClose(r, fmt.Sprintf("%s in NCHW, output %d", c.nhwc, 1+i), got[1+i], want, c.terms*side/2)
				}
			}
		}
	})
}

// assertClose compares tensors whose elements are sums of terms products of normal values.
func assertClose(t *rapid.T, name string, got, want tensor.Tensor, terms int) {
	if !slices.Equal(got.Shape, want.Shape) {
		t.Fatalf("%s has shape %v, want %v", name, got.Shape, want.Shape)
	}
	for i, v := range want.Data {
		if d := math.Abs(float64(got.Data[i] - v)); !(d <= 5e-6*math.Sqrt(float64(terms))*max(1, math.Abs(float64(v)))) {
			t.Fatalf("%s: element %d is %g, want %g", name, i, got.Data[i], v)
		}
	}
}

// Results in NHWC do not depend on the number of threads, and NaN is kept.
func TestConvolutionNHWCThreads(t *testing.T) {
	x, w := toNHWC(filled(1, 5, 70, 9, 13)), filled(3, 50, 70, 3, 3)
	x.Data[70*20] = float32(math.NaN()) // channel 0 of pixel 20
	for _, side := range []int{2, 4} {
		attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{1, 1}, "pads": []int{1, 1, 1, 1}, "side": side, "relu": 1}
		one, err1 := run(t, "ConvChannelsLast", attrs, 1, 1, x, w)
		two, err2 := run(t, "ConvChannelsLast", attrs, 2, 1, x, w)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		nans := 0
		for i, v := range one[0].Data {
			if v != v {
				nans++
			}
			if v != two[0].Data[i] && (v == v || two[0].Data[i] == two[0].Data[i]) {
				t.Fatalf("element %d is %g with one thread and %g with two", i, v, two[0].Data[i])
			}
		}
		// The 3 x 3 positions that read pixel 20 of the first image, times output channels.
		const least = 9 * 50
		if nans < least {
			t.Errorf("NaN has reached %d elements, want at least %d", nans, least)
		}
	}
}
