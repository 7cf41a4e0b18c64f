// Package recurrence writes LSTM, GRU and RNN out step by step, by operators that have gradients
// and that runtimes have in float64.
package recurrence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A Node is one that is to be written out. Its states are computed anew: the operators themselves
// return no gates.
type Node struct {
	*onnx.Builder
	Proto  *pb.NodeProto
	Info   *infer.Info
	Inputs []onnx.Value // of Proto, or what stands for them: numbers of the type that Float has
	Float  onnx.Type
	// Activation is an activation of that type without parameters, by the name of its operator:
	// Sigmoid, Tanh, Relu, Softsign or Softplus.
	Activation func(name string, x onnx.Value) onnx.Value
}

// A recurrence is a node whose attributes have been read.
type recurrence struct {
	Node
	hidden, steps, directions int
	activations               []activation // of all directions
}

// An operator is what a recurrence does at each step.
type operator struct {
	gates       int
	activations []string // of one direction, by default
	step        func(r recurrence, w weights, xw onnx.Value, s state) state
}

func operators(name string) operator {
	return map[string]operator{
		"LSTM": {4, []string{"Sigmoid", "Tanh", "Tanh"}, lstmStep},
		"GRU":  {3, []string{"Sigmoid", "Tanh"}, gruStep},
		"RNN":  {1, []string{"Tanh"}, rnnStep},
	}[name]
}

// Outputs are the node's outputs; an error says what has no steps that can be written.
func (n Node) Outputs() ([]onnx.Value, error) {
	o := operators(n.Proto.GetOpType())
	r, err := n.read(o)
	if err != nil {
		return nil, err
	}
	return r.unrolled(o), nil
}

func (n Node) x(i int) onnx.Value {
	if i < len(n.Inputs) {
		return n.Inputs[i]
	}
	return ""
}

// read reads the attributes of the node.
func (n Node) read(o operator) (recurrence, error) {
	direction := onnx.AttrString(n.Proto, "direction", "forward")
	r := recurrence{Node: n, hidden: onnx.AttrInt(n.Proto, "hidden_size", 0), steps: -1, directions: 1}
	if direction == "bidirectional" {
		r.directions = 2
	}
	var err error
	if r.activations, err = activations(n.Proto, slices.Repeat(o.activations, r.directions)); err != nil {
		return r, err
	}
	if s := n.shape(0); len(s) == 3 {
		r.steps = s[0]
	}
	if s := n.shape(2); r.hidden == 0 && len(s) == 3 {
		r.hidden = s[2]
	}
	switch {
	case r.steps > 1<<12:
		return r, fmt.Errorf("its %d steps are too many to be written out", r.steps)
	case r.steps < 1 || r.hidden < 1:
		return r, errors.New("the number of steps, the first axis of its input, is not fixed")
	case onnx.AttrInt(n.Proto, "layout", 0) != 0:
		return r, errors.New("layout 1 is not supported")
	case onnx.AttrInt(n.Proto, "input_forget", 0) != 0:
		return r, errors.New("input_forget is not supported")
	case len(r.activations) != r.directions*len(o.activations):
		return r, fmt.Errorf("it has %d activations, and needs %d", len(r.activations), r.directions*len(o.activations))
	}
	return r, nil
}

// shape is that of an input as it is in the node.
func (n Node) shape(i int) []int {
	if i < len(n.Proto.Input) {
		return n.Info.Shape(n.Proto.Input[i])
	}
	return nil
}

// weights are those of one direction: R transposed, hidden x gates hidden, the biases of both
// products, and what of the cell the gates of an LSTM see. All but r may be empty.
type weights struct {
	r, inputBias, stateBias, peephole onnx.Value
	activations                       []activation
}

// A state is what one step hands to the next: h, and of an LSTM the cell; n x hidden.
type state struct{ h, cell onnx.Value }

