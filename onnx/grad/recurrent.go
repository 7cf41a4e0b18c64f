package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A recurrence is an LSTM, a GRU or an RNN that is written out step by step, so that gradients flow through the steps:
// the operators themselves return no gates. It recomputes the states.
type recurrence struct {
	*call
	hidden, steps, directions int
	activations               []string // of all directions
}

// recurrent is the rule of such an operator, given a step and the names of its activations by default.
func recurrent(step func(r recurrence, w weights, xw onnx.Value, s state) state, activations ...string) rule {
	return func(c *call) {
		r, ok := c.recurrence(activations)
		if !ok {
			return
		}
		out := r.unrolled(step)
		var y, dy, by []onnx.Value
		for i := range c.node.Output {
			if c.y(i) != "" && c.dy(i) != "" {
				y, dy = append(y, out[i]), append(dy, c.dy(i))
			}
		}
		for i := range c.node.Input {
			if c.needs(i) && !slices.Contains(by, c.x(i)) {
				by = append(by, c.x(i))
			}
		}
		gradients, err := c.pullback(c.Builder, y, dy, by...)
		if err != nil {
			c.fail("%v", err)
			return
		}
		for k, v := range by {
			c.tape.add(v, gradients[k])
		}
	}
}

// recurrence reads the attributes of the node.
func (c *call) recurrence(activations []string) (recurrence, bool) {
	r := recurrence{call: c, hidden: c.attr("hidden_size", 0), steps: -1, directions: 1, activations: activations}
	if c.attrString("direction", "forward") == "bidirectional" {
		r.directions = 2
		r.activations = slices.Repeat(activations, 2)
	}
	if given := onnx.AttrStrings(c.node, "activations"); given != nil {
		r.activations = given
	}
	if s := c.shape(c.x(0)); len(s) == 3 {
		r.steps = s[0]
	}
	if s := c.shape(c.x(2)); r.hidden == 0 && len(s) == 3 {
		r.hidden = s[2]
	}
	switch {
	case r.steps > 1<<12:
		c.fail("gradients write its %d steps out, which are too many", r.steps)
	case r.steps < 1 || r.hidden < 1:
		c.fail("gradients need the number of steps, the first axis of its input, to be fixed")
	case c.attr("layout", 0) != 0:
		c.fail("gradients for layout 1 are not supported")
	case c.attr("input_forget", 0) != 0:
		c.fail("gradients for input_forget are not supported")
	case c.attrFloat("clip", 0) != 0:
		c.fail("gradients for clip are not supported")
	case len(r.activations) != r.directions*len(activations):
		c.fail("it has %d activations, and needs %d", len(r.activations), r.directions*len(activations))
	}
	for _, name := range r.activations {
		if !slices.Contains([]string{"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"}, name) {
			c.fail("gradients for the activation %s are not supported", name)
		}
	}
	return r, c.tape.err == nil
}

// weights are those of one direction: R transposed, hidden x gates hidden, the biases of both products, and what of the
// cell the gates of an LSTM see. All but r may be empty.
type weights struct {
	r, inputBias, stateBias, peephole onnx.Value
	activations                       []string
}

// A state is what one step hands to the next: h, and of an LSTM the cell; n x hidden.
type state struct{ h, cell onnx.Value }

// unrolled are the node's outputs, computed step by step.
func (r recurrence) unrolled(step func(recurrence, weights, onnx.Value, state) state) []onnx.Value {
	var all, last, cells []onnx.Value
	for d := range r.directions {
		backward := d == 1 || r.attrString("direction", "forward") == "reverse"
		states := r.run(d, backward, step)
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
func (r recurrence) run(d int, backward bool, step func(recurrence, weights, onnx.Value, state) state) []state {
	w := r.weights(d)
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
		next := step(r, w, r.Squeeze(inputs[t], 0), s)
		s = state{h: r.held(next.h, s.h, t), cell: r.held(next.cell, s.cell, t)}
		states[t] = s
	}
	return states
}

// weights are the weights of a direction.
func (r recurrence) weights(d int) weights {
	each := len(r.activations) / r.directions
	w := weights{r: r.Transpose(r.direction(2, d), 1, 0), activations: r.activations[d*each : (d+1)*each]}
	if r.call.x(3) != "" {
		gates := r.gates() * r.hidden
		both := r.splitInto(r.direction(3, d), 0, []int{gates, gates})
		w.inputBias, w.stateBias = both[0], both[1]
	}
	if r.call.x(7) != "" {
		w.peephole = r.direction(7, d)
	}
	return w
}

func (r recurrence) gates() int {
	return map[string]int{"LSTM": 4, "GRU": 3, "RNN": 1}[r.node.GetOpType()]
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
	case input == 6 && r.node.GetOpType() != "LSTM":
		return ""
	}
	zero := r.num(0)
	if r.Opset() < 8 {
		zero = r.Reshape(zero, 1, 1)
		return r.Op("Tile", nil, zero, r.Concat(0, r.size(r.x(0), 1), r.Ints(r.hidden)))
	}
	return r.Expand(zero, r.Concat(0, r.size(r.x(0), 1), r.Ints(r.hidden)))
}

