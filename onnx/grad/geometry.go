package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A geometry describes how a kernel slides over n spatial axes: tap k of output p reads p*stride +
// k*dilation - before.
type geometry struct {
	kernel             []int // -1 where the size is unknown
	strides, dilations []int
	before, after      []int // padding at both ends
	// runtimeBefore and runtimeAfter are padding computed by the graph, int64 vectors of n, else
	// empty.
	runtimeBefore, runtimeAfter onnx.Value
	group                       int // number of groups of channels
}

func (op *operation) geometryWithPads(kernel []int) geometry {
	n := len(kernel)
	pads := op.perAxis("pads", 2*n, 0)
	f := geometry{
		kernel: kernel, strides: op.perAxis("strides", n, 1), dilations: op.perAxis("dilations", n, 1),
		group: op.attr("group", 1), before: pads[:n], after: pads[n:],
	}
	op.checkGeometry(f)
	return f
}

// checkGeometry refuses sizes that are not positive, and more than maxConstant.
func (op *operation) checkGeometry(f geometry) {
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

// geometryOf is geometryWithPads or, with auto_pad, that padding; x is the input.
func (op *operation) geometryOf(x onnx.Value, kernel []int) geometry {
	f, n := op.geometryWithPads(kernel), len(kernel)
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

// samePads makes the output as long as input / stride, rounded up.
func (op *operation) samePads(f *geometry, x onnx.Value, lower bool) {
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

// padsRuntime computes padding in the graph. short and long are a convolution's output and input,
// swapped if transposed. It is the length covered over short, plus extra unless nil, minus long, at
// least 0, halved over the ends, the larger half first if largerBefore is set.
func (op *operation) padsRuntime(f *geometry, short, long onnx.Value, extra []int, largerBefore bool) {
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
	// Max takes integers since opset 12 only.
	total := op.Op("Relu", nil, op.Cast(beyond, onnx.Float))
	half := op.Cast(op.Op("Floor", nil, op.Mul(total, op.Scalar(0.5))), onnx.Int64)
	rest := op.Sub(op.Cast(total, onnx.Int64), half)
	f.runtimeBefore, f.runtimeAfter = half, rest
	if largerBefore {
		f.runtimeBefore, f.runtimeAfter = rest, half
	}
}

// padded zero-pads the last n of n + 2 axes by computed padding; else it returns x, whose reader
// has an attribute.
func (op *operation) padded(x onnx.Value, f geometry) onnx.Value {
	if f.runtimeBefore == "" {
		return x
	}
	if op.Opset() < 11 {
		op.fail("its gradient with padding that is not fixed needs opset 11 or later")
	}
	return op.Op("Pad", nil, x, op.Concat(0, op.Ints(0, 0), f.runtimeBefore, op.Ints(0, 0), f.runtimeAfter))
}

// reach is the distance from the kernel's first tap to its last along spatial axis i.
func (f geometry) reach(i int) int { return f.dilations[i] * (f.kernel[i] - 1) }

func (f geometry) strided() bool { return slices.Max(f.strides) > 1 }

// pads is the padding as an attribute: zeros where it is computed.
func (f geometry) pads() []int { return slices.Concat(f.before, f.after) }

// spatialAxes are the axes of a tensor of this rank after batch and channels.
func spatialAxes(rank int) []int { return upTo(rank)[2:] }

// spatialSizes are the sizes of the last n axes of a tensor of n + 2: an int64 vector.
func (op *operation) spatialSizes(v onnx.Value, n int) onnx.Value {
	if s := op.shape(v); len(s) >= n && isFixed(s[len(s)-n:]) {
		return op.Ints(s[len(s)-n:]...)
	}
	return op.Slice(op.Shape(v), 0, 2, 2+n, 1)
}

// crop cuts the spatial axes of g to v's sizes, from start or a non-empty int64 runtimeStart.
func (op *operation) crop(g onnx.Value, start []int, runtimeStart, v onnx.Value) onnx.Value {
	n := len(start)
	if op.Opset() < 10 {
		op.fail("its gradient with spatial dimensions that are not fixed needs opset 10 or later")
	}
	if runtimeStart == "" {
		runtimeStart = op.Ints(start...)
	}
	return op.Op("Slice", nil, g, runtimeStart, op.Add(runtimeStart, op.spatialSizes(v, n)), op.Ints(spatialAxes(2+n)...))
}