// unrolled are the node's outputs, computed step by step.
func (r recurrence) unrolled(o operator) []onnx.Value {
	var all, last, cells []onnx.Value
	for d := range r.directions {
		backward := d == 1 || onnx.AttrString(r.Proto, "direction", "forward") == "reverse"
		states := r.run(d, backward, o)
		list := make([]onnx.Value, r.steps)
		for t, s := range states {
			list[t] = r.Unsqueeze(r.kept(s.h, t), 0, 1)
		}
		end := states[r.steps-1]
		if backward {
			end = states[0]
		}
		all, last = append(all, r.Concat(0, list...)), append(last, r.Unsqueeze(end.h, 0))
		if end.cell != "" {
			cells = append(cells, r.Unsqueeze(end.cell, 0))
		}
	}
	out := []onnx.Value{r.Concat(1, all...), r.Concat(0, last...)}
	if cells != nil {
		out = append(out, r.Concat(0, cells...))
	}
	return out
}

// run is the states of one direction, in the order of time.
func (r recurrence) run(d int, backward bool, o operator) []state {
	w := r.weights(d, o.gates)
	xw := r.MatMul(r.x(0), r.Transpose(r.direction(1, d), 1, 0)) // steps x n x gates hidden
	if w.inputBias != "" {
		xw = r.Add(xw, w.inputBias)
	}
	inputs := r.splitInto(xw, 0, slices.Repeat([]int{1}, r.steps))
	s := state{h: r.initial(5, d), cell: r.initial(6, d)}
	states := make([]state, r.steps)
	for i := range r.steps {
		t := i
		if backward {
			t = r.steps - 1 - i
		}
		next := o.step(r, w, r.Squeeze(inputs[t], 0), s)
		s = state{h: r.held(next.h, s.h, t), cell: r.held(next.cell, s.cell, t)}
		states[t] = s
	}
	return states
}

// weights are the weights of a direction.
func (r recurrence) weights(d, gates int) weights {
	each := len(r.activations) / r.directions
	w := weights{r: r.Transpose(r.direction(2, d), 1, 0), activations: r.activations[d*each : (d+1)*each]}
	if r.x(3) != "" {
		both := r.splitInto(r.direction(3, d), 0, []int{gates * r.hidden, gates * r.hidden})
		w.inputBias, w.stateBias = both[0], both[1]
	}
	if r.x(7) != "" {
		w.peephole = r.direction(7, d)
	}
	return w
}

// direction is the part of an input that belongs to a direction.
func (r recurrence) direction(input, d int) onnx.Value {
	if r.directions == 1 {
		return r.Squeeze(r.x(input), 0)
	}
	return r.Gather(r.x(input), r.Int(d), 0)
}

// initial is a state before the first step: zero if the node does not say.
func (r recurrence) initial(input, d int) onnx.Value {
	switch {
	case r.x(input) != "":
		return r.direction(input, d)
	case input == 6 && r.Proto.GetOpType() != "LSTM":
		return ""
	}
	zero, shape := r.number(0), r.Concat(0, r.batch(), r.Ints(r.hidden))
	if r.Opset() < 8 {
		return r.Op("Tile", nil, r.Reshape(zero, 1, 1), shape)
	}
	return r.Expand(zero, shape)
}

// batch is the number of sequences, int64 of 1.
func (r recurrence) batch() onnx.Value {
	if s := r.shape(0); len(s) == 3 && s[1] >= 0 {
		return r.Ints(s[1])
	}
	return r.Gather(r.Shape(r.x(0)), r.Ints(1), 0)
}

// running tells the sequences that still go on at time t, n x 1; empty where all are as long as the
// input.
func (r recurrence) running(t int) onnx.Value {
	if r.x(4) == "" {
		return ""
	}
	return r.Unsqueeze(r.Cast(r.Op("Greater", nil, r.Cast(r.x(4), onnx.Float), r.Scalar(float32(t))), r.Float), 1)
}

