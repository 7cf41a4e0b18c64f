//go:build cgo

package oracle_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// A slide is a window that slides over two axes, written out.
type slide struct {
	kernel, strides, dilations, pads []int // pads: before both, after both
	size, out                        [2]int
}

// each calls f with every place, and every place of the input that its window reads; at is -1 in
// the padding, and -2 beyond it.
func (s slide) each(f func(place, tap, at int)) {
	for p := range s.out[0] * s.out[1] {
		for k := range s.kernel[0] * s.kernel[1] {
			place, tap := [2]int{p / s.out[1], p % s.out[1]}, [2]int{k / s.kernel[1], k % s.kernel[1]}
			at, inside := [2]int{}, 0
			for i := range 2 {
				at[i] = place[i]*s.strides[i] + tap[i]*s.dilations[i] - s.pads[i]
				if at[i] < 0 || at[i] >= s.size[i] {
					inside = min(inside, -1)
				}
				if at[i] >= s.size[i]+s.pads[2+i] {
					inside = -2
				}
			}
			if inside == 0 {
				inside = at[0]*s.size[1] + at[1]
			}
			f(p, k, inside)
		}
	}
}

func TestConv(t *testing.T) {
	t.Parallel()
	one := []int{1, 1}
	for _, c := range []struct {
		name            string
		groups, in, out int // channels of a group
		slide
		auto string
		bias bool
	}{
		{"plain", 1, 3, 4, slide{[]int{3, 3}, one, one, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{6, 5}}, "", true},
		{"gaps", 1, 3, 4, slide{[]int{3, 2}, []int{2, 1}, []int{1, 2}, []int{1, 0, 2, 1}, [2]int{6, 5}, [2]int{4, 4}}, "", false},
		{"one place", 1, 3, 4, slide{one, one, one, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{6, 5}}, "", false},
		{"one place, strides", 1, 3, 4, slide{one, []int{2, 3}, one, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{3, 2}}, "", true},
		{"groups", 2, 3, 2, slide{[]int{2, 3}, []int{2, 2}, one, []int{0, 1, 1, 1}, [2]int{6, 5}, [2]int{3, 3}}, "", true},
		{"groups with gaps", 3, 1, 2, slide{[]int{2, 3}, one, []int{2, 1}, []int{0, 1, 1, 0}, [2]int{6, 5}, [2]int{5, 4}}, "", true},
		{"depthwise", 4, 1, 1, slide{[]int{3, 3}, []int{2, 2}, one, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{3, 3}}, "", true},
		{"depthwise with gaps", 4, 1, 1, slide{[]int{3, 2}, one, []int{1, 2}, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{6, 5}}, "", false},
		{"in tiles", 1, 80, 72, slide{[]int{3, 3}, one, one, []int{1, 0, 0, 1}, [2]int{8, 9}, [2]int{7, 8}}, "", true},
		{"depthwise in tiles", 4, 1, 1, slide{[]int{3, 3}, one, one, []int{1, 1, 1, 1}, [2]int{7, 8}, [2]int{7, 8}}, "", false},
		{"same, upper", 1, 2, 2, slide{[]int{2, 3}, []int{2, 2}, one, []int{0, 0, 0, 1}, [2]int{6, 4}, [2]int{3, 2}}, "SAME_UPPER", true},
		{"same, lower", 1, 2, 2, slide{[]int{2, 3}, []int{2, 2}, one, []int{0, 1, 0, 0}, [2]int{6, 4}, [2]int{3, 2}}, "SAME_LOWER", true},
		{"same, longer strides than kernels", 1, 2, 2, slide{[]int{1, 2}, []int{2, 3}, one, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{3, 2}}, "SAME_UPPER", true},
		{"valid", 1, 2, 2, slide{[]int{2, 3}, one, one, []int{0, 0, 0, 0}, [2]int{6, 4}, [2]int{5, 2}}, "VALID", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seed.Rand(1, c.name)
			channels, filters := c.groups*c.in, c.groups*c.out
			x := normal(r, 2, channels, c.size[0], c.size[1])
			w, bias := normal(r, filters, c.in, c.kernel[0], c.kernel[1]), normal(r, filters)
			area, places, taps := c.size[0]*c.size[1], c.places(), c.kernel[0]*c.kernel[1]
			want := make([]float64, 2*filters*places)
			for n := range 2 {
				for o := range filters {
					y := want[(n*filters+o)*places:][:places]
					if c.bias {
						for p := range y {
							y[p] = float64(bias.Data[o])
						}
					}
					for i := range c.in {
						from := x.Data[(n*channels+o/c.out*c.in+i)*area:][:area]
						c.each(func(p, k, at int) {
							if at >= 0 {
								y[p] += float64(from[at]) * float64(w.Data[(o*c.in+i)*taps+k])
							}
						})
					}
				}
			}
			attrs := onnx.Attrs{"group": c.groups, "strides": c.strides, "dilations": c.dilations, "pads": c.pads}
			if c.auto != "" {
				delete(attrs, "pads")
				attrs["auto_pad"] = c.auto
			}
			for _, free := range []bool{false, true} {
				checkExact(t, 11, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value {
					var shift onnx.Value
					if c.bias {
						shift = b.Const("bias", bias)
					}
					return b.Conv(x, b.Const("w", w), shift, attrs)
				}, want, 2, filters, c.slide.out[0], c.slide.out[1])
			}
		})
	}
}

