package grad

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Resize and Upsample are linear, axis by axis: Y = S X, dX = S^T dY, with S the operator's result
// for the identity. S is constant for fixed sizes.
func resize(op *operation) onnx.Value {
	rank := op.rank(op.x(0))
	axes := upTo(rank)
	if list := op.attrInts("axes"); list != nil {
		axes = normalizeAxes(list, rank)
	}
	if repeats := op.repeats(axes, rank); repeats != nil {
		return op.sumBlocks(repeats[2:])
	}
	g := op.dy(0)
	for i, axis := range axes {
		if s := op.resizedIdentity(i, axis, len(axes)); s != "" {
			g = op.applyTransposed(g, axis, s)
		}
	}
	return g
}

// scales are nil if the node has sizes, or they are unknown.
func (op *operation) scales() []float64 {
	if list := onnx.AttrFloats(op.node, "scales"); list != nil {
		scales := make([]float64, len(list))
		for i, v := range list {
			scales[i] = float64(v)
		}
		return scales
	}
	values, _ := op.info.Values(string(op.x(op.scalesInput())))
	return values
}

func (op *operation) scalesInput() int {
	if op.Opset() < 11 || op.node.GetOpType() == "Upsample" {
		return 1
	}
	return 2
}

// repeats is how often elements repeat along each axis, in mode nearest with whole enlargements of
// space; else nil.
func (op *operation) repeats(axes []int, rank int) []int {
	scales := op.scales()
	if op.attrString("mode", "nearest") != "nearest" || len(scales) != len(axes) || rank < 3 {
		return nil
	}
	mode, rounding := op.attrString("coordinate_transformation_mode", "half_pixel"), op.attrString("nearest_mode", "round_prefer_floor")
	switch {
	case op.scalesInput() == 1, mode == "asymmetric" && rounding == "floor":
	case mode == "half_pixel" && (rounding == "round_prefer_floor" || rounding == "round_prefer_ceil"):
	default:
		return nil
	}
	repeats := slices.Repeat([]int{1}, rank)
	for i, axis := range axes {
		if scales[i] != math.Trunc(scales[i]) || scales[i] < 1 || axis < 2 && scales[i] != 1 {
			return nil
		}
		repeats[axis] = int(scales[i])
	}
	return repeats
}

// sumBlocks sums dy over blocks of this spatial shape: their average times their size.
func (op *operation) sumBlocks(block []int) onnx.Value {
	size := tensor.Size(block)
	if size == 1 {
		return op.dy(0)
	}
	return op.times(op.Op("AveragePool", onnx.Attrs{"kernel_shape": block, "strides": block}, op.dy(0)), float64(size))
}

// resizedIdentity is S, new x old size, of the i-th of count resized axes; empty for the identity.
func (op *operation) resizedIdentity(i, axis, count int) onnx.Value {
	oldSize, scales := op.shape(op.x(0))[axis], op.scales()
	sizes, sized := op.info.Ints(string(op.x(3)))
	cropped := op.attrString("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
	if !cropped && (len(scales) > i && scales[i] == 1 || sized && len(sizes) > i && sizes[i] == oldSize) {
		return ""
	}
	if policy := op.attrString("keep_aspect_ratio_policy", "stretch"); policy != "stretch" {
		op.fail("gradients for keep_aspect_ratio_policy %s are not supported", policy)
	}
	eye := op.Unsqueeze(op.identityMatrix(axis), 1, 3) // a batch of columns
	attrs := onnx.Attrs{"mode": op.attrString("mode", "nearest")}
	one, two := op.floats(1), op.floats(2) // two: see matrixOf
	if op.node.GetOpType() == "Upsample" && op.x(1) == "" {
		attrs["scales"] = []float32{1, 1, float32(scales[i]), 2}
		return op.matrixOf(op.Op("Upsample", attrs, eye))
	}
	scale := func() onnx.Value { return op.Concat(0, one, one, op.element(op.x(op.scalesInput()), i), two) }
	if op.scalesInput() == 1 {
		return op.matrixOf(op.Op(op.node.GetOpType(), attrs, eye, scale()))
	}
	op.copyModes(attrs)
	roi := op.floats() // region of interest: an input of Resize, here empty
	// Only this region is read. What is extrapolated beyond it is constant, with gradient 0.
	if cropped {
		zero, end := op.floats(0), op.element(op.x(1), i+count)
		roi = op.Concat(0, zero, zero, op.element(op.x(1), i), zero, one, one, end, one)
	}
	if op.x(3) == "" {
		return op.matrixOf(op.Op("Resize", attrs, eye, roi, scale()))
	}
	size := op.Concat(0, op.size(op.x(0), axis), op.Ints(1), op.element(op.x(3), i), op.Ints(2))
	return op.matrixOf(op.Op("Resize", attrs, eye, roi, op.floats(), size))
}

// copyModes copies the attributes of Resize that say how it interpolates.
func (op *operation) copyModes(attrs onnx.Attrs) {
	for _, name := range []string{"coordinate_transformation_mode", "nearest_mode"} {
		if v := op.attrString(name, ""); v != "" {
			attrs[name] = v
		}
	}
	for _, name := range []string{"antialias", "exclude_outside"} {
		if v := op.attr(name, 0); v != 0 {
			attrs[name] = v
		}
	}
	attrs["cubic_coeff_a"] = op.attrFloat("cubic_coeff_a", -0.75)
}

func (op *operation) floats(v ...float32) onnx.Value {
	return op.Const("", tensor.Tensor{Shape: []int{len(v)}, Data: v})
}

// element is the i-th element of a vector, as a vector.
func (op *operation) element(v onnx.Value, i int) onnx.Value { return op.Gather(v, op.Ints(i), 0) }

// matrixOf is S from its columns, columns x 1 x rows x 2. ONNX Runtime copies inputs of unchanged
// size, whatever the scales: the last axis went from 1 to 2 against that.
func (op *operation) matrixOf(v onnx.Value) onnx.Value {
	return op.Transpose(op.Squeeze(op.Gather(v, op.Int(0), 3), 1), 1, 0)
}
