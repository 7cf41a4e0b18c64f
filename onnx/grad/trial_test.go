//go:build cgo

package grad_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A trial is one node, or a small graph, with drawn attributes and operands.
type trial struct {
	attrs    onnx.Attrs
	operands []operand
	outputs  int                          // 0: 1
	loss     []int                        // the outputs that the loss reads; nil: all
	space    bool                         // of the sizes, only those of batch and space may be free
	known    func(operand, axis int) bool // sizes that are always declared; nil: none has to be

	// graph makes the result in place of one node, the same each time that it is called.
	graph func(b *onnx.Builder, in []onnx.Value) onnx.Value
}

func (tr trial) String() string {
	s := fmt.Sprintf("attributes %v, operands", tr.attrs)
	for _, o := range tr.operands {
		s += fmt.Sprintf(" %v", o.shape)
		if o.ints != nil && len(o.ints) < 10 {
			s += fmt.Sprintf("=%v", o.ints)
		}
	}
	return s
}

// A form is how a trial becomes a graph: which operands are constants of it, and which sizes it
// declares.
type form struct {
	opset     int
	constants []bool
	byNode    bool // constants are made by nodes
	free      func(operand, axis int) bool
}

// plain declares every size, and makes constants only of what has to be.
func (tr trial) plain(opset int) form {
	f := form{opset: opset, free: func(int, int) bool { return false }}
	for _, o := range tr.operands {
		f.constants = append(f.constants, o.fixed)
	}
	return f
}

// drawn is another form of the same trial.
func (tr trial) drawn(opset int, r *rand.Rand) form {
	f := tr.plain(opset)
	f.byNode = r.IntN(3) == 0
	for i := range f.constants {
		f.constants[i] = f.constants[i] || i > 0 && r.IntN(2) == 0
	}
	batch := func(operand int) bool { // a free first axis is called batch, and all of that name are as long
		s := tr.operands[operand].shape
		return len(tr.operands[0].shape) > 0 && len(s) > 0 && s[0] == tr.operands[0].shape[0]
	}
	switch r.IntN(3) {
	case 0:
		f.free = func(operand, axis int) bool { return axis == 0 && batch(operand) }
	case 1:
		f.free = func(operand, axis int) bool { return axis > 0 || batch(operand) }
		if tr.space { // weights are known, and how much a stride leaves over can be cut off since opset 10
			f.free = func(operand, axis int) bool { return operand == 0 && (axis == 0 || axis > 1 && opset > 10) }
		}
	}
	if free := f.free; tr.known != nil {
		f.free = func(operand, axis int) bool { return free(operand, axis) && !tr.known(operand, axis) }
	}
	return f
}

// everything declares every size, where that is asked for.
func everything(is bool) func(operand, axis int) bool {
	return func(int, int) bool { return is }
}

// node adds the operands and the node to a graph.
func (tr trial) node(b *onnx.Builder, op string, f form) (in, out []onnx.Value) {
	in = make([]onnx.Value, len(tr.operands))
	for i, o := range tr.operands {
		name := fmt.Sprintf("x%d", i)
		switch {
		case o.absent():
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
	if tr.graph != nil {
		return in, []onnx.Value{tr.graph(b, in)}
	}
	return in, b.Ops(op, max(1, tr.outputs), tr.attrs, in...)
}

func (tr trial) read() []int {
	if tr.loss != nil {
		return tr.loss
	}
	all := make([]int, max(1, tr.outputs))
	for i := range all {
		all[i] = i
	}
	return all
}
