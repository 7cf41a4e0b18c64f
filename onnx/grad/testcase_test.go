//go:build cgo

package grad_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A testCase is one node, or a small graph, with random attributes and operands (inputs with their
// values). Its loss, whose gradient is tested, is a weighted sum of outputs. An axis is free if the
// graph does not declare its size.
type testCase struct {
	attrs    onnx.Attrs
	operands []operand
	outputs  int   // number of outputs; 0: one
	loss     []int // outputs that the loss reads; nil: all
	// May be free: first axes, spatial ones of operand 0.
	onlyBatchAndSpaceFree bool
	// Whether an axis may not be free; nil: all may.
	alwaysDeclared func(operand, axis int) bool

	// graph builds the result, if it is not one node. It builds the same graph on every call.
	graph func(b *onnx.Builder, in []onnx.Value) onnx.Value
}

func (tc testCase) String() string {
	s := fmt.Sprintf("attributes %v, operands", tc.attrs)
	for _, o := range tc.operands {
		s += fmt.Sprintf(" %v", o.shape)
		if o.ints != nil && len(o.ints) < 10 {
			s += fmt.Sprintf("=%v", o.ints)
		}
	}
	return s
}

// A form is how a case becomes a graph: which operands are constants, and which axes of the others
// are free, that is, have a size that the graph does not declare.
type form struct {
	opset     int
	constants []bool
	// Constants are nodes (operator Constant), not initializers.
	byNode bool
	free   func(operand, axis int) bool // whether an axis is free
}

// plainForm returns the form that declares every size, and has only the constants that are
// necessary.
func (tc testCase) plainForm(opset int) form {
	f := form{opset: opset, free: func(int, int) bool { return false }}
	for _, o := range tc.operands {
		f.constants = append(f.constants, o.alwaysConstant)
	}
	return f
}

// randomForm returns a form with random constants and free axes.
func (tc testCase) randomForm(opset int, r *rand.Rand) form {
	f := tc.plainForm(opset)
	f.byNode = r.IntN(3) == 0
	for i := range f.constants {
		f.constants[i] = f.constants[i] || i > 0 && r.IntN(2) == 0
	}
	// batch reports whether the first axis of an operand may be free. Free first axes have the same
	// name, batch, so they must have the same size.
	batch := func(operand int) bool {
		s := tc.operands[operand].shape
		return len(tc.operands[0].shape) > 0 && len(s) > 0 && s[0] == tc.operands[0].shape[0]
	}
	switch r.IntN(3) {
	case 0:
		f.free = func(operand, axis int) bool { return axis == 0 && batch(operand) }
	case 1:
		f.free = func(operand, axis int) bool { return axis > 0 || batch(operand) }
		if tc.onlyBatchAndSpaceFree { // gradients with free spatial axes need opset 11 for Pad
			f.free = func(operand, axis int) bool { return operand == 0 && (axis == 0 || axis > 1 && opset > 10) }
		}
	}
	if free := f.free; tc.alwaysDeclared != nil {
		f.free = func(operand, axis int) bool { return free(operand, axis) && !tc.alwaysDeclared(operand, axis) }
	}
	return f
}

// always returns a function for testCase.alwaysDeclared that returns declared for every axis.
func always(declared bool) func(operand, axis int) bool {
	return func(int, int) bool { return declared }
}

// node adds the operands and the node, or the graph that tc.graph builds, to b. It returns the
// operands and the outputs.
func (tc testCase) node(b *onnx.Builder, op string, f form) (in, out []onnx.Value) {
	in = make([]onnx.Value, len(tc.operands))
	for i, o := range tc.operands {
		name := fmt.Sprintf("x%d", i)
		switch {
		case o.isAbsent():
		case f.constants[i] && f.byNode:
			in[i] = b.Op("Constant", onnx.Attrs{"value": o.proto(name)})
		case f.constants[i]:
			in[i] = o.constant(b, name)
		default:
			shape := slices.Clone(o.shape)
			for axis := range shape {
				if f.free(i, axis) {
					shape[axis] = -1
				}
			}
			in[i] = b.Input(name, o.elementType(), shape...)
		}
	}
	if tc.graph != nil {
		return in, []onnx.Value{tc.graph(b, in)}
	}
	return in, b.Ops(op, max(1, tc.outputs), tc.attrs, in...)
}

// lossOutputs returns the indices of the outputs that the loss reads.
func (tc testCase) lossOutputs() []int {
	if tc.loss != nil {
		return tc.loss
	}
	all := make([]int, max(1, tc.outputs))
	for i := range all {
		all[i] = i
	}
	return all
}
