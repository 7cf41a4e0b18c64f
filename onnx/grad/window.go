package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A filter is how the kernel of a convolution or pool slides over the n spatial axes. Tap k of
// output position p reads position p*stride + k*dilation - before of the input.
type filter struct {
	kernel             []int // -1 where the size is unknown
	strides, dilations []int
	before, after      []int      // padding at both ends
	lead, tail         onnx.Value // the same, where it is computed when the graph runs: int64 of n
	group              int
}

// filterWithPads reads the geometry of a node with its attribute pads.
func (op *operation) filterWithPads(kernel []int) filter {
	n := len(kernel)
	pads := op.perAxis("pads", 2*n, 0)
	f := filter{
		kernel: kernel, strides: op.perAxis("strides", n, 1), dilations: op.perAxis("dilations", n, 1),
		group: op.attr("group", 1), before: pads[:n], after: pads[n:],
	}
	op.checkFilter(f)
	return f
}

// checkFilter fails for sizes that are not positive, or too large to be written out.
func (op *operation) checkFilter(f filter) {
	taps := 1
	for i, k := range f.kernel {
		if k == 0 || k < -1 || f.strides[i] < 1 || f.dilations[i] < 1 || max(k, f.dilations[i]) > maxConstant {
			taps = maxConstant + 1
			break
		}
		taps = min(taps*max(k, 1), maxConstant+1)
	}
	if taps > maxConstant {
		op.fail("its kernel %v, strides %v and dilations %v are zero, negative or too large", f.kernel, f.strides, f.dilations)
	}
}

// filterOf is filterWithPads, or with the padding that auto_pad asks for, given the node's input.
func (op *operation) filterOf(x onnx.Value, kernel []int) filter {
	f, n := op.filterWithPads(kernel), len(kernel)
	auto := op.attrString("auto_pad", "NOTSET")
	if auto == "NOTSET" {
		return f
	}
	f.before, f.after = make([]int, n), make([]int, n)
	if auto != "VALID" {
		op.samePads(&f, x, auto == "SAME_LOWER")
	}
	return f
}

// perAxis is an attribute that lists n integers, or n times its default.
func (op *operation) perAxis(name string, n, otherwise int) []int {
	if v := op.attrInts(name); len(v) == n {
		return v
	}
	return slices.Repeat([]int{otherwise}, n)
}

// samePads sets the padding that makes the output as long as the input divided by the stride,
// rounded up.
func (op *operation) samePads(f *filter, x onnx.Value, lower bool) {
	shape := op.shape(x)
	for i := range f.kernel {
		size := -1
		if shape != nil {
			size = shape[2+i]
		}
		if size < 0 && f.strides[i] > 1 || f.kernel[i] < 0 {
			op.padsRuntime(f, op.y(0), x, nil, lower)
			return
		}
		total := f.reach(i) + 1 - f.strides[i]
		if size >= 0 && size%f.strides[i] != 0 {
			total = f.reach(i) + 1 - size%f.strides[i]
		}
		total = max(total, 0)
		f.before[i], f.after[i] = total/2, total-total/2
		if lower {
			f.before[i], f.after[i] = f.after[i], f.before[i]
		}
	}
}

// padsRuntime computes the padding when the graph runs. Windows at all positions of the tensor
// short, strides apart, extend beyond the tensor long by this padding plus extra, which is divided
// evenly between both ends. Of an odd number the larger part is at the start if largerBefore is
// set.
func (op *operation) padsRuntime(f *filter, short, long onnx.Value, extra []int, largerBefore bool) {
	n := len(f.kernel)
	f.before, f.after = make([]int, n), make([]int, n)
	span := make([]int, n)
	for i := range span {
		if f.kernel[i] < 0 {
			op.fail("its padding depends on a kernel of unknown size: set kernel_shape")
		}
		span[i] = f.reach(i) + 1
		if extra != nil {
			span[i] += extra[i]
		}
	}
	steps := op.Mul(op.Sub(op.spatialSizes(short, n), op.Ints(1)), op.Ints(f.strides...))
	beyond := op.Sub(op.Add(steps, op.Ints(span...)), op.spatialSizes(long, n))
	total := op.Op("Relu", nil, op.Cast(beyond, onnx.Float)) // Max takes integers since opset 12 only
	half := op.Cast(op.Op("Floor", nil, op.Mul(total, op.Scalar(0.5))), onnx.Int64)
	rest := op.Sub(op.Cast(total, onnx.Int64), half)
	f.lead, f.tail = half, rest
	if largerBefore {
		f.lead, f.tail = rest, half
	}
}

// padded pads the last n axes of a tensor of n + 2 with zeros, where the padding of f is computed
// when the graph runs.
func (op *operation) padded(x onnx.Value, f filter) onnx.Value {
	if f.lead == "" {
		return x
	}
	if op.Opset() < 11 {
		op.fail("its gradient with padding that is not fixed needs opset 11 or later")
	}
	return op.Op("Pad", nil, x, op.Concat(0, op.Ints(0, 0), f.lead, op.Ints(0, 0), f.tail))
}

// reach is the distance from the kernel's first tap to its last.
func (f filter) reach(i int) int { return f.dilations[i] * (f.kernel[i] - 1) }

// strided reports whether a stride is greater than 1.
func (f filter) strided() bool { return slices.Max(f.strides) > 1 }

// pads is the padding as an attribute: zeros where it is computed.
func (f filter) pads() []int { return slices.Concat(f.before, f.after) }

// spatialAxes are the axes of a tensor of this rank after batch and channels.
func spatialAxes(rank int) []int { return upTo(rank)[2:] }

// spatialSizes are the sizes of the last n axes of a tensor, int64 of n.
func (op *operation) spatialSizes(v onnx.Value, n int) onnx.Value {
	if s := op.shape(v); len(s) >= n && isFixed(s[len(s)-n:]) {
		return op.Ints(s[len(s)-n:]...)
	}
	return op.Slice(op.Shape(v), 0, 2, 2+n, 1)
}

// crop cuts the spatial axes of g to the sizes of v, beginning at the positions start, or at those
// in lead if that is not empty.
func (op *operation) crop(g onnx.Value, start []int, lead, v onnx.Value) onnx.Value {
	n := len(start)
	if op.Opset() < 10 {
		op.fail("its gradient with spatial dimensions that are not fixed needs opset 10 or later")
	}
	if lead == "" {
		lead = op.Ints(start...)
	}
	return op.Op("Slice", nil, g, lead, op.Add(lead, op.spatialSizes(v, n)), op.Ints(spatialAxes(2+n)...))
}
