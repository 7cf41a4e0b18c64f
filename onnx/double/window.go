package double

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A window is how a kernel slides over the spatial axes: what it reads at place p of the output, tap k, is place
// p stride + k dilation of the padded input.
type window struct {
	kernel, strides, dilations []int
	before, after              []int // padding
}

// windowOf is the window of a node that reads x; ok is false where its padding is not known.
func (w *writer) windowOf(n *pb.NodeProto, kernel []int) (win window, ok bool) {
	rank := len(kernel)
	each := func(name string, count, otherwise int) []int {
		if list := onnx.AttrInts(n, name); len(list) == count {
			return list
		}
		return slices.Repeat([]int{otherwise}, count)
	}
	pads := each("pads", 2*rank, 0)
	win = window{kernel: kernel, strides: each("strides", rank, 1), dilations: each("dilations", rank, 1), before: pads[:rank], after: pads[rank:]}
	auto := onnx.AttrString(n, "auto_pad", "NOTSET")
	if !strings.HasPrefix(auto, "SAME") {
		return win, true
	}
	x := w.static.Shape(n.Input[0])
	if !fixed(x) {
		return win, false
	}
	win.before, win.after = make([]int, rank), make([]int, rank)
	for i, s := range win.strides {
		places := (x[2+i] + s - 1) / s
		total := max((places-1)*s+win.reach(i)+1-x[2+i], 0)
		win.before[i], win.after[i] = total/2, total-total/2
		if auto == "SAME_LOWER" {
			win.before[i], win.after[i] = win.after[i], win.before[i]
		}
	}
	return win, true
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

// mostTaps and mostPlaces are how many slices, and how many counts, are written out for a node at most.
const mostTaps, mostPlaces = 1 << 12, 1 << 24

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

// taps are what each tap of the window reads, the last axis fastest: slices of x with the size of the output.
func (w *writer) taps(x onnx.Value, win window) []onnx.Value {
	rank := len(win.kernel)
	if slices.Max(win.before) > 0 || slices.Max(win.after) > 0 {
		x = w.Op("Pad", nil, x, w.Ints(slices.Concat([]int{0, 0}, win.before, []int{0, 0}, win.after)...))
	}
	if win.size() == 1 && slices.Max(win.strides) == 1 {
		return []onnx.Value{x}
	}
	const end = 1 << 40
	list := make([]onnx.Value, win.size())
	for t := range list {
		starts, ends := make([]int, rank), make([]int, rank)
		for i, rest := rank-1, t; i >= 0; i-- {
			tap := rest % win.kernel[i]
			rest /= win.kernel[i]
			starts[i] = tap * win.dilations[i]
			ends[i] = starts[i] - win.reach(i) // from the end
			if ends[i] == 0 {
				ends[i] = end
			}
		}
		list[t] = w.Op("Slice", nil, x, w.Ints(starts...), w.Ints(ends...), w.Ints(space(rank+2)...), w.Ints(win.strides...))
	}
	return list
}

// conv is a product of the kernels with what they read, laid out side by side; of kernels with one channel each, a sum over their taps.
func conv(w *writer, n *pb.NodeProto) onnx.Value {
	k := w.static.Shape(n.Input[1])
	if len(k) < 3 || slices.Min(k) < 1 {
		return ""
	}
	win, ok := w.windowOf(n, k[2:])
	if !ok || win.size() > mostTaps {
		return ""
	}
	groups := onnx.AttrInt(n, "group", 1)
	taps := w.taps(w.x(n, 0), win)
	var y onnx.Value
	if k[1] == 1 && k[0] == groups {
		y = w.tapByTap(taps, w.x(n, 1), k)
	} else {
		y = w.multiply(taps, w.x(n, 1), k, groups)
		y = w.ReshapeTo(y, w.mapShape(n, taps[0], k[0]))
	}
	if bias := w.x(n, 2); bias != "" {
		y = w.Add(y, w.Reshape(bias, append([]int{k[0]}, ones(len(k)-2)...)...))
	}
	return y
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

// multiply is, for each group, kernels (out x taps channels) times taps (batch x taps channels x places).
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

// averagePool is the sum over taps divided by how many of them count.
func averagePool(w *writer, n *pb.NodeProto) onnx.Value {
	win, ok := w.windowOf(n, onnx.AttrInts(n, "kernel_shape"))
	if !ok || len(win.kernel) == 0 || win.size() > mostTaps {
		return ""
	}
	count := w.num(float64(win.size()))
	padded := slices.Max(win.before) > 0 || slices.Max(win.after) > 0
	if ceil := onnx.AttrInt(n, "ceil_mode", 0) == 1; padded || ceil {
		x, y := w.static.Shape(n.Input[0]), w.static.Shape(n.Output[0])
		if !fixed(x) || !fixed(y) || product(y[2:]) > mostPlaces {
			return ""
		}
		count = w.counts(win, x[2:], y[2:], onnx.AttrInt(n, "count_include_pad", 0) == 1)
		win.after = slices.Clone(win.after)
		for i := range win.after {
			win.after[i] = max(win.after[i], (y[2+i]-1)*win.strides[i]+win.reach(i)+1-x[2+i]-win.before[i])
		}
	}
	return w.Div(w.Op("Sum", nil, w.taps(w.x(n, 0), win)...), count)
}

// counts are how many taps count at each place: those on the input, and those on padding that is given if it is included.
func (w *writer) counts(win window, x, y []int, include bool) onnx.Value {
	counts, shape := []float64{1}, []int64{1, 1}
	for i, places := range y {
		low, high := win.before[i], win.before[i]+x[i]
		if include {
			low, high = 0, high+win.after[i]
		}
		var longer []float64
		for _, c := range counts {
			for p := range places {
				inside := 0.0
				for k := range win.kernel[i] {
					if at := p*win.strides[i] + k*win.dilations[i]; at >= low && at < high {
						inside++
					}
				}
				longer = append(longer, c*inside)
			}
		}
		counts, shape = longer, append(shape, int64(places))
	}
	return w.doubles(shape, counts...)
}

func globalAveragePool(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	return w.ReduceMean(w.x(n, 0), true, space(rank)...)
}

func globalMaxPool(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	return w.ReduceMax(w.x(n, 0), true, space(rank)...)
}
