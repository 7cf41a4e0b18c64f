package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A window is the geometry of a convolution. Each list has an element for each spatial axis; pads
// has the padding before each axis, then the padding after each.
type window struct {
	strides, dilations, pads []int
	outputPadding            []int // of a ConvTranspose
	// Sizes of the kernels, for the operator that computes their gradient.
	kernel []int
}

// windowOf reports false unless the native operators support the convolution: one or two spatial
// axes, no groups, and weights of known shape.
func windowOf(static *infer.Info, n *pb.NodeProto) (window, bool) {
	shape := static.Shape(n.Input[1])
	if len(shape) < 3 || len(shape) > 4 || slices.Min(shape) < 1 || static.Type(n.Input[1]) != onnx.Float {
		return window{}, false
	}
	if onnx.AttrInt(n, "group", 1) != 1 || onnx.AttrString(n, "auto_pad", "NOTSET") != "NOTSET" || onnx.AttrInts(n, "output_shape") != nil {
		return window{}, false
	}
	axes := len(shape) - 2
	list := func(name string, count, fallback int) []int {
		if v := onnx.AttrInts(n, name); v != nil {
			return slices.Clone(v)
		}
		return slices.Repeat([]int{fallback}, count)
	}
	w := window{strides: list("strides", axes, 1), dilations: list("dilations", axes, 1), pads: list("pads", 2*axes, 0)}
	if n.GetOpType() == "ConvTranspose" {
		w.outputPadding = list("output_padding", axes, 0)
		if len(n.Input) > 2 && n.Input[2] != "" {
			return w, false // the native operator has no bias
		}
	}
	return w, slices.Min(w.pads) >= 0
}

func (w window) attrs() onnx.Attrs {
	attrs := onnx.Attrs{"strides": w.strides, "dilations": w.dilations, "pads": w.pads}
	if w.outputPadding != nil {
		attrs["output_padding"] = w.outputPadding
	}
	if w.kernel != nil {
		attrs["kernel_shape"] = w.kernel
	}
	return attrs
}

// usesWinograd reports whether a convolution in NHWC gains from Winograd's algorithm: 3 x 3 kernels
// without strides or dilations, and at least 8 input channels.
func usesWinograd(static *infer.Info, n *pb.NodeProto) bool {
	w, ok := windowOf(static, n)
	ones, shape := []int{1, 1}, static.Shape(n.Input[1])
	return ok && len(shape) == 4 && slices.Equal(shape[2:], []int{3, 3}) && slices.Equal(w.strides, ones) && slices.Equal(w.dilations, ones) && shape[1] >= 8
}

// maxTileKernels is the largest number of pairs of channels for tiles of 4 x 4: the transformed
// weights then stay in the caches.
const maxTileKernels = 1 << 17

// tileSide returns the side of the output tiles of a convolution by Winograd's algorithm, 2 or 4,
// for a result in NCHW. result is the shape of the output in NCHW and w that of the weights, as in
// the ONNX graph. For each pair of channels, a tile of 4 x 4 takes 36 multiplications, and four
// tiles of 2 x 2 take 64. For each weight there are 36/9 transformed weights with tiles of 4 x 4,
// and 16/9 with 2 x 2.
func tileSide(result, w []int) int {
	products := func(side int) int {
		return ((result[2] + side - 1) / side) * ((result[3] + side - 1) / side) * (side + 2) * (side + 2)
	}
	if len(result) == 4 && products(4) < products(2) && w[0]*w[1] <= maxTileKernels {
		return 4
	}
	return 2
}

func transformedWeights(result, w []int) int {
	side := tileSide(result, w)
	return (side + 2) * (side + 2) * w[0] * w[1]
}

// elements returns the number of elements of a shape, unknown dimensions counting as 1.
func elements(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= max(1, d)
	}
	return size
}