// held is a state after time t: the new one, or the old where a sequence has ended.
func (r recurrence) held(now, before onnx.Value, t int) onnx.Value {
	on := r.running(t)
	if on == "" || now == "" {
		return now
	}
	return r.Add(before, r.Mul(on, r.Sub(now, before)))
}

// kept is what the node returns for time t: nothing where a sequence has ended.
func (r recurrence) kept(h onnx.Value, t int) onnx.Value {
	if on := r.running(t); on != "" {
		return r.Mul(h, on)
	}
	return h
}

// splitInto cuts x along an axis into parts of these sizes.
func (r recurrence) splitInto(x onnx.Value, axis int, sizes []int) []onnx.Value {
	if r.Opset() >= 13 {
		return r.Ops("Split", len(sizes), onnx.Attrs{"axis": axis}, x, r.Ints(sizes...))
	}
	return r.Ops("Split", len(sizes), onnx.Attrs{"axis": axis, "split": sizes}, x)
}

// gatesOf is the part of the gates that x and h make, before the activations: x W + b + h R + b.
func (r recurrence) gatesOf(w weights, gates int, xw, h onnx.Value) []onnx.Value {
	sum := r.Add(xw, r.ofState(w, h))
	return r.splitInto(sum, 1, slices.Repeat([]int{r.hidden}, gates))
}

// ofState is h R + b.
func (r recurrence) ofState(w weights, h onnx.Value) onnx.Value {
	product := r.MatMul(h, w.r)
	if w.stateBias != "" {
		product = r.Add(product, w.stateBias)
	}
	return product
}

// rnnStep: h = f(x W + h R + b)
func rnnStep(r recurrence, w weights, xw onnx.Value, s state) state {
	return state{h: r.activated(w.activations[0], r.Add(xw, r.ofState(w, s.h)))}
}

// lstmStep: c = f c + i g(...), h = o tanh(c). The gates are in the order input, output, forget,
// cell.
func lstmStep(r recurrence, w weights, xw onnx.Value, s state) state {
	gates := r.gatesOf(w, 4, xw, s.h)
	peephole := make([]onnx.Value, 3)
	if w.peephole != "" {
		peephole = r.splitInto(w.peephole, 0, slices.Repeat([]int{r.hidden}, 3))
	}
	gate := func(k int, cell onnx.Value) onnx.Value {
		sum := gates[k]
		if peephole[k] != "" {
			sum = r.Add(sum, r.Mul(peephole[k], cell))
		}
		return r.activated(w.activations[0], sum)
	}
	candidate := r.activated(w.activations[1], gates[3])
	cell := r.Add(r.Mul(gate(2, s.cell), s.cell), r.Mul(gate(0, s.cell), candidate))
	return state{h: r.Mul(gate(1, cell), r.function(w.activations[2], cell)), cell: cell}
}

// gruStep: h = (1 - z) g + z h, where g = tanh(x W + (r h) R + b), or tanh(x W + b + r (h R + b))
// if linear_before_reset is set. The gates are in the order update z, reset r, hidden g.
func gruStep(r recurrence, w weights, xw onnx.Value, s state) state {
	sizes := []int{r.hidden, r.hidden, r.hidden}
	x := r.splitInto(xw, 1, sizes)
	linear := r.splitInto(r.ofState(w, s.h), 1, sizes)
	update := r.activated(w.activations[0], r.Add(x[0], linear[0]))
	reset := r.activated(w.activations[0], r.Add(x[1], linear[1]))
	var inner onnx.Value
	if onnx.AttrInt(r.Proto, "linear_before_reset", 0) != 0 {
		inner = r.Mul(reset, linear[2])
	} else {
		inner = r.MatMul(r.Mul(reset, s.h), r.splitInto(w.r, 1, sizes)[2])
		if w.stateBias != "" {
			inner = r.Add(inner, r.splitInto(w.stateBias, 0, sizes)[2])
		}
	}
	g := r.activated(w.activations[1], r.Add(x[2], inner))
	return state{h: r.Add(g, r.Mul(update, r.Sub(s.h, g)))}
}
