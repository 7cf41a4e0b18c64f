package grad

import (
	"github.com/noether-ml/noether/internal/channelslast"
	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// narrow is how many channels a convolution with weights that change gives at least for an operator of our own: fewer leave most of its
// vectors empty. With constant weights, which the engine prepares for its own, one that stands alone takes wide channels on both sides: their sums by
// squares gain more than it costs that the others keep feature maps in blocks. Groups of them take fewer: see package channelslast.
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
	return channelslast.Squares(w, strides, dilations) && min(w[0], w[1]) >= wide
}

// Convolve puts operators of package kernels in the place of the convolutions that are faster by them. What it writes has no gradient, so
// it comes after that; it runs in ONNX Runtime as package ort loads it, on the processor.
func Convolve(b *onnx.Builder) {
	if !kernels.Convolves() {
		return
	}
	b.NeedDomain(kernels.Domain, 1)
	static := infer.Analyze(b.Snapshot())
	b.Replace("Conv", func(n *pb.NodeProto) []onnx.Value {
		attrs, ok := channelslast.Window(static, n)
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
