// Package recurrence unrolls LSTM, GRU and RNN nodes: it writes what a node computes as operators
// for each time step. Package grad can differentiate these operators.
package recurrence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

const maxSteps = 1 << 12

type recurrence struct {
	*onnx.Builder
	node              *pb.NodeProto
	info              *infer.Info // types and shapes that are known before a run
	float             onnx.Type   // element type of the states
	hidden, steps     int         // size of the hidden state, number of time steps
	backward, forward bool        // directions that the node computes
	// activation functions of all directions, one direction after the other.
	activations []activation
}

type cell struct {
	gates       int      // number of gates, each with its part of the weights
	activations []string // names of the default activation functions of one direction
	// step adds the nodes of one step and returns the state after it. xw is x W with the input
	// bias: batch x (gates * hidden).
	step func(r recurrence, w weights, xw onnx.Value, s state) state
}

func cellOf(op string) cell {
	return map[string]cell{
		"LSTM": {4, []string{"Sigmoid", "Tanh", "Tanh"}, lstmStep},
		"GRU":  {3, []string{"Sigmoid", "Tanh"}, gruStep},
		"RNN":  {1, []string{"Tanh"}, rnnStep},
	}[op]
}

// Unroll adds the nodes of all time steps and returns tensors that equal the node's outputs:
// gradients need the gates of each step. The node itself stays. More than maxSteps, a number that
// is not fixed and unsupported attributes are errors.
func Unroll(b *onnx.Builder, node *pb.NodeProto, info *infer.Info) ([]onnx.Value, error) {
	r, err := read(b, node, info)
	if err != nil {
		return nil, err
	}
	return r.unroll(), nil
}

func read(b *onnx.Builder, node *pb.NodeProto, info *infer.Info) (recurrence, error) {
	direction := onnx.AttrString(node, "direction", "forward")
	r := recurrence{
		Builder: b, node: node, info: info, hidden: onnx.AttrInt(node, "hidden_size", 0), steps: -1,
		forward: direction != "reverse", backward: direction == "reverse" || direction == "bidirectional",
	}
	r.float = info.Type(string(r.x(0)))
	defaults := slices.Repeat(cellOf(node.GetOpType()).activations, r.directions())
	var err error
	if r.activations, err = activations(node, defaults); err != nil {
		return r, err
	}
	if s := r.shape(0); len(s) == 3 {
		r.steps = s[0]
	}
	if s := r.shape(2); r.hidden == 0 && len(s) == 3 {
		r.hidden = s[2]
	}
	switch {
	case onnx.AttrInt(node, "layout", 0) != 0:
		return r, errors.New("layout 1 is not supported") // with the batch as the first axis
	case r.steps > maxSteps:
		return r, fmt.Errorf("%d time steps are more than the limit of %d", r.steps, maxSteps)
	case r.steps < 1:
		return r, errors.New("the sequence length, the first axis of its input, is not fixed")
	case r.hidden < 1:
		return r, errors.New("its hidden size is not known")
	case onnx.AttrInt(node, "input_forget", 0) != 0:
		return r, errors.New("input_forget is not supported")
	case len(r.activations) != len(defaults):
		return r, fmt.Errorf("it has %d activations, and needs %d", len(r.activations), len(defaults))
	}
	return r, nil
}

// x is the i-th input or empty: 0 the sequences, 1 and 2 the weights W and R, 3 the biases, 4 the
// lengths, 5 and 6 the initial states, 7 the peepholes.
func (r recurrence) x(i int) onnx.Value {
	if i < len(r.node.Input) {
		return onnx.Value(r.node.Input[i])
	}
	return ""
}

func (r recurrence) shape(i int) []int { return r.info.Shape(string(r.x(i))) }

func (r recurrence) directions() int {
	if r.forward && r.backward {
		return 2
	}
	return 1
}

// weights are the parameters of one direction, with the letters of ONNX; absent biases and
// peepholes are empty.
type weights struct {
	r                     onnx.Value // recurrent weights R, transposed: hidden x (gates * hidden)
	inputBias, hiddenBias onnx.Value // gates * hidden
	// P, 3 * hidden: weights from an LSTM's cell state to its gates.
	peephole    onnx.Value
	activations []activation // in the order of the defaults in cellOf
}

