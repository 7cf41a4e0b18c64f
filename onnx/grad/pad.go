package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// output = padded data: ddata is its part of doutput; repeated elements add their copies up, and
// dconstant_value sums the padding's.
func pad(op *operation) {
	mode := op.attrString("mode", "constant")
	if mode == "constant" {
		op.accumulate(0, op.unpadded)
		op.accumulate(2, func() onnx.Value {
			padding := op.Sub(op.ReduceSum(op.dy(0), false), op.ReduceSum(op.unpadded(), false))
			return op.reshapeLike(padding, op.x(2))
		})
		return
	}
	op.accumulate(0, func() onnx.Value {
		pads := op.pads()
		// a negative size in shape is not known before a run.
		g, shape := op.dy(0), op.shape(op.x(0))
		for k := range shape {
			before, after := pads[k], pads[len(shape)+k]
			switch {
			case before == 0 && after == 0:
			case shape[k] > maxConstant || before > maxConstant || after > maxConstant:
				op.fail("in mode %s, axes and padding of more than %d elements are not supported", mode, maxConstant)
			case shape[k] >= 0:
				g = op.addRuns(g, k, padSources(mode, before, after, shape[k]), shape[k])
			default:
				g = op.applyTransposed(g, k, op.paddedIdentity(mode, before, after, k))
			}
		}
		return g
	})
}

// paddedIdentity multiplies an axis of unknown size: the identity with padded rows.
func (op *operation) paddedIdentity(mode string, before, after, axis int) onnx.Value {
	eye := op.identityMatrix(axis)
	attrs := onnx.Attrs{"mode": mode}
	if op.Opset() < 11 {
		attrs["pads"] = []int{before, 0, after, 0}
		return op.Op("Pad", attrs, eye)
	}
	return op.Op("Pad", attrs, eye, op.Ints(before, 0, after, 0))
}

// unpadded is doutput without constant padding, zeros where negative padding cut off.
func (op *operation) unpadded() onnx.Value {
	if op.Opset() < 11 || op.x(1) != "" && op.x(3) == "" {
		if pads, ok := op.attrOrInput("pads", 1); ok {
			pads = slices.Clone(pads)
			for i := range pads {
				pads[i] = -pads[i]
			}
			return op.pad(op.dy(0), pads)
		}
	}
	inputs := []onnx.Value{op.dy(0), op.Neg(op.x(1))}
	if op.x(3) != "" {
		inputs = append(inputs, "", op.x(3))
	}
	return op.Op("Pad", nil, inputs...)
}

// pads returns the elements before each axis, then after each.
func (op *operation) pads() []int {
	rank := op.rank(op.x(0))
	list, known := op.attrOrInput("pads", 1)
	axes, axesKnown := op.attrOrInput("", 3)
	if !known || !axesKnown {
		op.fail("its padding must be known before the graph runs")
	}
	if axes == nil {
		return list
	}
	pads := make([]int, 2*rank)
	for i, a := range normalizeAxes(axes, rank) {
		pads[a], pads[rank+a] = list[i], list[len(axes)+i]
	}
	return pads
}

// padSources returns which of n elements each padded position repeats; cut ones are not repeated.
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

// addRuns adds element i along the axis at sources[i], of n, run by run.
func (op *operation) addRuns(g onnx.Value, axis int, sources []int, n int) onnx.Value {
	var sum onnx.Value
	for _, r := range runsOf(sources) {
		part := op.Slice(g, axis, r.start, r.start+r.count, 1)
		low := sources[r.start]
		length := r.count
		switch {
		case r.slope < 0:
			part = op.reversed(part, axis, r.count)
			low -= r.count - 1
		case r.slope == 0 && r.count > 1:
			part = op.ReduceSum(part, true, axis)
			length = 1
		}
		part = op.padAxis(part, axis, low, n-low-length)
		if sum != "" {
			part = op.Add(sum, part)
		}
		sum = part
	}
	return sum
}

// A run is a part of a list of positions in which each is the one before it plus slope: -1, 0 or 1.
type run struct{ start, count, slope int }

func runsOf(positions []int) []run {
	var runs []run
	for i := 0; i < len(positions); {
		r := run{start: i, count: 1, slope: 1}
		if i+1 < len(positions) {
			if d := positions[i+1] - positions[i]; d >= -1 && d <= 1 {
				r.slope = d
			}
		}
		for i++; i < len(positions) && positions[i]-positions[i-1] == r.slope; i++ {
			r.count++
		}
		runs = append(runs, r)
	}
	return runs
}
