package grad

import "github.com/noether-ml/noether/onnx"

// transpose puts the axes back.
func transpose(c *call) {
	c.give(0, func() onnx.Value {
		perm := c.attrInts("perm")
		if perm == nil { // reversed, and reversed again
			return c.Op("Transpose", nil, c.dy(0))
		}
		back := make([]int, len(perm))
		for i, p := range perm {
			back[p] = i
		}
		return c.Transpose(c.dy(0), back...)
	})
}
