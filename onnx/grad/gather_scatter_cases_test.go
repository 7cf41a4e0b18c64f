//go:build cgo

package grad_test

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

var indexCases = []opCase{
	{"Gather", []int{7, 11, 13}, func(g *generator) testCase {
		shape := g.smallShape()
		axis := g.IntN(len(shape))
		tc := testCase{alwaysDeclared: always(g.opset < 11), operands: []operand{g.smooth(shape...), g.indices(shape[axis], g.dims(g.between(0, 2), 1, 4)...)}}
		if axis > 0 || g.coin() {
			tc.attrs = onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}
		}
		return tc
	}},
	{"GatherElements", []int{11, 13}, func(g *generator) testCase {
		shape := g.smallShape()
		axis := g.IntN(len(shape))
		wanted := make([]int, len(shape))
		for i, d := range shape {
			wanted[i] = g.between(1, d)
		}
		wanted[axis] = g.between(1, 5)
		return testCase{attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}, operands: []operand{g.smooth(shape...), g.indices(shape[axis], wanted...)}}
	}},
	{"GatherND", []int{11, 12, 13}, drawGatherND},
	{"ScatterND", []int{11, 13, 16, 18}, drawScatterND},
	{"ScatterElements", []int{11, 13, 16, 18}, drawScatterElements},
	{"Scatter", []int{9}, drawScatterElements},
	{"TopK", []int{7, 10, 11}, func(g *generator) testCase {
		shape := g.smallShape()
		axis := g.IntN(len(shape))
		k := g.between(1, shape[axis])
		tc := testCase{alwaysDeclared: always(g.opset < 9), outputs: 2, loss: []int{0}, attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}, operands: []operand{g.distinct(shape...)}}
		if g.opset < 10 {
			tc.attrs["k"] = k
		} else {
			tc.operands = append(tc.operands, int64Vector(k))
		}
		if g.opset >= 11 {
			tc.attrs["largest"], tc.attrs["sorted"] = g.IntN(2), g.IntN(2)
		}
		return tc
	}},
}

// isTupleLength reports whether a size is the length of the index tuples.
func isTupleLength(operand, _ int) bool { return operand == 1 }

func drawGatherND(g *generator) testCase {
	shape := g.dims(g.between(2, 4), 1, 4)
	batch := 0
	if g.opset >= 12 {
		batch = g.between(0, len(shape)-1)
	}
	depth := g.between(1, len(shape)-batch)
	wanted := append(slices.Clone(shape[:batch]), g.dims(g.between(0, 2), 1, 3)...)
	o := g.indexTuples(shape[batch:batch+depth], append(wanted, depth)...)
	tc := testCase{alwaysDeclared: isTupleLength, operands: []operand{g.smooth(shape...), o}}
	if batch > 0 {
		tc.attrs = onnx.Attrs{"batch_dims": batch}
	}
	return tc
}

// indexTuples are index tuples, along the last axis, into axes of these sizes.
func (g *generator) indexTuples(sizes []int, shape ...int) operand {
	o := operand{shape: shape, ints: make([]int64, tensor.Size(shape))}
	for i := range o.ints {
		o.ints[i] = int64(g.axis(sizes[i%len(sizes)]))
	}
	return o
}

// reduction is the attribute of ScatterND and ScatterElements, which they have since opset 16.
func (g *generator) reduction() string {
	modes := []string{"none"}
	if g.opset >= 16 {
		modes = append(modes, "add", "mul")
	}
	if g.opset >= 18 {
		modes = append(modes, "min", "max")
	}
	return modes[(g.trial+g.opset)%len(modes)]
}

// distinctPair are two operands without ties.
func (g *generator) distinctPair(x, u []int) (operand, operand) {
	n := tensor.Size(x)
	all := g.distinct(n + tensor.Size(u))
	return operand{shape: x, floats: all.floats[:n:n]}, operand{shape: u, floats: all.floats[n:]}
}

func drawScatterND(g *generator) testCase {
	shape := g.dims(g.between(1, 4), 2, 4)
	depth := g.between(1, len(shape))
	mode := g.reduction()
	n := g.between(1, 3)
	places := g.Perm(tensor.Size(shape[:depth]))
	n = min(n, len(places))
	o := operand{shape: []int{n, depth}}
	for _, p := range places[:n] {
		if mode != "none" {
			p = places[0] // all to the same place
		}
		index := make([]int64, depth)
		for k := depth - 1; k >= 0; k-- {
			index[k] = int64(p % shape[k])
			p /= shape[k]
		}
		o.ints = append(o.ints, index...)
	}
	x, u := g.distinctPair(shape, append([]int{n}, shape[depth:]...))
	tc := testCase{alwaysDeclared: isTupleLength, operands: []operand{x, o, u}}
	if g.opset >= 16 {
		tc.attrs = onnx.Attrs{"reduction": mode}
	}
	return tc
}

func drawScatterElements(g *generator) testCase {
	shape := g.dims(g.between(1, 4), 2, 4)
	axis := g.IntN(len(shape))
	mode := g.reduction()
	wanted := make([]int, len(shape))
	for i, d := range shape {
		wanted[i] = g.between(1, d)
	}
	o := g.indices(shape[axis], wanted...)
	if mode == "none" { // no index twice along the axis
		inner := tensor.Size(wanted[axis+1:])
		for start := range tensor.Size(wanted[:axis]) {
			for k := range inner {
				for i, p := range g.Perm(shape[axis])[:wanted[axis]] {
					o.ints[(start*wanted[axis]+i)*inner+k] = int64(p)
				}
			}
		}
	}
	x, u := g.distinctPair(shape, wanted)
	tc := testCase{operands: []operand{x, o, u}, attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}}
	if g.opset >= 16 {
		tc.attrs["reduction"] = mode
	}
	if g.opset < 11 {
		tc.operands[2].noGradient = true
	}
	return tc
}
