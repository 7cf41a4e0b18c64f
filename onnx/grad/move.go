package grad

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// transpose puts the axes back.
func transpose(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		perm := c.attrInts("perm")
		if perm == nil { // reversed, and reversed again
			return c.Op("Transpose", nil, c.dy(0))
		}
		return c.Transpose(c.dy(0), inverse(perm)...)
	})
}

func inverse(perm []int) []int {
	back := make([]int, len(perm))
	for i, p := range perm {
		back[p] = i
	}
	return back
}

// concat hands each operand its part.
func concat(c *vjp) {
	rank, ok := c.rank(c.x(0))
	if !ok {
		return
	}
	at := axis(c.attr("axis", 1), rank)
	first := 0
	if joined, n := c.prefix(); n > 0 {
		c.tape.add(joined, c.part(0, n, at))
		first = n
	}
	for i := first; i < len(c.node.Input); i++ {
		c.accumulate(i, func() onnx.Value { return c.part(i, i+1, at) })
	}
}

// prefix is what an earlier Concat has made of the first n operands, if there is one. Their
// gradient goes there: in a network whose layers each read all those before, every layer would
// otherwise be cut out of every later one.
func (c *vjp) prefix() (joined onnx.Value, n int) {
	for n := len(c.node.Input) - 1; n > 1; n-- {
		if maker, ok := c.joins[joinOf(c.node, n)]; ok && maker < c.index {
			joined := onnx.Value(c.nodes[maker].Output[0])
			if c.active[joined] && !c.targets[joined] { // what is asked for is the gradient of those that read it
				return joined, n
			}
		}
	}
	return "", 0
}

// joinOf says what a Concat of the first n operands of a node would make.
func joinOf(n *pb.NodeProto, operands int) string {
	return fmt.Sprintf("%d %q", onnx.AttrInt(n, "axis", 1), n.Input[:operands])
}

// joinsOf are the first nodes that join some tensors, by what they join.
func joinsOf(nodes []*pb.NodeProto) map[string]int {
	joins := map[string]int{}
	for i, n := range nodes {
		if n.GetOpType() != "Concat" || len(n.Output) != 1 {
			continue
		}
		key := joinOf(n, len(n.Input))
		if _, ok := joins[key]; !ok {
			joins[key] = i
		}
	}
	return joins
}

// part is the part of dy that belongs to the operands of a Concat from i to the one before end.
func (c *vjp) part(i, end, at int) onnx.Value {
	if len(c.node.Input) == 1 {
		return c.dy(0)
	}
	sizes, known := make([]int, end), true
	for k := range end {
		sizes[k] = -1
		if s := c.shape(c.x(k)); len(s) > at {
			sizes[k] = s[at]
		}
		known = known && sizes[k] >= 0
	}
	if known {
		start := total(sizes[:i])
		return c.Slice(c.dy(0), at, start, start+total(sizes[i:]), 1)
	}
	if c.Opset() < 10 {
		c.fail("before opset 10, the sizes that it joins must be fixed")
		return ""
	}
	ends := []onnx.Value{c.Ints(0)}
	for k := range end {
		ends = append(ends, c.Add(ends[k], c.size(c.x(k), at)))
	}
	return c.Op("Slice", nil, c.dy(0), ends[i], ends[end], c.Ints(at))
}

func total(list []int) int {
	sum := 0
	for _, v := range list {
		sum += v
	}
	return sum
}

// size is the length of an axis of a tensor: int64 of one element.
func (c *vjp) size(v onnx.Value, axis int) onnx.Value {
	if s := c.shape(v); len(s) > axis && s[axis] >= 0 {
		return c.Ints(s[axis])
	}
	return c.Gather(c.Shape(v), c.Ints(axis), 0)
}

// split joins the gradients of the parts; that of a part which nobody uses is zero.
func split(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok {
			return ""
		}
		parts := make([]onnx.Value, len(c.node.Output))
		for i := range parts {
			if parts[i] = c.dy(i); parts[i] != "" {
				continue
			}
			y := c.y(i)
			if y == "" { // the part has no name
				c.fail("its output %d is left out: give it a name", i)
				return ""
			}
			parts[i] = c.filled(0, y)
		}
		return c.Concat(axis(c.attr("axis", 0), rank), parts...)
	})
}

func expand(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		to, ok := c.info.Ints(string(c.x(1)))
		if !ok {
			if s := c.shape(c.x(1)); len(s) == 1 && s[0] >= 0 {
				to = slices.Repeat([]int{-1}, s[0])
			}
		}
		if to == nil && !ok {
			return c.sumTo(c.dy(0), nil, c.x(0))
		}
		return c.sumTo(c.dy(0), broadcastShape(c.shape(c.x(0)), to), c.x(0))
	})
}

// tile adds up the copies: an axis of n elements, repeated r times, is one of r by n.
func tile(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		if !ok {
			return ""
		}
		axes := upTo(rank)
		for i := range axes {
			axes[i] *= 2
		}
		if rank == 0 {
			return c.dy(0)
		}
		sizes := c.Unsqueeze(c.shapeOf(c.x(0)), 1)
		split := c.Reshape(c.Concat(1, c.Unsqueeze(c.x(1), 1), sizes), -1)
		if repeats, ok := c.info.Ints(string(c.x(1))); ok && fixed(c.shape(c.x(0))) {
			split = c.Ints(interleave(repeats, c.shape(c.x(0)))...)
		}
		return c.ReduceSum(c.ReshapeTo(c.dy(0), split), false, axes...)
	})
}

func interleave(a, b []int) []int {
	var list []int
	for i := range a {
		list = append(list, a[i], b[i])
	}
	return list
}

// depthToSpace has as its inverse SpaceToDepth, which orders channels as the mode DCR does: block
// before channel. In the mode CRD they are exchanged.
func depthToSpace(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		block := c.attr("blocksize", 1)
		g := c.Op("SpaceToDepth", onnx.Attrs{"blocksize": block}, c.dy(0))
		if c.attrString("mode", "DCR") == "CRD" {
			channels := c.Div(c.size(c.x(0), 1), c.Ints(block*block))
			parted := c.Concat(0, c.Ints(0, block*block), channels, c.Ints(-1))
			if s := c.shape(c.x(0)); len(s) == 4 && s[1] >= 0 {
				parted = c.Ints(0, block*block, s[1]/(block*block), -1)
			}
			g = c.reshapeLike(c.Transpose(c.ReshapeTo(g, parted), 0, 2, 1, 3), c.x(0))
		}
		return g
	})
}

func spaceToDepth(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		return c.Op("DepthToSpace", onnx.Attrs{"blocksize": c.attr("blocksize", 1)}, c.dy(0))
	})
}

// cumSum sums from the other end.
func cumSum(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		attrs := onnx.Attrs{"exclusive": c.attr("exclusive", 0), "reverse": 1 - c.attr("reverse", 0)}
		return c.Op("CumSum", attrs, c.dy(0), c.x(1))
	})
}

// trilu keeps the same triangle.
func trilu(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		inputs := append([]onnx.Value{c.dy(0)}, valuesOf(c.node.Input[1:])...)
		return c.Op("Trilu", onnx.Attrs{"upper": c.attr("upper", 1)}, inputs...)
	})
}

func valuesOf(names []string) []onnx.Value {
	list := make([]onnx.Value, len(names))
	for i, name := range names {
		list[i] = onnx.Value(name)
	}
	return list
}
