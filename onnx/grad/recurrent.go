package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/recurrence"
)

// recurrent is the rule of LSTM, GRU and RNN. It writes the node out step by step and
// differentiates the steps.
func recurrent(c *vjp) {
	out, err := recurrence.Unroll(c.Builder, c.node, c.info)
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