// A transposed convolution adds to what a convolution with the same window reads.
func TestConvTranspose(t *testing.T) {
	t.Parallel()
	one, none := []int{1, 1}, []int{0, 0, 0, 0}
	for _, c := range []struct {
		name            string
		groups, in, out int // channels of a group
		slide               // from the output to the input
		more            onnx.Attrs
		fixed           bool // only where sizes are known
	}{
		{"plain", 1, 3, 4, slide{[]int{3, 2}, one, one, none, [2]int{6, 5}, [2]int{4, 4}}, nil, false},
		{"strides", 1, 3, 2, slide{[]int{2, 3}, []int{2, 3}, one, none, [2]int{6, 9}, [2]int{3, 3}}, nil, false},
		{"strides and padding", 1, 2, 3, slide{[]int{4, 3}, []int{2, 2}, one, []int{1, 1, 1, 0}, [2]int{8, 8}, [2]int{4, 4}}, nil, false},
		{"output padding", 1, 2, 3, slide{[]int{3, 3}, []int{2, 2}, one, []int{1, 1, 1, 1}, [2]int{8, 7}, [2]int{4, 4}}, onnx.Attrs{"output_padding": []int{1, 0}}, false},
		{"gaps", 1, 2, 3, slide{[]int{2, 3}, []int{1, 2}, []int{3, 2}, []int{0, 1, 1, 0}, [2]int{6, 8}, [2]int{4, 3}}, nil, false},
		{"longer strides than kernels", 1, 2, 3, slide{[]int{1, 2}, []int{2, 3}, one, none, [2]int{5, 5}, [2]int{3, 2}}, nil, false},
		{"groups", 2, 3, 2, slide{[]int{3, 3}, []int{2, 1}, one, []int{1, 0, 0, 1}, [2]int{6, 4}, [2]int{3, 3}}, nil, false},
		{"depthwise", 4, 1, 1, slide{[]int{4, 4}, []int{2, 2}, one, []int{1, 1, 1, 1}, [2]int{6, 6}, [2]int{3, 3}}, nil, false},
		{"same, upper", 1, 2, 3, slide{[]int{3, 4}, []int{2, 1}, one, []int{0, 1, 1, 2}, [2]int{6, 4}, [2]int{3, 4}}, onnx.Attrs{"auto_pad": "SAME_UPPER"}, false},
		{"output shape", 1, 2, 3, slide{[]int{3, 3}, []int{2, 2}, one, []int{1, 0, 0, 0}, [2]int{6, 7}, [2]int{3, 3}}, onnx.Attrs{"output_shape": []int{6, 7}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := seed.Rand(2, c.name)
			channels, filters := c.groups*c.in, c.groups*c.out
			x := normal(r, 2, channels, c.slide.out[0], c.slide.out[1])
			w, bias := normal(r, channels, c.out, c.kernel[0], c.kernel[1]), normal(r, filters)
			area, places, taps := c.size[0]*c.size[1], c.places(), c.kernel[0]*c.kernel[1]
			want := make([]float64, 2*filters*area)
			for i := range want {
				want[i] = float64(bias.Data[i/area%filters])
			}
			for n := range 2 {
				for i := range channels {
					from := x.Data[(n*channels+i)*places:][:places]
					for o := range c.out {
						y := want[(n*filters+i/c.in*c.out+o)*area:][:area]
						c.each(func(p, k, at int) {
							if at >= 0 {
								y[at] += float64(from[p]) * float64(w.Data[(i*c.out+o)*taps+k])
							}
						})
					}
				}
			}
			attrs := onnx.Attrs{"group": c.groups, "strides": c.strides, "dilations": c.dilations, "pads": c.pads}
			for k, v := range c.more {
				if attrs[k] = v; k != "output_padding" {
					delete(attrs, "pads")
				}
			}
			for _, free := range []bool{false, !c.fixed} {
				checkExact(t, 11, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value {
					return b.Op("ConvTranspose", attrs, x, b.Const("w", w), b.Const("bias", bias))
				}, want, 2, filters, c.size[0], c.size[1])
			}
		})
	}
}

