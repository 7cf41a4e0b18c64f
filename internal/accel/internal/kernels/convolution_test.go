//go:build !noaccel && amd64

package kernels_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A window is the geometry of a convolution. With one spatial axis only the second elements are
// used. before and after are the padding.
type window struct {
	axes                                          int // spatial axes: 1 or 2
	size, kernel, stride, dilation, before, after [2]int
}

// output returns the size of the result along an axis.
func (w *window) output(axis int) int {
	return (w.size[axis]+w.before[axis]+w.after[axis]-w.dilation[axis]*(w.kernel[axis]-1)-1)/w.stride[axis] + 1
}

// used returns the elements of the axes in use.
func (w *window) used(list [2]int) []int { return list[2-w.axes:] }

// attrs returns the attributes of the native operators, those of package kernels in C. lanes is the
// largest number of float32 in a SIMD register that they use; 0: the operator chooses.
func (w *window) attrs(lanes int) onnx.Attrs {
	return onnx.Attrs{"strides": w.used(w.stride), "dilations": w.used(w.dilation), "pads": slices.Concat(w.used(w.before), w.used(w.after)), "lanes": lanes,
		"output_padding": w.used(w.outputPadding()), "kernel_shape": w.used(w.kernel)}
}

// outputPadding returns the numbers of last rows and columns of the padded image that no step of
// the kernel reaches.
func (w *window) outputPadding() (extra [2]int) {
	for i := range 2 {
		extra[i] = (w.size[i] + w.before[i] + w.after[i] - w.dilation[i]*(w.kernel[i]-1) - 1) % w.stride[i]
	}
	return extra
}

func drawWindow(r *rapid.T) window {
	w := window{axes: rapid.IntRange(1, 2).Draw(r, "axes"), size: [2]int{1, 1}, kernel: [2]int{1, 1}, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	for i := 2 - w.axes; i < 2; i++ {
		w.kernel[i] = rapid.IntRange(1, 4).Draw(r, "kernel")
		w.dilation[i] = rapid.IntRange(1, 3).Draw(r, "dilation")
		w.stride[i] = rapid.IntRange(1, 4).Draw(r, "stride")
		w.before[i], w.after[i] = rapid.IntRange(0, 4).Draw(r, "before"), rapid.IntRange(0, 4).Draw(r, "after")
		smallest := max(1, w.dilation[i]*(w.kernel[i]-1)+1-w.before[i]-w.after[i])
		w.size[i] = rapid.IntRange(smallest, smallest+9).Draw(r, "size")
	}
	return w
}

// drawWinogradWindow draws a 3 x 3 window with strides and dilations of 1. With at least 16
// channels such convolutions use Winograd's algorithm.
func drawWinogradWindow(r *rapid.T) window {
	w := window{axes: 2, kernel: [2]int{3, 3}, stride: [2]int{1, 1}, dilation: [2]int{1, 1}}
	for i := range 2 {
		w.before[i], w.after[i] = rapid.IntRange(0, 3).Draw(r, "before"), rapid.IntRange(0, 3).Draw(r, "after")
		smallest := max(1, 3-w.before[i]-w.after[i])
		w.size[i] = rapid.IntRange(smallest, smallest+9).Draw(r, "size")
	}
	return w
}

// products calls f for each pixel of the result and each kernel offset that reads a pixel of the
// image.
func (w *window) products(f func(result, pixel, offset int)) {
	for y := range w.output(0) {
		for x := range w.output(1) {
			for i := range w.kernel[0] {
				for j := range w.kernel[1] {
					row, column := y*w.stride[0]+i*w.dilation[0]-w.before[0], x*w.stride[1]+j*w.dilation[1]-w.before[1]
					if row >= 0 && row < w.size[0] && column >= 0 && column < w.size[1] {
						f(y*w.output(1)+x, row*w.size[1]+column, i*w.kernel[1]+j)
					}
				}
			}
		}
	}
}

// assertSums compares a result with want, whose elements are float64 sums of products of normal
// values; terms is the number of products in each.
func assertSums(t *rapid.T, name string, got tensor.Tensor, shape []int, want []float64, terms int) {
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("%s has shape %v, want %v", name, got.Shape, shape)
	}
	for i, v := range want {
		if d := math.Abs(float64(got.Data[i]) - v); !(d <= 3e-6*math.Sqrt(float64(terms))*max(1, math.Abs(v))) {
			t.Fatalf("%s: element %d is %g, want %g", name, i, got.Data[i], v)
		}
	}
}

