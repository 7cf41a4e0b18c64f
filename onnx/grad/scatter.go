package grad

import "github.com/noether-ml/noether/onnx"

// scatter is the rule of ScatterND and ScatterElements, and take the operator that reads at the
// same places.
func scatter(take string) rule {
	return func(c *vjp) {
		s := scattering{c, take}
		switch mode := c.attrString("reduction", "none"); mode {
		case "none":
			s.replaced()
		case "add":
			c.accumulate(0, func() onnx.Value { return c.dy(0) })
			c.accumulate(2, func() onnx.Value { return s.taken(c.dy(0)) })
		case "mul":
			s.multiplied()
		case "min", "max":
			s.compared()
		default:
			c.fail("there is no reduction %s", mode)
		}
	}
}

// A scattering is a node that writes its third input u into its first one x at some places.
type scattering struct {
	*vjp
	take string
}

// attrs are those by which the places are found.
func (s scattering) attrs() onnx.Attrs {
	if s.take == "GatherND" {
		return onnx.Attrs{}
	}
	return onnx.Attrs{"axis": s.attr("axis", 0)}
}

// taken reads v, which is like x, at the places.
func (s scattering) taken(v onnx.Value) onnx.Value {
	if s.Opset() < 11 {
		s.fail("before opset 11, gradients by what is written are not supported")
		return ""
	}
	return s.Op(s.take, s.attrs(), v, s.x(1))
}

// written writes v, which is like u, to w, which is like x, at the places.
func (s scattering) written(reduction string, w, v onnx.Value) onnx.Value {
	attrs := s.attrs()
	if reduction != "" {
		attrs["reduction"] = reduction
	}
	return s.Op(s.node.GetOpType(), attrs, w, s.x(1), v)
}

// replaced: what was overwritten has no gradient.
func (s scattering) replaced() {
	s.accumulate(0, func() onnx.Value { return s.written("", s.dy(0), s.filled(0, s.x(2))) })
	s.accumulate(2, func() onnx.Value { return s.taken(s.dy(0)) })
}

// compared: those that attain the minimum or the maximum share its gradient evenly.
func (s scattering) compared() {
	x, u := s.x(0), s.x(2)
	kept, came := s.mask(s.equal(x, s.y(0))), s.mask(s.equal(u, s.taken(s.y(0))))
	share := s.Div(s.dy(0), s.written("add", kept, came))
	s.accumulate(0, func() onnx.Value { return s.Mul(share, kept) })
	s.accumulate(2, func() onnx.Value { return s.Mul(s.taken(share), came) })
}

// multiplied: each factor has the product of the others. Of those that are written the product is
// divided by the factor itself; where one is 0 only that one has a gradient.
func (s scattering) multiplied() {
	x, u := s.x(0), s.x(2)
	s.accumulate(0, func() onnx.Value { return s.Mul(s.dy(0), s.written("mul", s.filled(1, x), u)) })
	s.accumulate(2, func() onnx.Value {
		zero := s.equal(u, s.num(0))
		factors := s.choose(zero, s.num(1), u)
		others := s.Div(s.taken(s.Mul(s.dy(0), s.written("mul", x, factors))), factors)
		zeros := s.taken(s.written("add", s.filled(0, x), s.mask(zero)))
		return s.Mul(others, s.mask(s.equal(zeros, s.mask(zero))))
	})
}

// topK writes the gradient of the values at the places that they come from.
func topK(c *vjp) {
	c.accumulate(0, func() onnx.Value {
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