func (s slide) places() int { return s.out[0] * s.out[1] }

func TestAveragePool(t *testing.T) {
	t.Parallel()
	one, zero := []int{1, 1}, []int{0, 0, 0, 0}
	for _, c := range []struct {
		name  string
		opset int
		slide
		more onnx.Attrs
	}{
		{"plain", 11, slide{[]int{2, 3}, one, one, zero, [2]int{6, 5}, [2]int{5, 3}}, nil},
		{"strides", 11, slide{[]int{3, 3}, []int{2, 2}, one, zero, [2]int{6, 5}, [2]int{2, 2}}, nil},
		{"padding", 11, slide{[]int{3, 3}, []int{2, 1}, one, []int{1, 1, 0, 1}, [2]int{6, 5}, [2]int{3, 5}}, nil},
		{"padding that counts", 11, slide{[]int{3, 3}, []int{2, 1}, one, []int{1, 1, 0, 1}, [2]int{6, 5}, [2]int{3, 5}}, onnx.Attrs{"count_include_pad": 1}},
		{"windows that end beyond", 11, slide{[]int{3, 2}, []int{2, 2}, one, []int{0, 1, 0, 0}, [2]int{6, 5}, [2]int{3, 3}}, onnx.Attrs{"ceil_mode": 1}},
		{"windows that end beyond padding that counts", 11, slide{[]int{3, 2}, []int{2, 2}, one, []int{1, 1, 0, 0}, [2]int{5, 5}, [2]int{3, 3}},
			onnx.Attrs{"ceil_mode": 1, "count_include_pad": 1}},
		{"same, upper", 11, slide{[]int{3, 2}, []int{2, 1}, one, []int{0, 0, 1, 1}, [2]int{6, 5}, [2]int{3, 5}}, onnx.Attrs{"auto_pad": "SAME_UPPER"}},
		{"same that counts", 11, slide{[]int{3, 2}, []int{2, 1}, one, []int{1, 1, 0, 0}, [2]int{6, 5}, [2]int{3, 5}},
			onnx.Attrs{"auto_pad": "SAME_LOWER", "count_include_pad": 1}},
		{"the last window begins beyond", 22, slide{[]int{2, 2}, []int{3, 2}, one, []int{0, 0, 1, 1}, [2]int{6, 4}, [2]int{2, 2}}, onnx.Attrs{"ceil_mode": 1}},
		{"gaps", 19, slide{[]int{2, 2}, one, []int{2, 3}, []int{1, 1, 1, 1}, [2]int{6, 5}, [2]int{6, 4}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := normal(seed.Rand(1, c.name), 2, 3, c.size[0], c.size[1])
			area, places := c.size[0]*c.size[1], c.places()
			include := c.more["count_include_pad"] == 1
			var want []float64
			for m := range 6 {
				y, counts := make([]float64, places), make([]float64, places)
				c.each(func(p, _, at int) {
					if at >= 0 {
						y[p] += float64(x.Data[m*area+at])
					}
					if at >= 0 || include && at == -1 {
						counts[p]++
					}
				})
				for p := range y {
					y[p] /= counts[p]
				}
				want = append(want, y...)
			}
			attrs := onnx.Attrs{"kernel_shape": c.kernel, "strides": c.strides, "pads": c.pads}
			if !slices.Equal(c.dilations, one) {
				attrs["dilations"] = c.dilations
			}
			for k, v := range c.more {
				if attrs[k] = v; k == "auto_pad" {
					delete(attrs, "pads")
				}
			}
			for _, free := range []bool{false, true} {
				checkExact(t, c.opset, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("AveragePool", attrs, x) }, want, 2, 3, c.out[0], c.out[1])
			}
		})
	}
}