// A state is passed from step to step: h and, for an LSTM, the cell state c, batch x hidden.
type state struct{ h, c onnx.Value }

// unroll adds the nodes and returns the outputs Y, Y_h and, for an LSTM, Y_c.
func (r recurrence) unroll() []onnx.Value {
	// Of each direction: all hidden states, the last one, the last cell state.
	var all, last, cells []onnx.Value
	for d := range r.directions() {
		backward := d == 1 || !r.forward
		states := r.run(d, backward)
		list := make([]onnx.Value, r.steps)
		for t, s := range states {
			list[t] = r.Unsqueeze(r.zeroAfterEnd(s.h, t), 0, 1)
		}
		end := states[r.steps-1]
		if backward {
			end = states[0]
		}
		all, last = append(all, r.Concat(0, list...)), append(last, r.Unsqueeze(end.h, 0))
		if end.c != "" {
			cells = append(cells, r.Unsqueeze(end.c, 0))
		}
	}
	out := []onnx.Value{r.Concat(1, all...), r.Concat(0, last...)}
	if cells != nil {
		out = append(out, r.Concat(0, cells...))
	}
	return out
}

// run adds the nodes of direction d and returns its states in the order of time.
func (r recurrence) run(d int, backward bool) []state {
	op := cellOf(r.node.GetOpType())
	w := r.weights(d, op.gates)
	xw := r.MatMul(r.x(0), r.Transpose(r.direction(1, d), 1, 0)) // steps x batch x (gates * hidden)
	if w.inputBias != "" {
		xw = r.Add(xw, w.inputBias)
	}
	inputs := r.split(xw, 0, slices.Repeat([]int{1}, r.steps))
	s := state{h: r.initial(5, d), c: r.initial(6, d)}
	states := make([]state, r.steps)
	for i := range r.steps {
		t := i
		if backward {
			t = r.steps - 1 - i
		}
		next := op.step(r, w, r.Squeeze(inputs[t], 0), s)
		s = state{h: r.keepAfterEnd(next.h, s.h, t), c: r.keepAfterEnd(next.c, s.c, t)}
		states[t] = s
	}
	return states
}

func (r recurrence) weights(d, gates int) weights {
	each := len(r.activations) / r.directions()
	w := weights{r: r.Transpose(r.direction(2, d), 1, 0), activations: r.activations[d*each : (d+1)*each]}
	if r.x(3) != "" {
		both := r.split(r.direction(3, d), 0, []int{gates * r.hidden, gates * r.hidden})
		w.inputBias, w.hiddenBias = both[0], both[1]
	}
	if r.x(7) != "" {
		w.peephole = r.direction(7, d)
	}
	return w
}

func (r recurrence) direction(i, d int) onnx.Value {
	if r.directions() == 1 {
		return r.Squeeze(r.x(i), 0)
	}
	return r.Gather(r.x(i), r.Int(d), 0)
}

// initial returns h (input 5) or c (input 6) of direction d before the first step: zero if the
// input is missing, empty for a c that the operator lacks.
func (r recurrence) initial(input, d int) onnx.Value {
	switch {
	case r.x(input) != "":
		return r.direction(input, d)
	case input == 6 && r.node.GetOpType() != "LSTM":
		return ""
	}
	zero, shape := r.number(0), r.Concat(0, r.batch(), r.Ints(r.hidden))
	if r.Opset() < 8 {
		return r.Op("Tile", nil, r.Reshape(zero, 1, 1), shape)
	}
	return r.Expand(zero, shape)
}

// batch returns the batch size, an int64 vector of one element.
func (r recurrence) batch() onnx.Value {
	if s := r.shape(0); len(s) == 3 && s[1] >= 0 {
		return r.Ints(s[1])
	}
	return r.Gather(r.Shape(r.x(0)), r.Ints(1), 0)
}

// mask is batch x 1: 1 for sequences longer than t, else 0; empty without lengths.
func (r recurrence) mask(t int) onnx.Value {
	if r.x(4) == "" {
		return ""
	}
	return r.Unsqueeze(r.Cast(r.Op("Greater", nil, r.Cast(r.x(4), onnx.Float), r.Scalar(float32(t))), r.float), 1)
}

