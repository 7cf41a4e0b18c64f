package oracle

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// convTranspose adds up what each tap makes of the input, at the places where the tap writes it:
// tap k of place p is written to place p stride + k dilation - before.
func convTranspose(w *writer, n *pb.NodeProto) onnx.Value {
	k := w.static.Shape(n.Input[1]) // in x out / group x kernel
	if len(k) < 3 || slices.Min(k) < 1 || product(k[2:]) > mostTaps {
		return ""
	}
	win := given(n, k[2:])
	ends, ok := w.transposedEnds(n, win)
	if !ok {
		return ""
	}
	groups := onnx.AttrInt(n, "group", 1)
	x, taps := w.x(n, 0), win.size()
	kernels := w.Transpose(w.Reshape(w.x(n, 1), groups, k[0]/groups, k[1], taps), 0, 3, 2, 1) // group x taps x out x in
	maps := w.MatMul(w.Reshape(kernels, groups, taps*k[1], -1), w.Reshape(x, 0, groups, k[0]/groups, -1))
	maps = w.Reshape(maps, 0, groups, taps, k[1], -1)
	space := w.Slice(w.Shape(x), 0, 2, len(k), 1)
	terms := make([]onnx.Value, taps)
	for t := range terms {
		term := w.Slice(maps, 2, t, t+1, 1)
		term = w.ReshapeTo(term, w.Concat(0, w.Ints(0, groups*k[1]), space))
		terms[t] = w.padded(w.apart(term, win.strides, space), win.shift(t, ends), 0)
	}
	y := w.sum(terms)
	if bias := w.x(n, 2); bias != "" {
		y = w.Add(y, w.column(bias, len(k)))
	}
	return y
}

// transposedEnds is how much longer the output, with the padding before it, is than strides times
// the input. It sets the padding of a window where the node gives a shape instead; ok is false
// where that depends on sizes that are not known, or is more than the taps write.
func (w *writer) transposedEnds(n *pb.NodeProto, win window) (ends []int, ok bool) {
	rank := len(win.kernel)
	x, shape, extra := w.static.Shape(n.Input[0]), onnx.AttrInts(n, "output_shape"), onnx.AttrInts(n, "output_padding")
	ends = make([]int, rank)
	for i := range ends {
		ends[i] = win.reach(i) + 1 - win.strides[i]
		if len(extra) == rank {
			ends[i] += extra[i]
		}
		switch {
		case len(shape) >= rank && !fixed(x):
			return nil, false
		case len(shape) >= rank || same(n):
			total := ends[i]
			if len(shape) >= rank { // it may begin with batch and channels
				total -= shape[len(shape)-rank+i] - x[2+i]*win.strides[i]
			}
			before := total - total/2
			if onnx.AttrString(n, "auto_pad", "") == "SAME_UPPER" {
				before = total / 2
			}
			win.known[i], win.known[rank+i] = before, total-before
		}
		ends[i] -= win.known[rank+i]
	}
	return ends, slices.Min(win.known) >= 0
}

// shift is the padding that puts what tap t writes at its places in the output.
func (win window) shift(t int, ends []int) padding {
	before, after := win.tap(t), slices.Clone(ends)
	for i := range before {
		after[i] -= before[i]
		before[i] -= win.known[i]
	}
	return padding{known: slices.Concat(before, after)}
}

// apart puts the places of x, of so many in space, strides apart, with zeros between and after
// them.
func (w *writer) apart(x onnx.Value, strides []int, space onnx.Value) onnx.Value {
	rank := len(strides)
	if slices.Max(strides) == 1 {
		return x
	}
	axes, pads := make([]int, rank), make([]int, 2*(2+2*rank))
	for i, s := range strides {
		axes[i] = 3 + 2*i
		pads[len(pads)/2+axes[i]] = s - 1
	}
	x = w.Op("Pad", nil, w.Unsqueeze(x, axes...), w.Ints(pads...), w.num(0))
	return w.ReshapeTo(x, w.Concat(0, w.Ints(0, 0), w.Mul(space, w.Ints(strides...))))
}