// Roots of sums of powers, in windows and over all places.
func TestLpPool(t *testing.T) {
	t.Parallel()
	win := slide{[]int{3, 2}, []int{2, 1}, []int{1, 1}, []int{1, 0, 1, 1}, [2]int{6, 5}, [2]int{3, 5}}
	beyond := slide{[]int{3, 2}, []int{2, 2}, []int{1, 1}, []int{0, 0, 0, 0}, [2]int{6, 5}, [2]int{3, 3}}
	x := normal(seed.Rand(9), 2, 3, 6, 5)
	for p := 1; p <= 3; p++ {
		for _, c := range []struct {
			op    string
			opset int
			attrs onnx.Attrs
			each  func(f func(place, tap, at int))
			out   []int
		}{
			{"LpPool", 11, onnx.Attrs{"kernel_shape": win.kernel, "strides": win.strides, "pads": win.pads}, win.each, win.out[:]},
			{"LpPool", 18, onnx.Attrs{"kernel_shape": beyond.kernel, "strides": beyond.strides, "ceil_mode": 1}, beyond.each, beyond.out[:]},
			{"GlobalLpPool", 11, onnx.Attrs{}, func(f func(place, tap, at int)) {
				for at := range 30 {
					f(0, at, at)
				}
			}, []int{1, 1}},
		} {
			c.attrs["p"] = p
			places := c.out[0] * c.out[1]
			want := make([]float64, 6*places)
			for m := range 6 {
				c.each(func(place, _, at int) {
					if at >= 0 {
						want[m*places+place] += math.Pow(math.Abs(float64(x.Data[m*30+at])), float64(p))
					}
				})
			}
			for i, v := range want {
				want[i] = math.Pow(v, 1/float64(p))
			}
			for _, free := range []bool{false, true} {
				t.Run(fmt.Sprint(c.op, c.opset, p, free), func(t *testing.T) {
					checkExact(t, c.opset, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(c.op, c.attrs, x) }, want, 2, 3, c.out[0], c.out[1])
				})
			}
		}
	}
}

func TestGlobalPools(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(7), 2, 3, 4, 5)
	for op, pool := range map[string]func(z []float64) float64{
		"GlobalAveragePool": func(z []float64) (mean float64) {
			for _, v := range z {
				mean += v / float64(len(z))
			}
			return mean
		},
		"GlobalMaxPool": slices.Max[[]float64],
	} {
		var want []float64
		for m := range 6 {
			want = append(want, pool(widened(x.Data[m*20:m*20+20])))
		}
		for _, free := range []bool{false, true} {
			t.Run(fmt.Sprint(op, free), func(t *testing.T) {
				checkExact(t, 11, x, free, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(op, nil, x) }, want, 2, 3, 1, 1)
			})
		}
	}
}