// A convolution and its gradients equal the sums that define them, for any geometry, channels and
// SIMD width. Of other files here, filled(seed, shape...) returns normal values, and run(t,
// operator, attributes, threads, outputs, inputs...) runs one node.
func TestConvolution(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWindow(r)
		n, in, out := rapid.IntRange(1, 4).Draw(r, "samples"), rapid.IntRange(1, 20).Draw(r, "in"), rapid.IntRange(1, 40).Draw(r, "out")
		if rapid.Bool().Draw(r, "winograd") {
			w = drawWinogradWindow(r)
			in, out = rapid.IntRange(16, 70).Draw(r, "in"), rapid.IntRange(16, 70).Draw(r, "out")
		}
		attrs := w.attrs(rapid.SampledFrom([]int{0, 8, 16}).Draw(r, "lanes"))
		// Of the output tiles of Winograd's algorithm.
		side := rapid.SampledFrom([]int{2, 4}).Draw(r, "side")
		attrs["side"] = side
		size, pixels, offsets := w.size[0]*w.size[1], w.output(0)*w.output(1), w.kernel[0]*w.kernel[1]
		results := append([]int{n, out}, w.used([2]int{w.output(0), w.output(1)})...)
		x, dy := filled(1, append([]int{n, in}, w.used(w.size)...)...), filled(2, results...)
		kernel, bias := filled(3, append([]int{out, in}, w.used(w.kernel)...)...), filled(4, out)
		y, dx, dw := make([]float64, n*out*pixels), make([]float64, n*in*size), make([]float64, out*in*offsets)
		for i := range y {
			y[i] = float64(bias.Data[i/pixels%out])
		}
		for s := range n {
			for o := range out {
				for c := range in {
					w.products(func(result, pixel, offset int) {
						result, pixel, offset = (s*out+o)*pixels+result, (s*in+c)*size+pixel, (o*in+c)*offsets+offset
						y[result] += float64(kernel.Data[offset]) * float64(x.Data[pixel])
						dx[pixel] += float64(kernel.Data[offset]) * float64(dy.Data[result])
						dw[offset] += float64(x.Data[pixel]) * float64(dy.Data[result])
					})
				}
			}
		}
		for _, c := range []struct {
			op    string
			in    []tensor.Tensor
			shape []int
			want  []float64
			terms int
		}{
			{"Conv", []tensor.Tensor{x, kernel, bias}, results, y, in*offsets + 1},
			{"ConvTranspose", []tensor.Tensor{dy, kernel}, x.Shape, dx, out * offsets},
			{"ConvKernelGradient", []tensor.Tensor{x, dy}, kernel.Shape, dw, n * pixels},
		} {
			terms := c.terms
			if side == 4 {
				// Tiles of 4 x 4 have larger rounding errors. In 3,000 draws the largest were
				// 9.3e-6 sqrt(terms), and 2.2e-6 sqrt(terms) without such tiles.
				terms *= 50
			}
			got, err := run(t, c.op, attrs, 2, 1, c.in...)
			if err != nil {
				r.Fatal(err)
			}
			assertSums(r, c.op, got[0], c.shape, c.want, terms)
		}
	})
}

