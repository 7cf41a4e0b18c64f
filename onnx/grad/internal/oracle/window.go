package oracle

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A window is how a kernel slides over the spatial axes: what it reads at place p of the output,
// tap k, is place p stride + k dilation of the padded input.
type window struct {
	kernel, strides, dilations []int
	padding
}

// A padding is how much is added before each spatial axis, and then after each; less than 0 takes
// away.
type padding struct {
	known []int      // nil where it is
	value onnx.Value // worked out when the graph runs: int64
}

// given is the window of a node, with the padding that it has unless it asks for what sizes need.
func given(n *pb.NodeProto, kernel []int) window {
	rank := len(kernel)
	each := func(name string, count, otherwise int) []int {
		if list := onnx.AttrInts(n, name); len(list) == count {
			return list
		}
		return slices.Repeat([]int{otherwise}, count)
	}
	win := window{kernel: kernel, strides: each("strides", rank, 1), dilations: each("dilations", rank, 1)}
	win.known = each("pads", 2*rank, 0)
	if onnx.AttrString(n, "auto_pad", "NOTSET") != "NOTSET" {
		win.known = make([]int, 2*rank)
	}
	return win
}

// same reports whether a node's padding is what sizes need.
func same(n *pb.NodeProto) bool {
	return strings.HasPrefix(onnx.AttrString(n, "auto_pad", "NOTSET"), "SAME")
}

// windowOf is the window of a convolution or a pool.
func (w *writer) windowOf(n *pb.NodeProto, kernel []int) window {
	win := given(n, kernel)
	if same(n) {
		win.padding = w.samePadding(win, w.x(n, 0), w.static.Shape(n.Input[0]), onnx.AttrString(n, "auto_pad", "") == "SAME_LOWER")
	}
	return win
}

// samePadding makes as many places as x is long by the stride, rounded up. lower has the larger
// part of an odd number before.
func (w *writer) samePadding(win window, x onnx.Value, shape []int, lower bool) padding {
	rank := len(win.kernel)
	if !fixed(shape) {
		sizes := w.sizes(x, rank)
		places := w.Op("Ceil", nil, w.Div(sizes, w.vector(win.strides)))
		total := w.Relu(w.Sub(w.reached(win, places), sizes))
		less := w.Op("Floor", nil, w.Mul(total, w.num(0.5)))
		more := w.Sub(total, less)
		if lower {
			less, more = more, less
		}
		return padding{value: w.Cast(w.Concat(0, less, more), onnx.Int64)}
	}
	pads := make([]int, 2*rank)
	for i, s := range win.strides {
		places := (shape[2+i] + s - 1) / s
		total := max((places-1)*s+win.reach(i)+1-shape[2+i], 0)
		pads[i], pads[rank+i] = total/2, total-total/2
		if lower {
			pads[i], pads[rank+i] = pads[rank+i], pads[i]
		}
	}
	return padding{known: pads}
}

// sizes are those of the spatial axes when the graph runs, in float64.
func (w *writer) sizes(x onnx.Value, rank int) onnx.Value {
	return w.Cast(w.Slice(w.Shape(x), 0, 2, 2+rank, 1), onnx.Double)
}

// reached is how much of each axis so many places read, in float64: (places - 1) stride + reach +
// 1.
func (w *writer) reached(win window, places onnx.Value) onnx.Value {
	rest := make([]int, len(win.kernel))
	for i := range rest {
		rest[i] = win.reach(i) + 1 - win.strides[i]
	}
	return w.Add(w.Mul(places, w.vector(win.strides)), w.vector(rest))
}

// vector is a list of whole numbers in float64.
func (w *writer) vector(list []int) onnx.Value {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = float64(v)
	}
	return w.doubles([]int64{int64(len(list))}, values...)
}

// none reports whether nothing is added or taken away.
func (p padding) none() bool {
	return p.value == "" && !slices.ContainsFunc(p.known, func(v int) bool { return v != 0 })
}

// amounts are a padding as a tensor.
func (w *writer) amounts(p padding) onnx.Value {
	if p.value != "" {
		return p.value
	}
	return w.Ints(p.known...)
}

// padded is x with a number around it.
func (w *writer) padded(x onnx.Value, p padding, around float64) onnx.Value {
	if p.none() {
		return x
	}
	if p.value == "" {
		rank := len(p.known) / 2
		return w.Op("Pad", nil, x, w.Ints(slices.Concat([]int{0, 0}, p.known[:rank], []int{0, 0}, p.known[rank:])...), w.num(around))
	}
	half := func(i int) onnx.Value { return w.Squeeze(w.Slice(w.Reshape(p.value, 2, -1), 0, i, i+1, 1), 0) }
	outside := w.Ints(0, 0)
	return w.Op("Pad", nil, x, w.Concat(0, outside, half(0), outside, half(1)), w.num(around))
}

// less is what one padding has more than another.
func (w *writer) less(p, q padding) padding {
	if p.value != "" || q.value != "" {
		return padding{value: w.Sub(w.amounts(p), w.amounts(q))}
	}
	known := slices.Clone(p.known)
	for i, v := range q.known {
		known[i] -= v
	}
	return padding{known: known}
}

// fixed reports whether all sizes of space are known.
func fixed(shape []int) bool {
	return len(shape) > 2 && slices.Min(shape[2:]) >= 0
}

// space are the spatial axes of a feature map.
func space(rank int) []int {
	var axes []int
	for a := 2; a < rank; a++ {
		axes = append(axes, a)
	}
	return axes
}

// mostTaps is how many slices are written out for a node at most.
const mostTaps = 1 << 12

// size is how many taps there are.
func (win window) size() int { return product(win.kernel) }

