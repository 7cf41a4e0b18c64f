package grad

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// resize: interpolation is linear in x and treats one axis after the other: along each, y = S x.
// The matrix S is what the operator makes of the identity matrix, so whatever its modes are, dx =
// S^T dy. A runtime computes S once, when it loads the graph, if the sizes are fixed.
func resize(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok {
			return ""
		}
		axes := c.resizedAxes(rank)
		if block := c.blocks(axes, rank); block != nil {
			return c.unrepeat(block)
		}
		g := c.dy(0)
		for i, k := range axes {
			s, ok := c.resizedIdentity(i, k)
			if !ok {
				return ""
			}
			if s != "" {
				g = c.untransform(g, k, s)
			}
		}
		return g
	})
}

// resizedAxes are the axes that scales and sizes speak of.
func (c *vjp) resizedAxes(rank int) []int {
	axes := slices.Clone(c.attrInts("axes"))
	if axes == nil {
		return upTo(rank)
	}
	for i := range axes {
		axes[i] = axis(axes[i], rank)
	}
	return axes
}

// scales are the factors of the axes: an attribute, or an input; nil where there are sizes, or they
// are not known.
func (c *vjp) scales() []float64 {
	if list := onnx.AttrFloats(c.node, "scales"); list != nil {
		scales := make([]float64, len(list))
		for i, v := range list {
			scales[i] = float64(v)
		}
		return scales
	}
	values, _ := c.info.Values(string(c.x(c.scalesAt())))
	return values
}

// scalesAt is the input that holds the scales: since opset 11 of Resize, after the region of
// interest.
func (c *vjp) scalesAt() int {
	if c.Opset() < 11 || c.node.GetOpType() == "Upsample" {
		return 1
	}
	return 2
}

// blocks are the factors of all axes where the operator repeats each element of x so many times,
// nil where it does something else.
func (c *vjp) blocks(axes []int, rank int) []int {
	scales := c.scales()
	if c.attrString("mode", "nearest") != "nearest" || len(scales) != len(axes) || rank < 3 {
		return nil
	}
	mode, rounding := c.attrString("coordinate_transformation_mode", "half_pixel"), c.attrString("nearest_mode", "round_prefer_floor")
	switch {
	case c.scalesAt() == 1, mode == "asymmetric" && rounding == "floor":
	case mode == "half_pixel" && (rounding == "round_prefer_floor" || rounding == "round_prefer_ceil"):
	default:
		return nil
	}
	blocks := slices.Repeat([]int{1}, rank)
	for i, k := range axes {
		if scales[i] != math.Trunc(scales[i]) || scales[i] < 1 || k < 2 && scales[i] != 1 {
			return nil
		}
		blocks[k] = int(scales[i])
	}
	return blocks
}

// unrepeat sums blocks: their average, times their size.
func (c *vjp) unrepeat(blocks []int) onnx.Value {
	kernel, size := blocks[2:], 1
	for _, n := range kernel {
		size *= n
	}
	if size == 1 {
		return c.dy(0)
	}
	return c.times(c.Op("AveragePool", onnx.Attrs{"kernel_shape": kernel, "strides": kernel}, c.dy(0)), float64(size))
}

// resizedIdentity is the matrix, new size x old size, of what the node does along axis k, the i-th
// of those that it speaks of; empty where it leaves the axis alone.
func (c *vjp) resizedIdentity(i, k int) (onnx.Value, bool) {
	shape := c.shape(c.x(0))
	scales := c.scales()
	sizes, sized := c.info.Ints(string(c.x(3)))
	cropped := c.attrString("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
	if !cropped && (len(scales) > i && scales[i] == 1 || sized && len(sizes) > i && sizes[i] == shape[k]) {
		return "", true
	}
	if policy := c.attrString("keep_aspect_ratio_policy", "stretch"); policy != "stretch" {
		c.fail("gradients for keep_aspect_ratio_policy %s are not supported", policy)
		return "", false
	}
	eye := c.Unsqueeze(c.identityMatrix(k), 1, 3) // a batch of columns
	attrs := onnx.Attrs{"mode": c.attrString("mode", "nearest")}
	one, twice := c.floats(1), c.floats(2)
	if c.node.GetOpType() == "Upsample" && c.x(1) == "" {
		attrs["scales"] = []float32{1, 1, float32(scales[i]), 2}
		return c.matrixOf(c.Op("Upsample", attrs, eye)), true
	}
	factor := func() onnx.Value { return c.Concat(0, one, one, c.element(c.x(c.scalesAt()), i), twice) }
	if c.scalesAt() == 1 {
		return c.matrixOf(c.Op(c.node.GetOpType(), attrs, eye, factor())), true
	}
	c.copyModes(attrs)
	region := c.floats()
	if cropped { // beyond the region there are constants, of which the gradient knows nothing
		zero, end := c.floats(0), c.element(c.x(1), i+len(c.resizedAxes(len(shape))))
		region = c.Concat(0, zero, zero, c.element(c.x(1), i), zero, one, one, end, one)
	}
	if c.x(3) == "" {
		return c.matrixOf(c.Op("Resize", attrs, eye, region, factor())), true
	}
	size := c.Concat(0, c.size(c.x(0), k), c.Ints(1), c.element(c.x(3), i), c.Ints(2))
	return c.matrixOf(c.Op("Resize", attrs, eye, region, c.floats(), size)), true
}

// copyModes takes over what says how Resize interpolates.
func (c *vjp) copyModes(attrs onnx.Attrs) {
	for _, name := range []string{"coordinate_transformation_mode", "nearest_mode"} {
		if v := c.attrString(name, ""); v != "" {
			attrs[name] = v
		}
	}
	for _, name := range []string{"antialias", "exclude_outside"} {
		if v := c.attr(name, 0); v != 0 {
			attrs[name] = v
		}
	}
	attrs["cubic_coeff_a"] = c.attrFloat("cubic_coeff_a", -0.75)
}

// floats is a float32 constant of rank 1.
func (c *vjp) floats(v ...float32) onnx.Value {
	return c.Const("", floatTensor(v))
}

// element is the i-th element of a vector, as a vector.
func (c *vjp) element(v onnx.Value, i int) onnx.Value { return c.Gather(v, c.Ints(i), 0) }

// matrixOf takes the matrix out of columns x 1 x rows x 2. The last axis is there to be made
// longer: where all sizes stay as they are, engines copy whatever the scales are.
func (c *vjp) matrixOf(v onnx.Value) onnx.Value {
	return c.Transpose(c.Squeeze(c.Gather(v, c.Int(0), 3), 1), 1, 0)
}