// Results of many channels and pixels, which are divided into parts, do not depend on the number of
// threads.
func TestConvolutionThreads(t *testing.T) {
	x, dy, w := filled(1, 5, 70, 9, 13), filled(2, 5, 50, 9, 13), filled(3, 50, 70, 3, 3)
	for _, dilation := range []int{1, 2} {
		for _, side := range []int{2, 4} {
			attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{dilation, dilation}, "pads": slices.Repeat([]int{dilation}, 4), "kernel_shape": []int{3, 3}, "side": side}
			checkThreads(t, attrs, x, dy, w)
		}
	}
}

// checkThreads compares one thread with two, and the convolution with its gradients.
func checkThreads(t *testing.T, attrs onnx.Attrs, x, dy, w tensor.Tensor) {
	t.Helper()
	inner := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	var sums []float64
	for _, c := range []struct {
		op    string
		in    []tensor.Tensor
		other tensor.Tensor
	}{
		{"Conv", []tensor.Tensor{x, w}, dy},
		{"ConvTranspose", []tensor.Tensor{dy, w}, x},
		{"ConvKernelGradient", []tensor.Tensor{x, dy}, w},
	} {
		one, err1 := run(t, c.op, attrs, 1, 1, c.in...)
		two, err2 := run(t, c.op, attrs, 2, 1, c.in...)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if !slices.Equal(one[0].Data, two[0].Data) {
			t.Errorf("%s differs between one thread and two", c.op)
		}
		sums = append(sums, inner(one[0].Data, c.other.Data))
	}
	for _, v := range sums[1:] { // <dy, y> = <dx, x> = <dw, w>, as y is linear in x and in w
		if math.Abs(v-sums[0]) > 1e-3*math.Sqrt(float64(len(dy.Data))) {
			t.Errorf("the inner products are %v, want equal ones", sums)
		}
	}
}

// The gradient with respect to the weights does not depend on what its memory held before. The
// tiles of 13 samples, each with 8 x 8 of side 2 or 4 x 4 of side 4, do not divide evenly among the
// ranges of tiles that are summed in parallel.
func TestConvolutionGradientMemory(t *testing.T) {
	for _, side := range []int{2, 4} {
		checkGradientMemory(t, side)
	}
}

// checkGradientMemory uses Winograd tiles of the given side.
func checkGradientMemory(t *testing.T, side int) {
	t.Helper()
	attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{1, 1}, "pads": []int{1, 1, 1, 1}, "kernel_shape": []int{3, 3}, "side": side}
	x, dy := filled(1, 13, 32, 16, 16), filled(2, 13, 32, 16, 16)
	samples := func(v tensor.Tensor, from, to int) tensor.Tensor {
		image := len(v.Data) / v.Shape[0]
		return tensor.Tensor{Shape: []int{to - from, 32, 16, 16}, Data: v.Data[from*image : to*image]}
	}
	want := make([]float64, 32*32*9) // the gradient is a sum over samples
	for _, part := range [][2]int{{0, 7}, {7, 13}} {
		dw, err := run(t, "ConvKernelGradient", attrs, 1, 1, samples(x, part[0], part[1]), samples(dy, part[0], part[1]))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range dw[0].Data {
			want[i] += float64(v)
		}
	}
	// A node may get the memory of an earlier one, with its old content.
	b := onnx.NewBuilder(16)
	b.NeedDomain("noether", 1)
	feed := map[string]tensor.Tensor{}
	input := func(name string, v tensor.Tensor) onnx.Value {
		feed[name] = v
		return b.Input(name, onnx.Float, v.Shape...)
	}
	const rounds = 4
	for i := range rounds {
		wider := input(fmt.Sprint("wider", i), filled(3, 12, 64, 16, 16))
		b.Output(fmt.Sprint("other", i), b.Node("noether", "ConvKernelGradient", 1, attrs, wider, wider)[0])
		b.Output(fmt.Sprint("dw", i), b.Node("noether", "ConvKernelGradient", 1, attrs, input(fmt.Sprint("x", i), x), input(fmt.Sprint("dy", i), dy))[0])
	}
	got := runGraph(t, b, feed)
	for round := range rounds {
		for i, v := range got[fmt.Sprint("dw", round)].Data {
			if d := math.Abs(float64(v) - want[i]); !(d <= 1e-5*math.Sqrt(13*16*16)) {
				t.Fatalf("round %d: element %d of the gradient is %g, want %g", round, i, v, want[i])
			}
		}
	}
}

