package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Y[n, c, p] = sum over taps k and windows q of X[n, c k, q] where window q has tap k at p: dX are
// the windows of dY, which a convolution reads with a channel for each tap.
func col2Im(op *operation) onnx.Value {
	if kind := op.elementType(op.x(0)); kind != onnx.Float {
		op.fail("gradients of Col2Im in %v are not supported", kind)
	}
	kernel, known := op.info.Ints(string(op.x(2)))
	if !known {
		op.fail("its block shape must be constant")
	}
	f := op.geometryWithPads(kernel)
	if taps := tensor.Size(kernel); taps > maxUnfolded {
		op.fail("gradients of blocks of %d elements are not supported; the limit is %d", taps, maxUnfolded)
	}
	image := op.reshapeAny(op.dy(0), append([]int{-1, 1}, op.imageShape(len(kernel))...), func() onnx.Value {
		return op.Concat(0, op.Ints(-1, 1), op.x(1))
	})
	windows := op.Conv(image, op.oneHotKernels(kernel), "", onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "pads": f.pads()})
	return op.reshapeLike(windows, op.x(0))
}

// imageShape is the sizes of Col2Im's image, of n axes; -1 where they are unknown.
func (op *operation) imageShape(n int) []int {
	if list, known := op.info.Ints(string(op.x(1))); known {
		return list
	}
	return slices.Repeat([]int{-1}, n)
}
