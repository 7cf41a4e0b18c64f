package grad

import (
	"slices"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// narrow is how many channels a convolution with weights that change gives at least for an operator of our own: fewer leave most of its
// vectors empty. With constant weights, which the engine prepares for its own, one that stands alone takes wide channels on both sides: their sums by
// squares gain more than it costs that the others keep feature maps in blocks. Groups of them take fewer: see groups.go.
const (
	narrow = 4
	wide   = 128
)

// quick reports whether a convolution with such weights is faster by an operator of our own: with weights that change always, with
// constant ones where it goes by squares of 3 x 3 places.
func quick(w, strides, dilations []int, constant bool) bool {
	if !constant {
		return len(w) > 2 && w[0] >= narrow
	}
	return squares(w, strides, dilations) && min(w[0], w[1]) >= wide
}

// squares reports whether a convolution goes by squares of 3 x 3 places.
func squares(w, strides, dilations []int) bool {
	ones := []int{1, 1}
	return len(w) == 4 && slices.Equal(w[2:], []int{3, 3}) && slices.Equal(strides, ones) && slices.Equal(dilations, ones)
}

// Convolve puts operators of package kernels in the place of the convolutions that are faster by them. What it writes has no gradient, so
// it comes after that; it runs in ONNX Runtime as package ort loads it, on the processor.
func Convolve(b *onnx.Builder) {
	if !kernels.Convolves() {
		return
	}
	b.NeedDomain(kernels.Domain, 1)
	static := b.Static()
	b.Replace("Conv", func(n *pb.NodeProto) []onnx.Value {
		attrs, ok := windowOf(static, n)
		w := n.Input[1]
		if !ok || !quick(static.Shape(w), attrs["strides"].([]int), attrs["dilations"].([]int), static.Constant(w)) {
			return nil
		}
		var inputs []onnx.Value
		for _, name := range n.Input {
			inputs = append(inputs, onnx.Value(name))
		}
		return b.Node(kernels.Domain, kernels.Convolution, 1, attrs, inputs...)
	})
}

// windowOf gives the attributes of a convolution that package kernels can do.
func windowOf(static *onnx.Static, n *pb.NodeProto) (onnx.Attrs, bool) {
	w := n.Input[1]
	shape := static.Shape(w)
	if len(shape) < 3 || len(shape) > 4 || slices.Min(shape) < 1 || static.Type(w) != onnx.Float {
		return nil, false
	}
	if onnx.AttrInt(n, "group", 1) != 1 || onnx.AttrString(n, "auto_pad", "NOTSET") != "NOTSET" {
		return nil, false
	}
	axes := len(shape) - 2
	list := func(name string, count, otherwise int) []int {
		if v := onnx.AttrInts(n, name); v != nil {
			return v
		}
		return slices.Repeat([]int{otherwise}, count)
	}
	return onnx.Attrs{"strides": list("strides", axes, 1), "dilations": list("dilations", axes, 1), "pads": list("pads", 2*axes, 0)}, true
}
