//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// A slidingWindow is a two-dimensional kernel that slides over an input.
type slidingWindow struct {
	kernel, strides, dilations, pads []int // pads: before both axes, after both axes
	inputSize, outputSize            [2]int
}

// each calls f for every tap (element of the kernel) at every output position. index is that of the
// input element that the tap reads, or -1 in the padding.
func (s slidingWindow) each(f func(output, tap, index int)) {
	for output := range s.outputSize[0] * s.outputSize[1] {
		for tap := range s.kernel[0] * s.kernel[1] {
			row := output/s.outputSize[1]*s.strides[0] + tap/s.kernel[1]*s.dilations[0] - s.pads[0]
			column := output%s.outputSize[1]*s.strides[1] + tap%s.kernel[1]*s.dilations[1] - s.pads[1]
			index := -1
			if row >= 0 && row < s.inputSize[0] && column >= 0 && column < s.inputSize[1] {
				index = row*s.inputSize[1] + column
			}
			f(output, tap, index)
		}
	}
}

// TestConv compares convolutions in float64 with direct sums (see checkExact), with declared and
// with free sizes of the input. 11 is the oldest operator set that inFloat64 rewrites.
func TestConv(t *testing.T) {
	t.Parallel()
	one := []int{1, 1}
	for _, c := range []struct {
		name            string
		groups, in, out int // number of groups, and channels of each
		slidingWindow
		bias bool
	}{
		{"plain", 1, 3, 4, slidingWindow{[]int{3, 3}, one, one, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{6, 5}}, true},
		{"dilations", 1, 3, 4, slidingWindow{[]int{3, 2}, []int{2, 1}, []int{1, 2}, []int{1, 0, 2, 1}, [2]int{6, 5}, [2]int{4, 4}}, false},
		{"1 x 1", 1, 3, 4, slidingWindow{one, one, one, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{6, 5}}, false},
		{"1 x 1, strides", 1, 3, 4, slidingWindow{one, []int{2, 3}, one, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{3, 2}}, true},
		{"groups", 2, 3, 2, slidingWindow{[]int{2, 3}, []int{2, 2}, one, []int{0, 1, 1, 1}, [2]int{6, 5}, [2]int{3, 3}}, true},
		{"groups with dilations", 3, 1, 2, slidingWindow{[]int{2, 3}, one, []int{2, 1}, []int{0, 1, 1, 0}, [2]int{6, 5}, [2]int{5, 4}}, true},
		{"depthwise", 4, 1, 1, slidingWindow{[]int{3, 3}, []int{2, 2}, one, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{3, 3}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seed.Rand(1, c.name)
			channels, filters := c.groups*c.in, c.groups*c.out
			x := normal(r, 2, channels, c.inputSize[0], c.inputSize[1])
			w, bias := normal(r, filters, c.in, c.kernel[0], c.kernel[1]), normal(r, filters)
			area, outputArea, taps := c.inputSize[0]*c.inputSize[1], c.outputSize[0]*c.outputSize[1], c.kernel[0]*c.kernel[1]
			want := make([]float64, 2*filters*outputArea)
			for n := range 2 {
				for o := range filters {
					y := want[(n*filters+o)*outputArea:][:outputArea]
					if c.bias {
						for p := range y {
							y[p] = float64(bias.Data[o])
						}
					}
					for i := range c.in {
						channel := x.Data[(n*channels+o/c.out*c.in+i)*area:][:area]
						c.each(func(output, tap, index int) {
							if index >= 0 {
								y[output] += float64(channel[index]) * float64(w.Data[(o*c.in+i)*taps+tap])
							}
						})
					}
				}
			}
			attrs := onnx.Attrs{"group": c.groups, "strides": c.strides, "dilations": c.dilations, "pads": c.pads}
			for _, freeSizes := range []bool{false, true} {
				checkExact(t, 11, x, freeSizes, func(b *onnx.Builder, x onnx.Value) onnx.Value {
					if c.bias {
						return b.Conv(x, b.Const("w", w), b.Const("bias", bias), attrs)
					}
					return b.Conv(x, b.Const("w", w), "", attrs)
				}, want, 2, filters, c.outputSize[0], c.outputSize[1])
			}
		})
	}
}

// TestAveragePool compares average pooling in float64 with direct sums, as TestConv does.
func TestAveragePool(t *testing.T) {
	t.Parallel()
	one, zero := []int{1, 1}, []int{0, 0, 0, 0}
	for _, c := range []struct {
		name  string
		opset int
		slidingWindow
		attrs onnx.Attrs
	}{
		{"plain", 11, slidingWindow{[]int{2, 3}, one, one, zero, [2]int{6, 5}, [2]int{5, 3}}, onnx.Attrs{}},
		{"strides", 11, slidingWindow{[]int{3, 3}, []int{2, 2}, one, zero, [2]int{6, 5}, [2]int{2, 2}}, onnx.Attrs{}},
		{"count_include_pad", 11, slidingWindow{[]int{3, 3}, []int{2, 1}, one, []int{1, 1, 0, 1}, [2]int{6, 5}, [2]int{3, 5}}, onnx.Attrs{"count_include_pad": 1}},
		{"dilations", 19, slidingWindow{[]int{2, 2}, one, []int{2, 3}, zero, [2]int{6, 5}, [2]int{4, 2}}, onnx.Attrs{"dilations": []int{2, 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := normal(seed.Rand(1, c.name), 2, 3, c.inputSize[0], c.inputSize[1])
			area, taps := c.inputSize[0]*c.inputSize[1], float64(c.kernel[0]*c.kernel[1])
			var want []float64
			for channel := range 6 { // of 2 samples, 3 each
				y := make([]float64, c.outputSize[0]*c.outputSize[1])
				c.each(func(output, _, index int) {
					if index >= 0 {
						y[output] += float64(x.Data[channel*area+index]) / taps
					}
				})
				want = append(want, y...)
			}
			c.attrs["kernel_shape"], c.attrs["strides"], c.attrs["pads"] = c.kernel, c.strides, c.pads
			for _, freeSizes := range []bool{false, true} {
				checkExact(t, c.opset, x, freeSizes, func(b *onnx.Builder, x onnx.Value) onnx.Value {
					return b.Op("AveragePool", c.attrs, x)
				}, want, 2, 3, c.outputSize[0], c.outputSize[1])
			}
		})
	}
}

func TestGlobalAveragePool(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(7), 2, 3, 4, 5)
	var want []float64
	for channel := range slices.Chunk(widened(x.Data), 20) { // of 4 x 5 positions
		mean := 0.0
		for _, v := range channel {
			mean += v / 20
		}
		want = append(want, mean)
	}
	for _, freeSizes := range []bool{false, true} {
		checkExact(t, 11, x, freeSizes, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("GlobalAveragePool", nil, x) }, want, 2, 3, 1, 1)
	}
}
