//go:build cgo

package grad_test

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// indexCases are the cases of operators that read or write at indices. The numbers are versions of
// the ONNX operator set: 7, the oldest that is supported, or else the first with the operator or
// one in which it changed. Sizes that alwaysDeclared names are known in the graph of every case.
//
// The methods of generator are in generator_test.go. Those that return operands (inputs of the
// node, with values) are smooth, for values from -2 to 2, distinct, for values without ties, and
// indices. trial is the index of the case.
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
		indexShape := make([]int, len(shape))
		for i, d := range shape {
			indexShape[i] = g.between(1, d)
		}
		indexShape[axis] = g.between(1, 5)
		return testCase{attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}, operands: []operand{g.smooth(shape...), g.indices(shape[axis], indexShape...)}}
	}},
	{"GatherND", []int{11, 12, 13}, drawGatherND},
	{"ScatterND", []int{11, 13, 16, 18}, drawScatterND},
	{"ScatterElements", []int{11, 13, 16, 18}, drawScatterElements},
	{"Scatter", []int{9}, drawScatterElements},
	{"TopK", []int{7, 10, 11}, func(g *generator) testCase {
		shape := g.smallShape()
		axis := g.IntN(len(shape))
		k := g.between(1, shape[axis])
		// The loss reads output 0, the values; the indices have no gradient.
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

// isIndexSize reports whether a size is one of the indices, operand 1. Their last axis, the length
// of the index tuples, must be known.
func isIndexSize(operand, _ int) bool { return operand == 1 }

func drawGatherND(g *generator) testCase {
	shape := g.dims(g.between(2, 4), 1, 4)
	batch := 0
	if g.opset >= 12 {
		batch = g.between(0, len(shape)-1)
	}
	depth := g.between(1, len(shape)-batch)
	indexShape := append(slices.Clone(shape[:batch]), g.dims(g.between(0, 2), 1, 3)...)
	o := g.indexTuples(shape[batch:batch+depth], append(indexShape, depth)...)
	tc := testCase{alwaysDeclared: isIndexSize, operands: []operand{g.smooth(shape...), o}}
	if batch > 0 {
		tc.attrs = onnx.Attrs{"batch_dims": batch}
	}
	return tc
}

// indexTuples returns index tuples, along the last axis, into axes of these sizes.
func (g *generator) indexTuples(sizes []int, shape ...int) operand {
	o := operand{shape: shape, ints: make([]int64, tensor.Size(shape))}
	for i := range o.ints {
		o.ints[i] = int64(g.axis(sizes[i%len(sizes)]))
	}
	return o
}

// reduction returns a value of the attribute reduction of ScatterND and ScatterElements, which is
// "none" before opset 16.
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

// distinctPair returns two operands of the shapes x and u, in which no value occurs twice.
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
	targets := g.Perm(tensor.Size(shape[:depth]))
	n = min(n, len(targets))
	o := operand{shape: []int{n, depth}}
	for _, p := range targets[:n] {
		if mode != "none" {
			p = targets[0] // all updates go to the same element or slice
		}
		index := make([]int64, depth)
		for k := depth - 1; k >= 0; k-- {
			index[k] = int64(p % shape[k])
			p /= shape[k]
		}
		o.ints = append(o.ints, index...)
	}
	x, u := g.distinctPair(shape, append([]int{n}, shape[depth:]...))
	tc := testCase{alwaysDeclared: isIndexSize, operands: []operand{x, o, u}}
	if g.opset >= 16 {
		tc.attrs = onnx.Attrs{"reduction": mode}
	}
	return tc
}

func drawScatterElements(g *generator) testCase {
	shape := g.dims(g.between(1, 4), 2, 4)
	axis := g.IntN(len(shape))
	mode := g.reduction()
	indexShape := make([]int, len(shape))
	for i, d := range shape {
		indexShape[i] = g.between(1, d)
	}
	o := g.indices(shape[axis], indexShape...)
	if mode == "none" { // no index twice along the axis
		inner := tensor.Size(indexShape[axis+1:])
		for start := range tensor.Size(indexShape[:axis]) {
			for k := range inner {
				for i, p := range g.Perm(shape[axis])[:indexShape[axis]] {
					o.ints[(start*indexShape[axis]+i)*inner+k] = int64(p)
				}
			}
		}
	}
	x, u := g.distinctPair(shape, indexShape)
	tc := testCase{operands: []operand{x, o, u}, attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape))}}
	if g.opset >= 16 {
		tc.attrs["reduction"] = mode
	}
	if g.opset < 11 { // gradients by the updates are not supported
		tc.operands[2].noGradient = true
	}
	return tc
}
