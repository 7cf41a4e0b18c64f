package channelslast

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// Window gives the attributes of a convolution that package kernels can do.
func Window(static *infer.Info, n *pb.NodeProto) (onnx.Attrs, bool) {
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

// Squares reports whether a convolution with such weights goes by squares of 3 x 3 places.
func Squares(w, strides, dilations []int) bool {
	ones := []int{1, 1}
	return len(w) == 4 && slices.Equal(w[2:], []int{3, 3}) && slices.Equal(strides, ones) && slices.Equal(dilations, ones)
}

// bySquares reports whether a convolution goes by squares of 3 x 3 places, with channels enough to gain by it.
func bySquares(static *infer.Info, n *pb.NodeProto) bool {
	w := static.Shape(n.Input[1])
	attrs, ok := Window(static, n)
	return ok && Squares(w, attrs["strides"].([]int), attrs["dilations"].([]int)) && w[1] >= 8
}

// sideOf is the side of the squares that a result goes by: those of 4 x 4 places take 36 products where four of 2 x 2 take 64, but weights that
// are four times as large, in place of 16/9, which have to stay in the caches.
func sideOf(result, w []int) int {
	over := func(side int) int {
		return ((result[2] + side - 1) / side) * ((result[3] + side - 1) / side) * (side + 2) * (side + 2)
	}
	if len(result) == 4 && over(4) < over(2) && w[0]*w[1] <= mostWeights {
		return 4
	}
	return 2
}

const mostWeights = 1 << 17

// transformed is how many numbers the weights of a convolution by squares become.
func transformed(result, w []int) int {
	side := sideOf(result, w)
	return (side + 2) * (side + 2) * w[0] * w[1]
}

// elements is the size of a shape, with 1 for what is not known.
func elements(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= max(1, d)
	}
	return size
}
