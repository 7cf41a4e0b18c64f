package grad

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// maxPool sends the gradient of each window to its first maximum, counting the last axis fastest.
func maxPool(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		switch {
		case c.Opset() >= 16:
			return c.maxPoolScattered()
		case c.single(c.x(0)):
			return c.maxPoolUnfolded()
		}
		c.fail("gradients of MaxPool in %v need opset 16 or later", c.info.Type(string(c.x(0))))
		return ""
	})
}

// maxPoolScattered adds the gradient at the places that the operator's second output, Indices,
// names. Operators that add came with opset 16.
func (c *vjp) maxPoolScattered() onnx.Value {
	indices := c.maxPoolIndices()
	zeros := c.Reshape(c.filled(0, c.x(0)), -1)
	g := c.Op("ScatterElements", onnx.Attrs{"axis": 0, "reduction": "add"}, zeros, c.Reshape(indices, -1), c.Reshape(c.dy(0), -1))
	return c.reshapeLike(g, c.x(0))
}

// maxPoolIndices counts the places of the maxima with the last axis fastest, as the node itself
// does unless its storage_order is another one.
func (c *vjp) maxPoolIndices() onnx.Value {
	if c.attr("storage_order", 0) == 0 {
		return c.AddOutput(c.y(0), 1)
	}
	attrs := onnx.Attrs{"ceil_mode": c.attr("ceil_mode", 0), "auto_pad": c.attrString("auto_pad", "NOTSET")}
	for _, name := range []string{"kernel_shape", "strides", "dilations", "pads"} {
		if list := c.attrInts(name); list != nil {
			attrs[name] = list
		}
	}
	return c.Ops("MaxPool", 2, attrs, c.x(0))[1]
}

// maxPoolUnfolded lays the elements of each window side by side, by a convolution that has one
// output channel for each tap, finds the first that is the maximum, and folds the gradients back by
// the transposed convolution.
func (c *vjp) maxPoolUnfolded() onnx.Value {
	f, ok := c.poolFilter()
	if !ok {
		return ""
	}
	n, taps := len(f.kernel), tensor.Size(f.kernel)
	if taps > 1<<11 {
		c.fail("before opset 16, windows of %d places are too large", taps)
		return ""
	}
	eye := c.eye(f.kernel)
	unfold := func(v onnx.Value) onnx.Value {
		attrs := onnx.Attrs{"strides": f.strides, "dilations": f.dilations, "pads": f.pads()}
		if f.lead != "" {
			attrs["pads"] = make([]int, 2*n)
		}
		return c.likeOutput(c.Conv(c.padded(v, f), eye, "", attrs), f)
	}
	inside := c.greater(unfold(c.onesLike(c.x(0), n)), c.num(0.5))
	largest := c.equal(unfold(c.planes(c.x(0), c.x(0))), c.planes(c.y(0), c.y(0)))
	first := c.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 1}, c.mask(c.both(largest, inside)))
	column := make([]int, n+1)
	for i := range column {
		column[i] = 1
	}
	column[0] = taps
	chosen := c.mask(c.Op("Equal", nil, first, c.Reshape(c.Ints(upTo(taps)...), column...)))
	g := c.Mul(chosen, c.planes(c.dy(0), c.y(0)))
	return c.reshapeLike(c.transposed(f, g, eye, c.x(0)), c.x(0))
}

// eye is kernels, taps x 1 x kernel, of which the i-th has a one at its i-th tap.
func (c *vjp) eye(kernel []int) onnx.Value {
	taps := tensor.Size(kernel)
	w := tensor.New(append([]int{taps, 1}, kernel...)...)
	for i := range taps {
		w.Data[i*taps+i] = 1
	}
	return c.Const("", w)
}
