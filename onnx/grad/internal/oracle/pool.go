package oracle

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// averagePool is the sum over taps divided by how many of them count.
func averagePool(w *writer, n *pb.NodeProto) onnx.Value {
	given, win, ok := w.poolWindow(n)
	if !ok {
		return ""
	}
	x := w.x(n, 0)
	count := w.num(float64(win.size()))
	if !win.none() {
		count = w.counts(n, given, win)
	}
	return w.Div(w.sum(w.taps(x, win, w.static.Shape(n.Output[0]))), count)
}

// poolWindow is a pool's window with the padding that it is given, and with what its last places
// read; ok is false where it is too large to be written out.
func (w *writer) poolWindow(n *pb.NodeProto) (given, win window, ok bool) {
	given = w.windowOf(n, onnx.AttrInts(n, "kernel_shape"))
	if len(given.kernel) == 0 || given.size() > mostTaps {
		return given, given, false
	}
	win = given
	if onnx.AttrInt(n, "ceil_mode", 0) == 1 && given.value == "" {
		win.padding = w.ceilings(n, given)
	}
	return given, win, true
}

// ceilings is the padding with which windows end where the last one does that begins on the input
// or the padding before it, as ceil_mode says.
func (w *writer) ceilings(n *pb.NodeProto, win window) padding {
	rank := len(win.kernel)
	before, after := win.known[:rank], slices.Clone(win.known[rank:])
	x, y := w.static.Shape(n.Input[0]), w.static.Shape(n.Output[0])
	if fixed(x) && fixed(y) {
		for i := range after {
			after[i] = (y[2+i]-1)*win.strides[i] + win.reach(i) + 1 - x[2+i] - before[i]
		}
		return padding{known: slices.Concat(before, after)}
	}
	room := make([]int, rank) // less the size of x
	for i := range room {
		room[i] = before[i] + after[i] - win.reach(i) - 1 + win.strides[i]
	}
	strides, begins := w.vector(win.strides), w.Add(w.sizes(w.x(n, 0), rank), w.vector(before))
	all := w.Op("Ceil", nil, w.Div(w.Add(w.sizes(w.x(n, 0), rank), w.vector(room)), strides))
	places := w.Op("Min", nil, all, w.Op("Ceil", nil, w.Div(begins, strides)))
	rest := w.Cast(w.Sub(w.reached(win, places), begins), onnx.Int64)
	return padding{value: w.Concat(0, w.Ints(before...), rest)}
}

// counts are how many taps count at each place: those on the input, and those on padding that is
// given if it is included.
func (w *writer) counts(n *pb.NodeProto, given, win window) onnx.Value {
	rank := len(win.kernel)
	area := w.Slice(w.Shape(w.x(n, 0)), 0, 2, 2+rank, 1)
	if s := w.static.Shape(n.Input[0]); fixed(s) {
		area = w.Ints(s[2:]...)
	}
	ones := w.Expand(w.num(1), w.Concat(0, w.Ints(1, 1), area))
	if onnx.AttrInt(n, "count_include_pad", 0) == 1 {
		ones = w.padded(ones, given.padding, 1)
		win.padding = w.less(win.padding, given.padding)
	}
	return w.sum(w.taps(ones, win, w.static.Shape(n.Output[0])))
}

// sum adds tensors up; there is one at least.
func (w *writer) sum(list []onnx.Value) onnx.Value { return w.Op("Sum", nil, list...) }

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

// lpPool is the p-th root of the sum over taps of |x|^p.
func lpPool(w *writer, n *pb.NodeProto) onnx.Value {
	_, win, ok := w.poolWindow(n)
	if !ok {
		return ""
	}
	power, root := w.powers(n)
	return root(w.sum(w.taps(power(w.x(n, 0)), win, w.static.Shape(n.Output[0]))))
}

func globalLpPool(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	power, root := w.powers(n)
	return root(w.ReduceSum(power(w.x(n, 0)), true, space(rank)...))
}

// powers are |x|^p, of the node's p, and its inverse.
func (w *writer) powers(n *pb.NodeProto) (power, root func(onnx.Value) onnx.Value) {
	p := float64(onnx.AttrInt(n, "p", 2))
	switch p {
	case 1:
		return w.Abs, func(x onnx.Value) onnx.Value { return x }
	case 2:
		return func(x onnx.Value) onnx.Value { return w.Mul(x, x) }, w.Sqrt
	}
	return func(x onnx.Value) onnx.Value { return w.Pow(w.Abs(x), w.num(p)) }, func(x onnx.Value) onnx.Value { return w.Pow(x, w.num(1/p)) }
}
