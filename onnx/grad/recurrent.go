package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/recurrence"
)

// recurrent unrolls LSTM, GRU and RNN into time steps, by shapes in op.info, and differentiates
// them.
func recurrent(op *operation) {
	out, err := recurrence.Unroll(op.Builder, op.node, op.info)
	if err != nil {
		op.fail("it cannot be unrolled for its gradients: %v", err)
	}
	var y, dy, by []onnx.Value
	for i := range op.node.Output {
		if op.y(i) != "" && op.dy(i) != "" {
			y, dy = append(y, out[i]), append(dy, op.dy(i))
		}
	}
	for i := range op.node.Input {
		if op.wanted(i) && !slices.Contains(by, op.x(i)) {
			by = append(by, op.x(i))
		}
	}
	gradients, err := op.pullback(op.Builder, y, dy, by...)
	if err != nil {
		op.fail("%v", err)
	}
	for k, v := range by {
		op.tape.add(v, gradients[k])
	}
}
