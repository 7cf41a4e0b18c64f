package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/recurrence"
)

// recurrent writes the operator out step by step, so that gradients flow through the steps.
func recurrent(c *vjp) {
	inputs := make([]onnx.Value, len(c.node.Input))
	for i := range inputs {
		inputs[i] = c.x(i)
	}
	out, err := recurrence.Node{
		Builder: c.Builder, Proto: c.node, Info: c.info, Inputs: inputs, Float: c.info.Type(string(c.x(0))),
		Activation: func(name string, x onnx.Value) onnx.Value { return c.Op(name, nil, x) },
	}.Outputs()
	if err != nil {
		c.fail("gradients need it written out step by step: %v", err)
		return
	}
	var y, dy, by []onnx.Value
	for i := range c.node.Output {
		if c.y(i) != "" && c.dy(i) != "" {
			y, dy = append(y, out[i]), append(dy, c.dy(i))
		}
	}
	for i := range c.node.Input {
		if c.wanted(i) && !slices.Contains(by, c.x(i)) {
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
