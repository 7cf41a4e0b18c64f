package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// pad cuts off what was padded; in the modes that repeat elements, what was repeated is added to
// its source.
func pad(c *vjp) {
	mode := c.attrString("mode", "constant")
	if mode == "constant" {
		inner := func() onnx.Value { return c.unpadded() }
		c.accumulate(0, inner)
		c.accumulate(2, func() onnx.Value { // the sum over what is not of x
			all := c.Sub(c.ReduceSum(c.dy(0), false), c.ReduceSum(inner(), false))
			return c.reshapeLike(all, c.x(2))
		})
		return
	}
	c.accumulate(0, func() onnx.Value {
		pads, ok := c.pads()
		if !ok {
			return ""
		}
		g, shape := c.dy(0), c.shape(c.x(0))
		for k := range shape {
			before, after := pads[k], pads[len(shape)+k]
			switch {
			case before == 0 && after == 0:
			case shape[k] > listed || before > listed || after > listed:
				c.fail("in mode %s, axes and padding of more than %d places are not supported", mode, listed)
				return ""
			case shape[k] >= 0:
				g = c.ungather(g, k, padSources(mode, before, after, shape[k]), shape[k])
			default:
				g = c.untransform(g, k, c.paddedIdentity(mode, before, after, k))
			}
		}
		return g
	})
}

// paddedIdentity is the identity matrix with its rows padded as an axis of the node's input is: the
// matrix of that padding.
func (c *vjp) paddedIdentity(mode string, before, after, axis int) onnx.Value {
	eye := c.identityMatrix(axis)
	attrs := onnx.Attrs{"mode": mode}
	if c.Opset() < 11 {
		attrs["pads"] = []int{before, 0, after, 0}
		return c.Op("Pad", attrs, eye)
	}
	return c.Op("Pad", attrs, eye, c.Ints(before, 0, after, 0))
}

// unpadded cuts off what a Pad of mode constant has added, and puts zeros where it has cut off.
func (c *vjp) unpadded() onnx.Value {
	if c.Opset() < 11 || c.x(1) != "" && c.x(3) == "" {
		if list, ok := c.listOr("pads", 1); ok {
			return c.pad(c.dy(0), negative(list))
		}
	}
	inputs := []onnx.Value{c.dy(0), c.Neg(c.x(1))}
	if c.x(3) != "" {
		inputs = append(inputs, "", c.x(3))
	}
	return c.Op("Pad", nil, inputs...)
}

func negative(list []int) []int {
	list = slices.Clone(list)
	for i := range list {
		list[i] = -list[i]
	}
	return list
}

// pads are the padding of every axis, all beginnings before all ends.
func (c *vjp) pads() ([]int, bool) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return nil, false
	}
	list, ok := c.listOr("pads", 1)
	axes, okAxes := c.listOr("", 3)
	if !ok || !okAxes {
		c.fail("its padding must be known before the graph runs")
		return nil, false
	}
	if axes == nil {
		return list, true
	}
	pads := make([]int, 2*rank)
	for i, a := range axes {
		pads[axis(a, rank)], pads[rank+axis(a, rank)] = list[i], list[len(axes)+i]
	}
	return pads, true
}

// padSources is, for each place of a padded axis, the place of the axis of n elements that it
// repeats. What negative padding cuts off is not repeated at the other end.
func padSources(mode string, before, after, n int) []int {
	sources := make([]int, max(0, n+before+after))
	cut := max(0, -before)
	n = max(1, n-cut-max(0, -after))
	before = max(0, before)
	for i := range sources {
		at := i - before
		switch mode {
		case "edge":
			at = max(0, min(at, n-1))
		case "wrap":
			at = ((at % n) + n) % n
		default: // reflect
			if n == 1 {
				at = 0
				break
			}
			period := 2 * (n - 1)
			at = ((at % period) + period) % period
			at = min(at, period-at)
		}
		sources[i] = cut + at
	}
	return sources
}

// ungather is the transpose of taking places of an axis: element i of g is added at place
// sources[i] of n. It goes by runs of places that ascend, descend or stay.
func (c *vjp) ungather(g onnx.Value, at int, sources []int, n int) onnx.Value {
	var sum onnx.Value
	for _, r := range runsOf(sources) {
		part := c.Slice(g, at, r.start, r.start+r.count, 1)
		low := sources[r.start]
		length := r.count
		switch {
		case r.slope < 0:
			part = c.reversed(part, at, r.count)
			low -= r.count - 1
		case r.slope == 0 && r.count > 1:
			part = c.ReduceSum(part, true, at)
			length = 1
		}
		part = c.padAxis(part, at, low, n-low-length)
		if sum != "" {
			part = c.Add(sum, part)
		}
		sum = part
	}
	return sum
}

// A run is a part of a list of places where each is the one before plus slope.
type run struct{ start, count, slope int }

func runsOf(places []int) []run {
	var runs []run
	for i := 0; i < len(places); {
		r := run{start: i, count: 1, slope: 1}
		if i+1 < len(places) {
			if d := places[i+1] - places[i]; d >= -1 && d <= 1 {
				r.slope = d
			}
		}
		for i++; i < len(places) && places[i]-places[i-1] == r.slope; i++ {
			r.count++
		}
		runs = append(runs, r)
	}
	return runs
}
