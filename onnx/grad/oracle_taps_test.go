//go:build cgo

package grad_test

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A window is how a kernel slides over the spatial axes: tap k of output position p reads position
// p*stride + k*dilation of the padded input.
type window struct {
	kernel, strides, dilations []int
	pads                       []int // before every spatial axis, then after every one
	taps                       int   // product of kernel
}

// maxTaps is the largest kernel that is rewritten: each of its taps becomes a Slice.
const maxTaps = 1 << 12

// windowOf returns the window of a convolution or a pool. ok is false where the node sets auto_pad
// or ceil_mode, which are not supported, and where the kernel is empty or too large.
func windowOf(n *pb.NodeProto, kernel []int) (win window, ok bool) {
	list := func(name string, length, otherwise int) []int {
		if v := onnx.AttrInts(n, name); len(v) == length {
			return v
		}
		return slices.Repeat([]int{otherwise}, length)
	}
	rank := len(kernel)
	win = window{kernel, list("strides", rank, 1), list("dilations", rank, 1), list("pads", 2*rank, 0), 1}
	for _, k := range kernel {
		if k < 1 || k > maxTaps || win.taps > maxTaps {
			return win, false
		}
		win.taps *= k
	}
	supported := onnx.AttrString(n, "auto_pad", "NOTSET") == "NOTSET" && onnx.AttrInt(n, "ceil_mode", 0) == 0
	return win, supported && rank > 0 && win.taps <= maxTaps
}

// spatialAxes returns the axes after batch and channels: 2, 3, ..., rank-1.
func spatialAxes(rank int) []int {
	var axes []int
	for a := 2; a < rank; a++ {
		axes = append(axes, a)
	}
	return axes
}

// A writer replaces nodes of a float32 graph by float64 ones; w.x is an input of a node in float64.

// tapSlices returns what each tap of the window reads: slices of x, each as large as the output.
// The last axis of the kernel varies fastest.
func (w *writer) tapSlices(x onnx.Value, win window) []onnx.Value {
	rank := len(win.kernel)
	if slices.Max(win.pads) > 0 || slices.Min(win.pads) < 0 {
		pads := slices.Concat([]int{0, 0}, win.pads[:rank], []int{0, 0}, win.pads[rank:])
		x = w.Op("Pad", nil, x, w.Ints(pads...), w.num(0))
	}
	if win.taps == 1 && slices.Max(win.strides) == 1 {
		return []onnx.Value{x}
	}
	list := make([]onnx.Value, win.taps)
	for tap := range list {
		starts, ends := make([]int, rank), make([]int, rank)
		for i, rest := rank-1, tap; i >= 0; i-- {
			starts[i] = rest % win.kernel[i] * win.dilations[i]
			rest /= win.kernel[i]
			ends[i] = starts[i] - win.dilations[i]*(win.kernel[i]-1) // counted from the end
			if ends[i] == 0 {
				ends[i] = 1 << 40 // the end of the axis
			}
		}
		list[tap] = w.Op("Slice", nil, x, w.Ints(starts...), w.Ints(ends...), w.Ints(spatialAxes(rank+2)...), w.Ints(win.strides...))
	}
	return list
}

// conv writes a convolution as a matrix product for each group. With in input and out output
// channels of a group, it multiplies the kernels, out x (in * taps), by what their taps read, (in *
// taps) x positions. It returns "" where the shape of the kernels is unknown or windowOf does not
// support the window.
func conv(w *writer, n *pb.NodeProto) onnx.Value {
	k := w.static.Shape(n.Input[1]) // all output channels x in x kernel, as known before a run
	if len(k) < 3 || slices.Min(k) < 1 {
		return ""
	}
	win, ok := windowOf(n, k[2:])
	if !ok {
		return ""
	}
	groups := onnx.AttrInt(n, "group", 1)
	read := w.tapSlices(w.x(n, 0), win)
	columns := make([]onnx.Value, len(read))
	for i, x := range read {
		columns[i] = w.Reshape(x, 0, groups, k[1], 1, -1)
	}
	product := w.MatMul(w.Reshape(w.x(n, 1), groups, k[0]/groups, -1), w.Reshape(w.Concat(3, columns...), 0, groups, k[1]*win.taps, -1))
	y := w.ReshapeTo(product, w.Concat(0, w.Ints(0, k[0]), w.Slice(w.Shape(read[0]), 0, 2, len(k), 1)))
	if bias := w.x(n, 2); bias != "" {
		y = w.Add(y, w.Reshape(bias, append([]int{-1}, slices.Repeat([]int{1}, len(k)-2)...)...))
	}
	return y
}

// averagePool writes a mean over windows whose elements all count: without padding, or with
// count_include_pad. It returns "" for other padding and where windowOf does not support the
// window.
func averagePool(w *writer, n *pb.NodeProto) onnx.Value {
	win, ok := windowOf(n, onnx.AttrInts(n, "kernel_shape"))
	if !ok || slices.Max(win.pads) > 0 && onnx.AttrInt(n, "count_include_pad", 0) == 0 {
		return ""
	}
	return w.Div(w.Op("Sum", nil, w.tapSlices(w.x(n, 0), win)...), w.num(float64(win.taps)))
}

// globalAveragePool writes a mean over the spatial axes. It returns "" if there are none or the
// rank is unknown.
func globalAveragePool(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	return w.ReduceMean(w.x(n, 0), true, spatialAxes(rank)...)
}
