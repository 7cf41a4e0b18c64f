package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A cut is what Slice takes of one axis. Values are those of the node: a start may count from the
// end.
type cut struct {
	axis, step       int
	start, end       int
	known            bool       // start and end are
	startAt, endAt   onnx.Value // where they are not: int64 of one element
	size, from, many int        // of a cut that is known, on an axis of fixed size: that, the first place, and how many
}

// slice puts the gradient back where the node took it from, among zeros, axis by axis.
func slice(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		cuts, ok := c.cuts()
		if !ok {
			return ""
		}
		g := c.dy(0)
		for _, k := range cuts {
			switch {
			case k.known && k.size >= 0 && k.many == 0:
				return "" // nothing was taken
			case k.known && k.size >= 0 && k.step == 1:
				g = c.padAxis(g, k.axis, k.from, k.size-k.from-k.many)
			case k.known && k.size >= 0 && k.size <= listed:
				g = c.spaced(g, k)
			case c.Opset() < 11:
				c.fail("before opset 11, its starts and ends, and the axes that it cuts, must be fixed")
				return ""
			default:
				g = c.placed(g, k)
			}
		}
		return g
	})
}

// cuts are the axes that a Slice cuts.
func (c *vjp) cuts() ([]cut, bool) {
	rank, ok := c.rank(c.x(0))
	axes, okAxes := c.listOr("axes", 3)
	steps, okSteps := c.listOr("", 4)
	starts, okStarts := c.listOr("starts", 1)
	ends, okEnds := c.listOr("ends", 2)
	count := len(starts)
	if !okStarts {
		count = len(axes)
		if s := c.shape(c.x(1)); len(s) == 1 && s[0] >= 0 {
			count = s[0]
		}
	}
	if !ok || !okAxes || !okSteps || axes == nil && count == 0 && !okStarts {
		c.fail("the axes that it cuts, and the steps, must be known before the graph runs")
		return nil, false
	}
	list := make([]cut, count)
	for i := range list {
		k := &list[i]
		k.axis, k.step, k.known, k.size = i, 1, okStarts && okEnds, c.shape(c.x(0))[i%rank]
		if axes != nil {
			k.axis = axis(axes[i], rank)
			k.size = c.shape(c.x(0))[k.axis]
		}
		if steps != nil {
			k.step = steps[i]
		}
		if k.known {
			k.start, k.end = starts[i], ends[i]
			k.place()
		}
		if c.Opset() >= 10 {
			k.startAt, k.endAt = c.Gather(c.long(c.x(1)), c.Ints(i), 0), c.Gather(c.long(c.x(2)), c.Ints(i), 0)
		}
	}
	return list, true
}

// place works out where a cut of an axis of fixed size begins, and how long it is.
func (k *cut) place() {
	bound := func(v, low, high int) int {
		if v < 0 {
			v += k.size
		}
		return max(low, min(v, high))
	}
	if k.step > 0 {
		k.from = bound(k.start, 0, k.size)
		k.many = max(0, (bound(k.end, 0, k.size)-k.from+k.step-1)/k.step)
		return
	}
	k.from = bound(k.start, 0, k.size-1)
	k.many = max(0, (k.from-bound(k.end, -1, k.size-1)-k.step-1)/-k.step)
}

// padAxis puts zeros before and after along an axis; negative numbers cut off.
func (c *vjp) padAxis(g onnx.Value, at, before, after int) onnx.Value {
	if before == 0 && after == 0 {
		return g
	}
	rank := len(c.shape(c.x(0)))
	pads := make([]int, 2*rank)
	pads[at], pads[rank+at] = before, after
	return c.pad(g, pads)
}

// pad puts zeros around g; negative numbers cut off.
func (c *vjp) pad(g onnx.Value, pads []int) onnx.Value {
	if !slices.ContainsFunc(pads, func(p int) bool { return p != 0 }) {
		return g
	}
	if c.Opset() < 11 {
		return c.Op("Pad", onnx.Attrs{"pads": pads}, g)
	}
	return c.Op("Pad", nil, g, c.Ints(pads...))
}

// spaced puts the elements of g where the cut took them: each place of the axis takes its element,
// or a zero that is appended.
func (c *vjp) spaced(g onnx.Value, k cut) onnx.Value {
	source := slices.Repeat([]int{k.many}, k.size)
	for i := range k.many {
		source[k.from+i*k.step] = i
	}
	return c.Gather(c.padAxis(g, k.axis, 0, 1), c.Ints(source...), k.axis)
}

// placed is spaced where the places are known only when the graph runs: they are what the node
// takes of 0, 1, 2 ...
func (c *vjp) placed(g onnx.Value, k cut) onnx.Value {
	scalar := func(v onnx.Value) onnx.Value { return c.Squeeze(v, 0) }
	size, many := c.size(c.x(0), k.axis), c.Gather(c.Shape(g), c.Ints(k.axis), 0)
	all := c.Op("Range", nil, c.Int(0), scalar(size), c.Int(1))
	places := c.Op("Slice", nil, all, k.startAt, k.endAt, c.Ints(0), c.Ints(k.step))
	order := c.Op("Range", nil, c.Int(0), scalar(many), c.Int(1))
	source := c.Op("ScatterElements", onnx.Attrs{"axis": 0}, c.Expand(many, size), places, order)
	return c.Gather(c.padAxis(g, k.axis, 0, 1), source, k.axis)
}