// product is that of sizes, none of them negative, or more than anything that is written out.
func product(sizes []int) int {
	p := 1
	for _, n := range sizes {
		p = min(p*min(n, 1<<30), 1<<30)
	}
	return p
}

// reach is how far the last tap is from the first.
func (win window) reach(i int) int { return win.dilations[i] * (win.kernel[i] - 1) }

// tap is how far the t-th tap is from the first, the last axis fastest.
func (win window) tap(t int) []int {
	at := make([]int, len(win.kernel))
	for i := len(at) - 1; i >= 0; i-- {
		at[i] = t % win.kernel[i] * win.dilations[i]
		t /= win.kernel[i]
	}
	return at
}

// taps are what each tap of the window reads: slices of x with the size of the output, whose shape
// is y as far as it is known. Along the last axis numbers that are strides apart are brought
// together once for all taps: a slice copies runs of numbers many times faster than single ones.
func (w *writer) taps(x onnx.Value, win window, y []int) []onnx.Value {
	rank, last := len(win.kernel), len(win.kernel)-1
	x = w.padded(x, win.padding, 0)
	if win.size() == 1 && slices.Max(win.strides) == 1 {
		return []onnx.Value{x}
	}
	stride := win.strides[last]
	phases := map[int]onnx.Value{}
	list := make([]onnx.Value, win.size())
	for t := range list {
		starts, ends, strides, from := win.tap(t), make([]int, rank), slices.Clone(win.strides), x
		for i := range ends {
			ends[i] = starts[i] - win.reach(i) // from the end
			if ends[i] == 0 {
				ends[i] = 1 << 40
			}
		}
		if stride > 1 && fixed(y) {
			r := starts[last] % stride
			if phases[r] == "" {
				phases[r] = w.Slice(x, 1+rank, r, 1<<40, stride)
			}
			from, strides[last], starts[last] = phases[r], 1, starts[last]/stride
			ends[last] = starts[last] + y[1+rank]
		}
		list[t] = w.Op("Slice", nil, from, w.Ints(starts...), w.Ints(ends...), w.Ints(space(rank+2)...), w.Ints(strides...))
	}
	return list
}

// conv is a product of the kernels with what they read, laid out side by side; of kernels with one
// channel each, a sum over their taps.
func conv(w *writer, n *pb.NodeProto) onnx.Value {
	k := w.static.Shape(n.Input[1])
	if len(k) < 3 || slices.Min(k) < 1 {
		return ""
	}
	win := w.windowOf(n, k[2:])
	if win.size() > mostTaps {
		return ""
	}
	groups := onnx.AttrInt(n, "group", 1)
	y := w.convolved(n, win, k, groups)
	if bias := w.x(n, 2); bias != "" {
		y = w.Add(y, w.column(bias, len(k)))
	}
	return y
}

// convolved is a convolution without its bias.
func (w *writer) convolved(n *pb.NodeProto, win window, k []int, groups int) onnx.Value {
	x, kernels, y := w.x(n, 0), w.x(n, 1), w.static.Shape(n.Output[0])
	if win.suits(k, y, groups) {
		return w.inTiles(x, kernels, win, k, y)
	}
	taps := w.taps(x, win, y)
	if k[1] == 1 && k[0] == groups {
		return w.tapByTap(taps, kernels, k)
	}
	return w.ReshapeTo(w.multiply(taps, kernels, k, groups), w.mapShape(n, taps[0], k[0]))
}

// column is a number for each channel of a feature map.
func (w *writer) column(v onnx.Value, rank int) onnx.Value {
	return w.Reshape(v, append([]int{-1}, ones(rank-2)...)...)
}

func ones(n int) []int { return slices.Repeat([]int{1}, n) }

// tapByTap is the sum of taps times their weights, a number for each channel.
func (w *writer) tapByTap(taps []onnx.Value, kernels onnx.Value, k []int) (y onnx.Value) {
	weights := w.Reshape(kernels, append([]int{k[0], len(taps)}, ones(len(k)-2)...)...)
	for t, x := range taps {
		term := w.Mul(x, w.Squeeze(w.Slice(weights, 1, t, t+1, 1), 1))
		if y == "" {
			y = term
		} else {
			y = w.Add(y, term)
		}
	}
	return y
}

// multiply is, for each group, kernels (out x taps channels) times taps (batch x taps channels x
// places).
func (w *writer) multiply(taps []onnx.Value, kernels onnx.Value, k []int, groups int) onnx.Value {
	out, in := k[0]/groups, k[1]
	columns := make([]onnx.Value, len(taps))
	for t, x := range taps {
		if groups == 1 {
			columns[t] = w.Reshape(x, 0, in, -1)
		} else {
			columns[t] = w.Reshape(x, 0, groups, in, -1)
		}
	}
	rows := w.Transpose(w.Reshape(kernels, groups, out, in, len(taps)), 0, 1, 3, 2)
	if groups == 1 {
		return w.MatMul(w.Reshape(rows, out, -1), w.join(1, columns))
	}
	return w.MatMul(w.Reshape(rows, groups, out, -1), w.join(2, columns))
}

func (w *writer) join(axis int, list []onnx.Value) onnx.Value {
	if len(list) == 1 {
		return list[0]
	}
	return w.Concat(axis, list...)
}

// mapShape is the shape of a node's output, of so many channels: batch, and space of a tap.
func (w *writer) mapShape(n *pb.NodeProto, tap onnx.Value, channels int) onnx.Value {
	if y := w.static.Shape(n.Output[0]); fixed(y) {
		return w.Ints(append([]int{0, channels}, y[2:]...)...)
	}
	rank := len(w.static.Shape(n.Input[1]))
	return w.Concat(0, w.Ints(0, channels), w.Slice(w.Shape(tap), 0, 2, rank, 1))
}