// runGraph runs a graph with the given inputs and returns its outputs.
func runGraph(t *testing.T, b *onnx.Builder, feed map[string]tensor.Tensor) map[string]tensor.Tensor {
	t.Helper()
	graph, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	rt := orttest.Load(t)
	session, err := rt.NewSession(graph, ort.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var in []*ort.Value
	for _, name := range session.Inputs() {
		v, err := ort.Wrap(rt, feed[name].Data, feed[name].Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		in = append(in, v)
	}
	out := make([]*ort.Value, len(session.Outputs()))
	if err := session.Run(t.Context(), in, out); err != nil {
		t.Fatal(err)
	}
	results := map[string]tensor.Tensor{}
	for i, name := range session.Outputs() {
		results[name] = out[i].Tensor().Clone()
		if err := out[i].Close(); err != nil {
			t.Error(err)
		}
	}
	return results
}

// TestConvolutionErrors checks inputs and attributes that do not fit. Unless a case says otherwise,
// x is 2 samples x 3 channels x 5 x 5, and w 4 output channels x 3 x 3 x 3. ConvChannelsLast, for x
// in NHWC (of toNHWC), also takes a bias, an addend and a mask.
func TestConvolutionErrors(t *testing.T) {
	attrs := func(strides, dilations, pads []int) onnx.Attrs {
		return onnx.Attrs{"strides": strides, "dilations": dilations, "pads": pads}
	}
	unit := attrs([]int{1, 1}, []int{1, 1}, []int{0, 0, 0, 0})
	x, w := filled(1, 2, 3, 5, 5), filled(2, 4, 3, 3, 3)
	for _, c := range []struct {
		op    string
		attrs onnx.Attrs
		in    []tensor.Tensor
		want  string
	}{
		{"Conv", unit, []tensor.Tensor{x, filled(2, 4, 2, 3, 3)}, "another number of channels"},
		{"Conv", unit, []tensor.Tensor{x, filled(2, 4, 3, 3)}, "different numbers of axes"},
		{"Conv", unit, []tensor.Tensor{x, filled(2, 4, 3, 6, 3)}, "larger than the padded input"},
		{"Conv", unit, []tensor.Tensor{x, w, filled(3, 5)}, "bias"},
		{"Conv", nil, []tensor.Tensor{x, w}, "different numbers of axes"},
		{"Conv", attrs([]int{1, 0}, []int{1, 1}, []int{0, 0, 0, 0}), []tensor.Tensor{x, w}, "at least 1"},
		{"Conv", attrs([]int{1, 1}, []int{1, 1}, []int{0, 0, -1, 0}), []tensor.Tensor{x, w}, "at least 0"},
		{"Conv", attrs([]int{1, 1}, []int{1}, []int{0, 0, 0, 0}), []tensor.Tensor{x, w}, "differ in number"},
		{"Conv", attrs([]int{1, 1, 1}, []int{1, 1, 1}, make([]int, 6)), []tensor.Tensor{x, w}, "more than two axes"},
		{"ConvChannelsLast", unit, []tensor.Tensor{x, w}, "another number of channels"},
		{"ConvChannelsLast", unit, []tensor.Tensor{toNHWC(x), w, filled(3, 4), filled(4, 2, 4, 5, 5)}, "differs in size"},
		{"ConvChannelsLast", unit, []tensor.Tensor{toNHWC(x), w, filled(3, 4), filled(4, 2, 3, 3, 4), filled(5, 1)}, "differs in size"},
		{"ConvTranspose", unit, []tensor.Tensor{filled(3, 2, 4, 5), w}, "different numbers of axes"},
		{"ConvTranspose", attrs([]int{1, 1}, []int{1, 1}, []int{9, 9, 9, 9}), []tensor.Tensor{filled(3, 2, 4, 5, 5), w}, "negative size"},
		{"ConvKernelGradient", unit, []tensor.Tensor{x, filled(3, 2, 4, 3, 4)}, "kernel"},
	} {
		_, err := run(t, c.op, c.attrs, 1, 1, c.in...)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", c.op, err, c.want)
		}
	}
	// A batch may be empty.
	got, err := run(t, "Conv", unit, 1, 1, filled(1, 0, 3, 5, 5), w)
	if err != nil || !slices.Equal(got[0].Shape, []int{0, 4, 3, 3}) {
		t.Error(got, err)
	}
}

// BenchmarkConvolution runs 3 x 3 convolutions and their gradients on one core, and for comparison
// ONNX Runtime's own Conv, whose domain is empty. The sizes are those of a ResNet-20 and a
// ResNet-18 for images of 32 x 32.
func BenchmarkConvolution(b *testing.B) {
	for _, c := range []struct{ channels, size int }{{16, 32}, {32, 16}, {64, 8}, {64, 32}, {128, 16}, {256, 8}, {512, 4}} {
		x, w := filled(1, 32, c.channels, c.size, c.size), filled(2, c.channels, c.channels, 3, 3)
		attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{1, 1}, "pads": []int{1, 1, 1, 1}, "side": 4, "kernel_shape": []int{3, 3}}
		for _, op := range []struct {
			domain, name string
			in           []tensor.Tensor
		}{
			{"noether", "ConvChannelsLast", []tensor.Tensor{toNHWC(x), w}}, {"", "Conv", []tensor.Tensor{x, w}}, {"noether", "Conv", []tensor.Tensor{x, w}},
			{"noether", "ConvTranspose", []tensor.Tensor{x, w}}, {"noether", "ConvKernelGradient", []tensor.Tensor{x, x}},
		} {
			b.Run(fmt.Sprintf("%s/%dx%d", op.name, c.channels, c.size), func(b *testing.B) {
				n := newNode(b, op.domain, op.name, attrs, 1, 1, op.in...)
				defer n.close()
				before := machine.CPUTime()
				for b.Loop() {
					if err := n.session.Run(b.Context(), n.in, n.out); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(2*float64(len(x.Data)*c.channels*9*b.N)/(machine.CPUTime()-before).Seconds()/1e9, "GFLOP/cpu-s")
			})
		}
	}
}

// Constant weights, which Winograd's algorithm transforms once, give the same result to the bit as
// weights that are inputs.
func TestConvolutionConstantWeights(t *testing.T) {
	x, dy, w := filled(1, 2, 70, 9, 13), filled(2, 2, 50, 9, 13), filled(3, 50, 70, 3, 3)
	attrs := onnx.Attrs{"strides": []int{1, 1}, "dilations": []int{1, 1}, "pads": []int{1, 1, 1, 1}}
	b := onnx.NewBuilder(16)
	b.NeedDomain("noether", 1)
	px, pdy, constant := b.Input("x", onnx.Float, x.Shape...), b.Input("dy", onnx.Float, dy.Shape...), b.Const("", w)
	b.Output("y", b.Node("noether", "Conv", 1, attrs, px, constant)[0])
	b.Output("dx", b.Node("noether", "ConvTranspose", 1, attrs, pdy, constant)[0])
	got := runGraph(t, b, map[string]tensor.Tensor{"x": x, "dy": dy})
	y, err1 := run(t, "Conv", attrs, 2, 1, x, w)
	dx, err2 := run(t, "ConvTranspose", attrs, 2, 1, dy, w)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for name, want := range map[string]tensor.Tensor{"y": y[0], "dx": dx[0]} {
		if !slices.Equal(got[name].Data, want.Data) {
			t.Errorf("%s differs where the weights are constant", name)
		}
	}
}
