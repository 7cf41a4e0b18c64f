package grad

import "github.com/noether-ml/noether/onnx"

// A scattering is output = data with updates at indices, inputs 0 to 2, combined by reduction.
type scattering struct {
	*operation
	gatherOp string // the operator that reads at the same indices; "" before opset 11
}

// scatter is the rule of ScatterND, ScatterElements and Scatter, its earlier name.
func scatter(gatherOp string) rule {
	return func(op *operation) {
		s := scattering{op, gatherOp}
		switch reduction := op.attrString("reduction", "none"); reduction {
		case "none":
			s.replace()
		case "add": // ddata = doutput, dupdates = doutput at indices
			op.accumulate(0, func() onnx.Value { return op.dy(0) })
			op.accumulate(2, func() onnx.Value { return s.gather(op.dy(0)) })
		case "mul":
			s.multiply()
		case "min", "max":
			s.compare()
		default:
			op.fail("unknown reduction %q", reduction)
		}
	}
}

func (s scattering) attrs() onnx.Attrs {
	if s.gatherOp == "GatherND" {
		return onnx.Attrs{}
	}
	return onnx.Attrs{"axis": s.attr("axis", 0)}
}

// gather reads v, of the shape of data, at the indices.
func (s scattering) gather(v onnx.Value) onnx.Value {
	if s.Opset() < 11 {
		s.fail("before opset 11, gradients by its updates are not supported")
	}
	return s.Op(s.gatherOp, s.attrs(), v, s.x(1))
}

// scatter writes v, of the shape of updates, to w, of the shape of data, at the indices.
func (s scattering) scatter(reduction string, w, v onnx.Value) onnx.Value {
	attrs := s.attrs()
	if reduction != "" {
		attrs["reduction"] = reduction
	}
	return s.Op(s.node.GetOpType(), attrs, w, s.x(1), v)
}

// replace: ddata = doutput with zeros at indices, dupdates = doutput at indices.
func (s scattering) replace() {
	s.accumulate(0, func() onnx.Value { return s.scatter("", s.dy(0), s.filled(0, s.x(2))) })
	s.accumulate(2, func() onnx.Value { return s.gather(s.dy(0)) })
}

// compare: elements that equal the extreme share its gradient evenly.
func (s scattering) compare() {
	data, updates := s.x(0), s.x(2)
	dataEqual, updatesEqual := s.mask(s.equal(data, s.y(0))), s.mask(s.equal(updates, s.gather(s.y(0))))
	share := s.Div(s.dy(0), s.scatter("add", dataEqual, updatesEqual))
	s.accumulate(0, func() onnx.Value { return s.Mul(share, dataEqual) })
	s.accumulate(2, func() onnx.Value { return s.Mul(s.gather(share), updatesEqual) })
}

// multiply: each gradient is doutput times the other factors, for updates the product over the
// factor; a single zero alone has a gradient.
func (s scattering) multiply() {
	data, updates := s.x(0), s.x(2)
	s.accumulate(0, func() onnx.Value { return s.Mul(s.dy(0), s.scatter("mul", s.filled(1, data), updates)) })
	s.accumulate(2, func() onnx.Value {
		isZero := s.equal(updates, s.num(0))
		factors := s.choose(isZero, s.num(1), updates)
		others := s.Div(s.gather(s.Mul(s.dy(0), s.scatter("mul", data, factors))), factors)
		zeros := s.gather(s.scatter("add", s.filled(0, data), s.mask(isZero)))
		return s.Mul(others, s.mask(s.equal(zeros, s.mask(isZero))))
	})
}

// topK: dX has dValues at Indices, which AddOutput adds if missing, else zeros.
func topK(op *operation) onnx.Value {
	rank := op.rank(op.x(0))
	if op.dy(0) == "" {
		return ""
	}
	at, indices := op.axisOf(-1, rank), op.AddOutput(op.y(0), 1)
	zeros := func() onnx.Value { return op.filled(0, op.x(0)) }
	switch size := op.shape(op.x(0))[at]; {
	case op.Opset() >= 11:
		return op.Op("ScatterElements", onnx.Attrs{"axis": at}, zeros(), indices, op.dy(0))
	case op.Opset() >= 9 && size < 0:
		// For a known size addElements is better: Scatter lacks the gradient by updates, which
		// forward mode needs.
		return op.Op("Scatter", onnx.Attrs{"axis": at}, zeros(), indices, op.dy(0))
	}
	return op.addElements(at, rank, indices, op.dy(0)) // by comparing each index with each position
}
