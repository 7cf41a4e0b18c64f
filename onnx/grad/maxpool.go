package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Y = maximum over windows of X: dX sums dY at each window's first maximum in row-major order.
func maxPool(op *operation) onnx.Value {
	if op.Opset() >= 16 {
		return op.maxPoolScattered()
	}
	if kind := op.elementType(op.x(0)); kind != onnx.Float {
		op.fail("gradients of MaxPool in %v need opset 16 or later", kind)
	}
	return op.maxPoolUnfolded()
}

// maxPoolScattered adds dY at Indices, the second output; ScatterElements adds since opset 16.
func (op *operation) maxPoolScattered() onnx.Value {
	indices := op.maxPoolIndices()
	zeros := op.Reshape(op.filled(0, op.x(0)), -1)
	g := op.Op("ScatterElements", onnx.Attrs{"axis": 0, "reduction": "add"}, zeros, op.Reshape(indices, -1), op.Reshape(op.dy(0), -1))
	return op.reshapeLike(g, op.x(0))
}

// maxPoolIndices are row-major: the node's own, or a copy's where storage_order is column-major.
func (op *operation) maxPoolIndices() onnx.Value {
	if op.attr("storage_order", 0) == 0 {
		return op.AddOutput(op.y(0), 1)
	}
	attrs := onnx.Attrs{"ceil_mode": op.attr("ceil_mode", 0), "auto_pad": op.attrString("auto_pad", "NOTSET")}
	for _, name := range []string{"kernel_shape", "strides", "dilations", "pads"} {
		if list := op.attrInts(name); list != nil {
			attrs[name] = list
		}
	}
	return op.Ops("MaxPool", 2, attrs, op.x(0))[1]
}

// maxUnfolded is the largest number of elements of a window that is unfolded.
const maxUnfolded = 1 << 11

// maxPoolUnfolded convolves with a channel for each tap, finds the first maximum and folds back,
// transposed. planes makes channels samples.
func (op *operation) maxPoolUnfolded() onnx.Value {
	f := op.poolGeometry()
	n, taps := len(f.kernel), tensor.Size(f.kernel)
	if taps > maxUnfolded {
		op.fail("before opset 16, gradients of windows of %d elements are not supported; the limit is %d", taps, maxUnfolded)
	}
	oneHot := op.oneHotKernels(f.kernel)
	unfold := func(v onnx.Value) onnx.Value {
		attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "pads": f.pads()}
		if f.runtimeBefore != "" {
			attrs["pads"] = make([]int, 2*n)
		}
		return op.cropToOutput(op.Conv(op.padded(v, f), oneHot, "", attrs), f)
	}
	// inside is whether a tap reads an element of the input, not padding.
	inside := op.greater(unfold(op.onesLike(op.x(0), n)), op.num(0.5))
	largest := op.equal(unfold(op.planes(op.x(0), op.x(0))), op.planes(op.y(0), op.y(0)))
	firstMaximum := op.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 1}, op.mask(op.and(largest, inside)))
	column := append([]int{taps}, slices.Repeat([]int{1}, n)...)
	mask := op.mask(op.equalInts(firstMaximum, op.Reshape(op.Ints(upTo(taps)...), column...)))
	g := op.Mul(mask, op.planes(op.dy(0), op.y(0)))
	return op.reshapeLike(op.transposedConv(f, g, oneHot, op.x(0)), op.x(0))
}

// oneHotKernels is taps x 1 x kernel, with 1 at the i-th tap.
func (op *operation) oneHotKernels(kernel []int) onnx.Value {
	taps := tensor.Size(kernel)
	w := tensor.New(append([]int{taps, 1}, kernel...)...)
	for i := range taps {
		w.Data[i*taps+i] = 1
	}
	return op.Const("", w)
}
