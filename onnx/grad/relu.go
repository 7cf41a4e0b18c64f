package grad

import (
	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
)

// relu: dx = dy where y > 0. It reads its output rather than its input, so that a runtime can still fuse it with what
// made the input.
func relu(c *call) {
	c.give(0, func() onnx.Value {
		if c.chosen[string(c.y(0))] {
			return c.Node(kernels.Domain, kernels.ReluGradient, 1, nil, c.y(0), c.dy(0))[0]
		}
		dy := c.dyBeside(c.x(0))
		if c.fused && c.single(c.y(0)) && c.sums[c.y(0)] != "" { // not one that has yet to be repeated
			return c.Node(kernels.Domain, kernels.ReluGradient, 1, nil, c.y(0), dy)[0]
		}
		if !c.blocked() {
			return c.Mul(dy, c.mask(c.greater(c.y(0), c.num(0))))
		}
		if c.sums[c.y(0)] != "" { // not one that has yet to be repeated
			dy = c.toBlocks(dy, c.y(0))
		}
		return c.inBlocks(c.Mul(dy, c.blockedMask()), dy)
	})
}
