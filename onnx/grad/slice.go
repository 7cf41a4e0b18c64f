package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A span describes the positions that Slice takes of one axis.
type span struct {
	axis, step     int
	size           int        // of the axis; negative if it is not fixed
	known          bool       // start and end are known before the graph runs
	start, end     int        // as the node has them: negative ones count from the end
	startAt, endAt onnx.Value // the same as int64 vectors of one element
	// Of a known span of an axis of fixed size: the first position, the number of positions.
	first, count int
}

// output = slices of data: ddata has doutput at the positions that were taken, and zeros elsewhere.
func slice(op *operation) onnx.Value {
	g := op.dy(0)
	for _, s := range op.spans() {
		known := s.known && s.size >= 0
		switch {
		case known && s.count == 0:
			return "" // nothing was taken, so the gradient is zero
		case known && s.step == 1:
			g = op.padAxis(g, s.axis, s.first, s.size-s.first-s.count)
		case known && s.size <= maxConstant:
			// For each position, an index of g; index s.count is the zero that padAxis adds.
			source := slices.Repeat([]int{s.count}, s.size)
			for i := range s.count {
				source[s.first+i*s.step] = i
			}
			g = op.Gather(op.padAxis(g, s.axis, 0, 1), op.Ints(source...), s.axis)
		case op.Opset() < 11:
			op.fail("before opset 11, its starts and ends, and the axes that it cuts, must be fixed")
		default:
			g = op.unsliceRuntime(g, s)
		}
	}
	return g
}

func (op *operation) spans() []span {
	rank := op.rank(op.x(0))
	axes, axesKnown := op.attrOrInput("axes", 3)
	steps, stepsKnown := op.attrOrInput("", 4)
	starts, startsKnown := op.attrOrInput("starts", 1)
	ends, endsKnown := op.attrOrInput("ends", 2)
	count := len(starts)
	if !startsKnown {
		count = len(axes)
		if s := op.shape(op.x(1)); len(s) == 1 && s[0] >= 0 {
			count = s[0]
		}
	}
	if !axesKnown || !stepsKnown || axes == nil && count == 0 && !startsKnown {
		op.fail("the axes that it cuts, and the steps, must be known before the graph runs")
	}
	list := make([]span, count)
	for i := range list {
		s := &list[i]
		s.axis, s.step, s.known = i%rank, 1, startsKnown && endsKnown
		if axes != nil {
			s.axis = normalizeAxis(axes[i], rank)
		}
		s.size = op.shape(op.x(0))[s.axis]
		if steps != nil {
			s.step = steps[i]
		}
		if s.known {
			s.start, s.end = starts[i], ends[i]
			s.resolve()
		}
		if op.Opset() >= 10 {
			s.startAt, s.endAt = op.Gather(op.toInt64(op.x(1)), op.Ints(i), 0), op.Gather(op.toInt64(op.x(2)), op.Ints(i), 0)
		}
	}
	return list
}

// resolve sets first and count of a known span of an axis of fixed size.
func (s *span) resolve() {
	clamp := func(v, low, high int) int {
		if v < 0 {
			v += s.size
		}
		return max(low, min(v, high))
	}
	if s.step > 0 {
		s.first = clamp(s.start, 0, s.size)
		s.count = max(0, (clamp(s.end, 0, s.size)-s.first+s.step-1)/s.step)
		return
	}
	s.first = clamp(s.start, 0, s.size-1)
	s.count = max(0, (s.first-clamp(s.end, -1, s.size-1)-s.step-1)/-s.step)
}

// padAxis pads an axis with zeros before and after. Negative numbers cut off.
func (op *operation) padAxis(g onnx.Value, at, before, after int) onnx.Value {
	if before == 0 && after == 0 {
		return g
	}
	rank := len(op.shape(op.x(0)))
	pads := make([]int, 2*rank)
	pads[at], pads[rank+at] = before, after
	return op.pad(g, pads)
}

// pad pads g with zeros. Negative numbers cut off.
func (op *operation) pad(g onnx.Value, pads []int) onnx.Value {
	if !slices.ContainsFunc(pads, func(p int) bool { return p != 0 }) {
		return g
	}
	if op.Opset() < 11 {
		return op.Op("Pad", onnx.Attrs{"pads": pads}, g)
	}
	return op.Op("Pad", nil, g, op.Ints(pads...))
}

// unsliceRuntime puts g where the same Slice of 0, 1, 2 ... says.
func (op *operation) unsliceRuntime(g onnx.Value, s span) onnx.Value {
	size, count := op.size(op.x(0), s.axis), op.Gather(op.Shape(g), op.Ints(s.axis), 0)
	positions := op.Op("Slice", nil, op.countTo(size), s.startAt, s.endAt, op.Ints(0), op.Ints(s.step))
	elements := op.countTo(count)
	// Index count is the zero that padAxis adds.
	source := op.Op("ScatterElements", onnx.Attrs{"axis": 0}, op.Expand(count, size), positions, elements)
	return op.Gather(op.padAxis(g, s.axis, 0, 1), source, s.axis)
}