// keepAfterEnd returns the new state at time t or, for sequences that have ended, the old one.
func (r recurrence) keepAfterEnd(next, old onnx.Value, t int) onnx.Value {
	mask := r.mask(t)
	if mask == "" || next == "" {
		return next
	}
	return r.Add(old, r.Mul(mask, r.Sub(next, old)))
}

// zeroAfterEnd returns h at time t or, for sequences that have ended, zero.
func (r recurrence) zeroAfterEnd(h onnx.Value, t int) onnx.Value {
	if mask := r.mask(t); mask != "" {
		return r.Mul(h, mask)
	}
	return h
}

func (r recurrence) split(x onnx.Value, axis int, sizes []int) []onnx.Value {
	if r.Opset() >= 13 {
		return r.Ops("Split", len(sizes), onnx.Attrs{"axis": axis}, x, r.Ints(sizes...))
	}
	return r.Ops("Split", len(sizes), onnx.Attrs{"axis": axis, "split": sizes}, x)
}

// splitGates cuts x along an axis into one part of size hidden for each of n gates.
func (r recurrence) splitGates(x onnx.Value, axis, n int) []onnx.Value {
	return r.split(x, axis, slices.Repeat([]int{r.hidden}, n))
}

func (r recurrence) fromHidden(w weights, h onnx.Value) onnx.Value {
	product := r.MatMul(h, w.r)
	if w.hiddenBias != "" {
		product = r.Add(product, w.hiddenBias)
	}
	return product
}

// The steps. h, c and h', c' are the states before and after a step; x W includes the input bias,
// and b is the hidden bias.

// rnnStep: h' = f(x W + h R + b), with the activation function f
func rnnStep(r recurrence, w weights, xw onnx.Value, s state) state {
	return state{h: r.clipAndActivate(w.activations[0], r.Add(xw, r.fromHidden(w, s.h)))}
}

// lstmStep: c' = f c + i g, h' = o tanh(c'), with the gates in the order input i, output o, forget
// f and cell g. The peephole weights p add p c to i and f, and p c' to o.
func lstmStep(r recurrence, w weights, xw onnx.Value, s state) state {
	gates := r.splitGates(r.Add(xw, r.fromHidden(w, s.h)), 1, 4)
	peephole := make([]onnx.Value, 3)
	if w.peephole != "" {
		peephole = r.splitGates(w.peephole, 0, 3)
	}
	gate := func(k int, c onnx.Value) onnx.Value {
		sum := gates[k]
		if peephole[k] != "" {
			sum = r.Add(sum, r.Mul(peephole[k], c))
		}
		return r.clipAndActivate(w.activations[0], sum)
	}
	g := r.clipAndActivate(w.activations[1], gates[3])
	c := r.Add(r.Mul(gate(2, s.c), s.c), r.Mul(gate(0, s.c), g))
	return state{h: r.Mul(gate(1, c), r.activate(w.activations[2], c)), c: c}
}

// gruStep: h' = (1 - z) g + z h, with the gates in the order update z, reset r and hidden g. Here g
// = tanh(x W + (r h) R + b), or tanh(x W + b + r (h R + b)) if linear_before_reset is set.
func gruStep(r recurrence, w weights, xw onnx.Value, s state) state {
	x := r.splitGates(xw, 1, 3)
	linear := r.splitGates(r.fromHidden(w, s.h), 1, 3)
	update := r.clipAndActivate(w.activations[0], r.Add(x[0], linear[0]))
	reset := r.clipAndActivate(w.activations[0], r.Add(x[1], linear[1]))
	var inner onnx.Value
	if onnx.AttrInt(r.node, "linear_before_reset", 0) != 0 {
		inner = r.Mul(reset, linear[2])
	} else {
		inner = r.MatMul(r.Mul(reset, s.h), r.splitGates(w.r, 1, 3)[2])
		if w.hiddenBias != "" {
			inner = r.Add(inner, r.splitGates(w.hiddenBias, 0, 3)[2])
		}
	}
	g := r.clipAndActivate(w.activations[1], r.Add(x[2], inner))
	return state{h: r.Add(g, r.Mul(update, r.Sub(s.h, g)))}
}
