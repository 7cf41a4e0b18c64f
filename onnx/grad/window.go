package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A filter is how a kernel slides over the n spatial axes of a tensor: a convolution's or a pool's.
// What it reads at place p of the output, tap k, is place p stride + k dilation - before of the
// input.
type filter struct {
	kernel             []int // -1 where it is not known
	strides, dilations []int
	before, after      []int      // padding at both ends
	lead, tail         onnx.Value // where it is computed when the graph runs: the same, int64 of n
	group              int
}

// filter reads the geometry of a node, with the padding that is given.
func (c *vjp) filter(kernel []int) filter {
	n := len(kernel)
	pads := c.perAxis("pads", 2*n, 0)
	return filter{
		kernel: kernel, strides: c.perAxis("strides", n, 1), dilations: c.perAxis("dilations", n, 1),
		group: c.attr("group", 1), before: pads[:n], after: pads[n:],
	}
}

// checkFilter complains about a geometry that no operator has, or that is too large to be written out.
func (c *vjp) checkFilter(f filter) bool {
	taps := 1
	for i, k := range f.kernel {
		if k == 0 || k < -1 || f.strides[i] < 1 || f.dilations[i] < 1 || max(k, f.dilations[i]) > listed {
			taps = listed + 1
			break
		}
		taps = min(taps*max(k, 1), listed+1)
	}
	if taps > listed {
		c.fail("its kernel %v, strides %v and dilations %v are zero, negative or too large", f.kernel, f.strides, f.dilations)
	}
	return taps <= listed
}

// filterOf is filter where auto_pad may ask for padding instead, given the node's input; it fails
// where the padding cannot be told.
func (c *vjp) filterOf(x onnx.Value, kernel []int) (filter, bool) {
	f, n := c.filter(kernel), len(kernel)
	if !c.checkFilter(f) {
		return f, false
	}
	auto := c.attrString("auto_pad", "NOTSET")
	if auto == "NOTSET" {
		return f, true
	}
	f.before, f.after = make([]int, n), make([]int, n)
	if auto == "VALID" {
		return f, true
	}
	return f, c.samePads(&f, x, auto == "SAME_LOWER")
}

// perAxis is an attribute that lists n integers, all with a default.
func (c *vjp) perAxis(name string, n, otherwise int) []int {
	if v := c.attrInts(name); len(v) == n {
		return v
	}
	return slices.Repeat([]int{otherwise}, n)
}

// samePads works out the padding that makes the output as long as the input by the stride, rounded
// up.
func (c *vjp) samePads(f *filter, x onnx.Value, lower bool) bool {
	shape := c.shape(x)
	for i := range f.kernel {
		size := -1
		if shape != nil {
			size = shape[2+i]
		}
		if size < 0 && f.strides[i] > 1 || f.kernel[i] < 0 {
			return c.padsRuntime(f, c.y(0), x, nil, lower)
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
	return true
}

// padsRuntime works out padding when the graph runs: what places of the tensor few, strides apart,
// read beyond the tensor many, and an extra, divided evenly; of an odd number the larger part comes
// before if larger says so.
func (c *vjp) padsRuntime(f *filter, few, many onnx.Value, extra []int, larger bool) bool {
	n := len(f.kernel)
	f.before, f.after = make([]int, n), make([]int, n)
	span := make([]int, n)
	for i := range span {
		if f.kernel[i] < 0 {
			c.fail("its padding depends on a kernel of unknown size: set kernel_shape")
			return false
		}
		span[i] = f.reach(i) + 1
		if extra != nil {
			span[i] += extra[i]
		}
	}
	steps := c.Mul(c.Sub(c.spatialSizes(few, n), c.Ints(1)), c.Ints(f.strides...))
	beyond := c.Sub(c.Add(steps, c.Ints(span...)), c.spatialSizes(many, n))
	total := c.Op("Relu", nil, c.Cast(beyond, onnx.Float)) // integers have no maximum before opset 12
	half := c.Cast(c.Op("Floor", nil, c.Mul(total, c.Scalar(0.5))), onnx.Int64)
	rest := c.Sub(c.Cast(total, onnx.Int64), half)
	f.lead, f.tail = half, rest
	if larger {
		f.lead, f.tail = rest, half
	}
	return true
}

// padded pads the last n axes of a tensor of n + 2 with zeros, as much as f has worked out when the
// graph runs.
func (c *vjp) padded(x onnx.Value, f filter) onnx.Value {
	if f.lead == "" {
		return x
	}
	if c.Opset() < 11 {
		c.fail("its gradient with padding that is not fixed needs opset 11 or later")
		return ""
	}
	return c.Op("Pad", nil, x, c.Concat(0, c.Ints(0, 0), f.lead, c.Ints(0, 0), f.tail))
}

// reach is how far the kernel's last tap is from its first.
func (f filter) reach(i int) int { return f.dilations[i] * (f.kernel[i] - 1) }

// strided reports whether the kernel jumps.
func (f filter) strided() bool { return slices.Max(f.strides) > 1 }

// pads are the paddings as an attribute: zeros where they are computed.
func (f filter) pads() []int { return slices.Concat(f.before, f.after) }

// spatialSizes are the sizes of the last n axes of a tensor, int64 of n.
func (c *vjp) spatialSizes(v onnx.Value, n int) onnx.Value {
	if s := c.shape(v); len(s) >= n && fixed(s[len(s)-n:]) {
		return c.Ints(s[len(s)-n:]...)
	}
	return c.Slice(c.Shape(v), 0, 2, 2+n, 1)
}

// crop cuts the spatial axes of g from the places start, or those in lead if that is there, to the
// sizes that v has.
func (c *vjp) crop(g onnx.Value, start []int, lead, v onnx.Value) onnx.Value {
	n := len(start)
	if c.Opset() < 10 {
		c.fail("its gradient with spatial dimensions that are not fixed needs opset 10 or later")
		return ""
	}
	if lead == "" {
		lead = c.Ints(start...)
	}
	return c.Op("Slice", nil, g, lead, c.Add(lead, c.spatialSizes(v, n)), c.Ints(upTo(2 + n)[2:]...))
}

// A part is a dimension of a shape to reshape to: a number, or an axis of a tensor.
type part struct {
	size int // -1: axis of v
	axis int
	v    onnx.Value
}

// size is a dimension that is known.
func size(n int) part { return part{size: n} }

// dimension is as long as an axis of v.
func (c *vjp) dimension(v onnx.Value, axis int) part {
	if s := c.shape(v); s != nil && s[axis] > 0 {
		return size(s[axis])
	}
	return part{size: -1, axis: axis, v: v}
}

// reshapeTo gives x the shape that the parts say.
func (c *vjp) reshapeTo(x onnx.Value, parts ...part) onnx.Value {
	sizes := make([]int, len(parts))
	free := 0
	for i, p := range parts {
		sizes[i] = p.size
		if p.size < 0 {
			free++
		}
	}
	if free <= 1 {
		return c.Reshape(x, sizes...)
	}
	list := make([]onnx.Value, len(parts))
	for i, p := range parts {
		if p.size >= 0 {
			list[i] = c.Ints(p.size)
		} else {
			list[i] = c.Slice(c.Shape(p.v), 0, p.axis, p.axis+1, 1)
		}
	}
	return c.ReshapeTo(x, c.Concat(0, list...))
}