// running tells the sequences that still go on at time t, n x 1; empty where all are as long as the input.
func (r recurrence) running(t int) onnx.Value {
	if r.x(4) == "" {
		return ""
	}
	return r.Unsqueeze(r.mask(r.greater(r.Cast(r.x(4), onnx.Float), r.Scalar(float32(t)))), 1)
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
func (c *call) splitInto(x onnx.Value, axis int, sizes []int) []onnx.Value {
	if c.Opset() >= 13 {
		return c.Ops("Split", len(sizes), onnx.Attrs{"axis": axis}, x, c.Ints(sizes...))
	}
	return c.Ops("Split", len(sizes), onnx.Attrs{"axis": axis, "split": sizes}, x)
}

// gatesOf is the part of the gates that x and h make, before the activations: x W + b + h R + b.
func (r recurrence) gatesOf(w weights, xw, h onnx.Value) []onnx.Value {
	sum := r.Add(xw, r.ofState(w, h))
	return r.splitInto(sum, 1, slices.Repeat([]int{r.hidden}, r.gates()))
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
	return state{h: r.Op(w.activations[0], nil, r.Add(xw, r.ofState(w, s.h)))}
}

// lstmStep: c = f c + i g(...), h = o tanh(c). The gates are in the order input, output, forget, cell.
func lstmStep(r recurrence, w weights, xw onnx.Value, s state) state {
	gates := r.gatesOf(w, xw, s.h)
	peephole := make([]onnx.Value, 3)
	if w.peephole != "" {
		peephole = r.splitInto(w.peephole, 0, slices.Repeat([]int{r.hidden}, 3))
	}
	gate := func(k int, cell onnx.Value) onnx.Value {
		sum := gates[k]
		if peephole[k] != "" {
			sum = r.Add(sum, r.Mul(peephole[k], cell))
		}
		return r.Op(w.activations[0], nil, sum)
	}
	candidate := r.Op(w.activations[1], nil, gates[3])
	cell := r.Add(r.Mul(gate(2, s.cell), s.cell), r.Mul(gate(0, s.cell), candidate))
	return state{h: r.Mul(gate(1, cell), r.Op(w.activations[2], nil, cell)), cell: cell}
}

// gruStep: h = (1 - z) g + z h, where g = tanh(x W + (r h) R + b), or tanh(x W + b + r (h R + b)) if linear_before_reset
// is set. The gates are in the order update z, reset r, hidden g.
func gruStep(r recurrence, w weights, xw onnx.Value, s state) state {
	sizes := []int{r.hidden, r.hidden, r.hidden}
	x := r.splitInto(xw, 1, sizes)
	linear := r.splitInto(r.ofState(w, s.h), 1, sizes)
	update := r.Op(w.activations[0], nil, r.Add(x[0], linear[0]))
	reset := r.Op(w.activations[0], nil, r.Add(x[1], linear[1]))
	var inner onnx.Value
	if r.attr("linear_before_reset", 0) != 0 {
		inner = r.Mul(reset, linear[2])
	} else {
		inner = r.MatMul(r.Mul(reset, s.h), r.splitInto(w.r, 1, sizes)[2])
		if w.stateBias != "" {
			inner = r.Add(inner, r.splitInto(w.stateBias, 0, sizes)[2])
		}
	}
	g := r.Op(w.activations[1], nil, r.Add(x[2], inner))
	return state{h: r.Add(g, r.Mul(update, r.Sub(s.h, g)))}
}
