// Package window computes the output sizes of sliding windows: of convolutions and pools.
package window

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A Window describes a sliding kernel along one axis. A tap is an element of the kernel, and a
// position is a place of the kernel, with one element of the output. Sizes are in elements.
type Window struct {
	Kernel, Stride, Dilation int // number of taps, distance of two positions, distance of two taps
	Begin, Pad               int // padding at the beginning, and at both ends together
	OutputPadding            int // output_padding of a transposed convolution
	// Auto_pad is SAME_UPPER or SAME_LOWER: the output has size / stride positions, rounded up.
	Same bool
	Ceil bool // ceil_mode: the number of positions is rounded up
}

// Of returns the window of a node along spatial axis i of axes, for a kernel of the given size
// there.
func Of(node *pb.NodeProto, kernel, i, axes int) Window {
	return Window{
		Kernel: kernel, Stride: max(Attr(node, "strides", i, 1), 1), Dilation: max(Attr(node, "dilations", i, 1), 1),
		Begin: Attr(node, "pads", i, 0), Pad: Attr(node, "pads", i, 0) + Attr(node, "pads", axes+i, 0), OutputPadding: Attr(node, "output_padding", i, 0),
		Same: strings.HasPrefix(onnx.AttrString(node, "auto_pad", ""), "SAME"), Ceil: onnx.AttrInt(node, "ceil_mode", 0) == 1,
	}
}

// Attr returns element i of an attribute that is a list of integers, or fallback if it is absent.
func Attr(n *pb.NodeProto, name string, i, fallback int) int {
	if v := onnx.AttrInts(n, name); i < len(v) {
		return v[i]
	}
	return fallback
}

// Output returns the number of positions of the window on an axis of the given size.
func (w Window) Output(size int) int {
	if w.Same {
		return (size + w.Stride - 1) / w.Stride
	}
	room := size + w.Pad - w.Dilation*(w.Kernel-1) - 1
	if !w.Ceil {
		return room/w.Stride + 1
	}
	positions := w.OutputCeil(size)
	// A window that would begin in the padding at the end is left out. The standard requires that
	// since opset 22, and runtimes do so in every opset.
	if (positions-1)*w.Stride >= size+w.Begin {
		positions--
	}
	return positions
}

// OutputCeil returns the number of positions with ceil_mode if those that begin in the padding at
// the end are counted too.
func (w Window) OutputCeil(size int) int {
	room := size + w.Pad - w.Dilation*(w.Kernel-1) - 1
	return (room+w.Stride-1)/w.Stride + 1
}

// OutputTransposed returns the output size of a transposed convolution.
func (w Window) OutputTransposed(size int) int {
	if w.Same {
		return size * w.Stride
	}
	return (size-1)*w.Stride + w.OutputPadding + w.Dilation*(w.Kernel-1) + 1 - w.Pad
}
