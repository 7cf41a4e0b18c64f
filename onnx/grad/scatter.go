package grad

import "github.com/noether-ml/noether/onnx"

// scatter is the rule of ScatterND and ScatterElements, and take the operator that reads at the same places. What was
// overwritten has no gradient; what was added to keeps it.
func scatter(take string) rule {
	return func(c *call) {
		mode := c.attrString("reduction", "none")
		if mode != "none" && mode != "add" {
			c.fail("gradients for reduction %s are not supported", mode)
			return
		}
		attrs := onnx.Attrs{}
		if take != "GatherND" {
			attrs["axis"] = c.attr("axis", 0)
		}
		c.give(0, func() onnx.Value {
			if mode == "add" {
				return c.dy(0)
			}
			return c.Op(c.node.GetOpType(), attrs, c.dy(0), c.x(1), c.filled(0, c.x(2)))
		})
		c.give(2, func() onnx.Value {
			if c.Opset() < 11 {
				c.fail("before opset 11, gradients by what is written are not supported")
				return ""
			}
			return c.Op(take, attrs, c.dy(0), c.x(1))
		})
	}
}

// topK writes the gradient of the values at the places that they come from.
func topK(c *call) {
	c.give(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok || c.dy(0) == "" {
			return ""
		}
		at, indices := axis(c.attr("axis", -1), rank), c.AddOutput(c.y(0), 1)
		zeros := func() onnx.Value { return c.filled(0, c.x(0)) }
		switch {
		case c.Opset() >= 11:
			return c.Op("ScatterElements", onnx.Attrs{"axis": at}, zeros(), indices, c.dy(0))
		case c.Opset() >= 9:
			return c.Op("Scatter", onnx.Attrs{"axis": at}, zeros(), indices, c.dy(0))
		}
		return c.addElements(at, rank, indices, c.dy(0))
	})
}
