package grad

import "github.com/noether-ml/noether/onnx"

// relu: dx = dy where y > 0. It reads its output rather than its input, so that a runtime can still
// fuse it with what made the input.
func relu(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		dy := c.dyBeside(c.x(0))
		if !c.blocked() {
			return c.Mul(dy, c.mask(c.greater(c.y(0), c.num(0))))
		}
		if c.sums[c.y(0)] != "" { // not one that has yet to be repeated
			dy = c.toBlocks(dy, c.y(0))
		}
		return c.inBlocks(c.Mul(dy, c.blockedMask()), dy)
	})
}
