package rewrite

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/internal/window"
	"github.com/noether-ml/noether/onnx/pb"
)

// FixCeilMode rewrites pools with ceil_mode and known sizes whose last window would start in the
// end padding. Runtimes leave it out, but their shape inference before opset 22 includes it and
// rejects conflicting sizes.
//
// Padding that only that window would read is removed, and input elements are cropped. A MaxPool
// whose indices are read gets a padding that needs no rounding, and no ceil_mode.
func FixCeilMode(m *onnx.Model) (*onnx.Model, error) {
	ceils := func(n *pb.NodeProto) bool {
		return onnx.IsStandard(n) && slices.Contains([]string{"MaxPool", "AveragePool", "LpPool"}, n.GetOpType()) &&
			len(n.Input) == 1 && onnx.AttrInt(n, "ceil_mode", 0) == 1
	}
	if m.Opset() >= 22 || !slices.ContainsFunc(m.Nodes(), ceils) {
		return m, nil
	}
	b, info := onnx.Extend(m), infer.Analyze(m)
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if !ceils(n) {
			return nil
		}
		return fixCeilMode(b, n, info.Shape(n.Input[0]))
	})
	return b.Snapshot(), b.Err()
}

// fixCeilMode adds a pool in place of n, of input shape x, or returns nil if it needs no change.
func fixCeilMode(b *onnx.Builder, n *pb.NodeProto, x []int) []onnx.Value {
	kernel := onnx.AttrInts(n, "kernel_shape") // one element for each spatial axis
	rank := len(kernel)
	if rank == 0 || len(x) != rank+2 || slices.Min(x[2:]) < 1 {
		return nil
	}
	// For ceil_mode: the padding, and elements of x to crop.
	pads, cut := make([]int, 2*rank), make([]int, rank)
	// Padding that gives the same windows without ceil_mode.
	floorPads := make([]int, 2*rank)
	leftOut := false
	for i, k := range kernel {
		w := window.Of(n, k, i, rank) // w.Begin: padding at the start, w.Pad: at both ends
		if w.Same {
			return nil
		}
		size, tail := x[2+i], w.Pad-w.Begin // tail: padding at the end
		positions := w.Output(size)
		// unread counts elements after the last window, negative if it ends beyond the padding.
		unread := size + w.Pad - ((positions-1)*w.Stride + w.Dilation*(k-1) + 1)
		pads[i], pads[rank+i] = w.Begin, tail
		floorPads[i], floorPads[rank+i] = w.Begin, tail-min(unread, 0)
		if positions < w.OutputCeil(size) {
			leftOut = true
			pads[rank+i], cut[i] = max(tail-unread, 0), max(unread-tail, 0)
		}
	}
	in := onnx.Value(n.Input[0])
	switch {
	case !leftOut:
		return nil
	case slices.Max(cut) > 0 && len(n.Output) > 1: // cropping would change the indices of maxima; padding does not
		return poolWith(b, n, in, floorPads, 0)
	}
	for i, c := range cut {
		if c > 0 {
			in = b.Slice(in, 2+i, 0, x[2+i]-c, 1)
		}
	}
	return poolWith(b, n, in, pads, 1)
}

// poolWith adds a copy of a pool with another input, other pads and another ceil_mode.
func poolWith(b *onnx.Builder, n *pb.NodeProto, in onnx.Value, pads []int, ceilMode int) []onnx.Value {
	attrs := onnx.AttrsOf(n)
	delete(attrs, "auto_pad")
	attrs["ceil_mode"], attrs["pads"] = ceilMode, pads
	return b.Ops(n.GetOpType(), len(n.Output), attrs, in)
}
