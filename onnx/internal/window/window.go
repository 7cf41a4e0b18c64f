// Package window computes the sizes that sliding windows leave: those of convolutions and pools.
package window

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A Window is a kernel along one axis.
type Window struct {
	Kernel, Stride, Dilation int
	Begin, Pad               int // at the beginning, and at both ends together
	OutputPadding            int // output_padding of a transposed convolution
	Same, Ceil               bool
}

// Of is the window of a node along axis i of n.
func Of(node *pb.NodeProto, kernel, i, n int) Window {
	return Window{
		Kernel: kernel, Stride: max(Attr(node, "strides", i, 1), 1), Dilation: max(Attr(node, "dilations", i, 1), 1),
		Begin: Attr(node, "pads", i, 0), Pad: Attr(node, "pads", i, 0) + Attr(node, "pads", n+i, 0), OutputPadding: Attr(node, "output_padding", i, 0),
		Same: strings.HasPrefix(onnx.AttrString(node, "auto_pad", ""), "SAME"), Ceil: onnx.AttrInt(node, "ceil_mode", 0) == 1,
	}
}

// Attr is one number of a list.
func Attr(n *pb.NodeProto, name string, i, otherwise int) int {
	if v := onnx.AttrInts(n, name); i < len(v) {
		return v[i]
	}
	return otherwise
}

// Output is the number of places where the window fits on an axis.
func (w Window) Output(size int) int {
	if w.Same {
		return (size + w.Stride - 1) / w.Stride
	}
	room := size + w.Pad - w.Dilation*(w.Kernel-1) - 1
	if !w.Ceil {
		return room/w.Stride + 1
	}
	places := w.OutputCeil(size)
	if (places-1)*w.Stride >= size+w.Begin { // it would begin in the padding behind: opset 22 leaves it out, and engines always do
		places--
	}
	return places
}

// OutputCeil is the number of places with ceil_mode, where none is left out.
func (w Window) OutputCeil(size int) int {
	room := size + w.Pad - w.Dilation*(w.Kernel-1) - 1
	return (room+w.Stride-1)/w.Stride + 1
}

// OutputTransposed is the size of the axis that a transposed convolution makes.
func (w Window) OutputTransposed(size int) int {
	if w.Same {
		return size * w.Stride
	}
	return (size-1)*w.Stride + w.OutputPadding + w.Dilation*(w.Kernel-1) + 1 - w.Pad
}
