package grad

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A rule adds the gradients of a node's inputs, given those of its outputs:
//
//	func mul(c *vjp) {
//		c.accumulate(0, func() onnx.Value { return c.unbroadcast(c.Mul(c.dy(0), c.x(1)), 0) })
//		c.accumulate(1, func() onnx.Value { return c.unbroadcast(c.Mul(c.dy(0), c.x(0)), 1) })
//	}
//
// accumulate calls its function only where that gradient is wanted.
type rule func(c *vjp)

// A vjp is the vector-Jacobian product of a node that is being written, with the builder that
// writes the gradient's nodes: the methods of onnx.Builder add nodes, the others ask about the node
// or add small groups of nodes in the form that the graph's operator set has for them. Equal nodes
// are written once.
type vjp struct {
	*onnx.Builder
	*tape
	node  *pb.NodeProto
	index int // of the node
}

// scopeOf is where the gradient's nodes are named: after the node.
func scopeOf(n *pb.NodeProto) string {
	if name := strings.Trim(n.GetName(), "/"); name != "" {
		return name
	}
	return n.GetOpType()
}

// fail stops the walk with an error that names the node.
func (c *vjp) fail(format string, args ...any) {
	if c.tape.err == nil {
		c.tape.err = fmt.Errorf("%s: %s", onnx.Label(c.node), fmt.Sprintf(format, args...))
	}
}

// x is the i-th input of the node, empty where it is absent.
func (c *vjp) x(i int) onnx.Value {
	if i < len(c.node.Input) {
		return onnx.Value(c.node.Input[i])
	}
	return ""
}

// y is the i-th output of the node, empty where it is absent.
func (c *vjp) y(i int) onnx.Value {
	if i < len(c.node.Output) {
		return onnx.Value(c.node.Output[i])
	}
	return ""
}

// dy is the gradient of the i-th output, empty where none flows to it.
func (c *vjp) dy(i int) onnx.Value { return c.gradientOf(c.y(i)) }

// dyBeside is the gradient of the first output for a product with v: where v has the shape of that
// output, the gradient may be one that has yet to be repeated to it.
func (c *vjp) dyBeside(v onnx.Value) onnx.Value {
	if equalShapes(c.shape(v), c.broadcastInputs()) {
		return c.compactGradientOf(c.y(0))
	}
	return c.dy(0)
}

// wanted reports whether the gradient of the i-th input is wanted.
func (c *vjp) wanted(i int) bool { return c.active[c.x(i)] }

// accumulate adds a term to the gradient of the i-th input where it is wanted; only then f is
// called. f returns a tensor of that input's shape, or nothing for zero.
func (c *vjp) accumulate(i int, f func() onnx.Value) {
	if !c.wanted(i) {
		return
	}
	if g := f(); g != "" && c.tape.err == nil {
		c.tape.add(c.x(i), g)
	}
}

// accumulateRepeated is give for a tensor that has as many axes as the input, some of size 1, along
// which it is repeated. channels says that the second is none of them.
func (c *vjp) accumulateRepeated(i int, channels bool, f func() onnx.Value) {
	if !c.wanted(i) {
		return
	}
	if g := f(); g != "" && c.tape.err == nil {
		c.tape.addRepeated(c.x(i), g, channels)
	}
}

// attr, attrFloat, attrInts and attrString are attributes of the node.
func (c *vjp) attr(name string, otherwise int) int { return onnx.AttrInt(c.node, name, otherwise) }

func (c *vjp) attrFloat(name string, otherwise float64) float64 {
	return float64(onnx.AttrFloat(c.node, name, float32(otherwise)))
}

func (c *vjp) attrInts(name string) []int { return onnx.AttrInts(c.node, name) }

func (c *vjp) attrString(name, otherwise string) string {
	return onnx.AttrString(c.node, name, otherwise)
}

// listOr is a list of integers that is an attribute in some operator sets and the i-th input in
// others: nil where it is not given, and ok is false where it is an input that is not known before
// the graph runs.
func (c *vjp) listOr(attribute string, i int) (list []int, ok bool) {
	if list := c.attrInts(attribute); list != nil {
		return list, true
	}
	if c.x(i) == "" {
		return nil, true
	}
	return c.info.Ints(string(c.x(i)))
}

// shape is the shape of a tensor of the graph as it was before gradients: nil if its rank is not
// known, and with a negative number for each free dimension, the same for those that are equal (-1
// for those about which nothing is known).
func (c *vjp) shape(v onnx.Value) []int { return c.info.Shape(string(v)) }

// rank is the number of axes of a tensor; where it is not known it fails.
func (c *vjp) rank(v onnx.Value) (int, bool) {
	s := c.shape(v)
	if s == nil {
		c.fail("the rank of tensor %q is not known before the graph runs", v)
	}
	return len(s), s != nil
}

// axis counts an axis from the front, given the rank.
func axis(a, rank int) int {
	if a < 0 {
		return a + rank
	}
	return a
}

// fixed reports whether every dimension is known.
func fixed(shape []int) bool {
	for _, d := range shape {
		if d < 0 {
			return false
		}
	}
	return shape != nil
}

// shapeOf is the shape of a tensor as an int64 tensor: a constant where it is fixed.
func (c *vjp) shapeOf(v onnx.Value) onnx.Value {
	if s := c.shape(v); fixed(s) {
		return c.Ints(s...)
	}
	return c.Shape(v)
}

// reshapeLike gives g, which has as many elements, the shape of v.
func (c *vjp) reshapeLike(g, v onnx.Value) onnx.Value {
	target := make([]int, len(c.shape(v)))
	free := 0
	for i, d := range c.shape(v) {
		switch {
		case d < 0:
			target[i] = -1
			free++
		case d == 0:
			free = 2 // 0 would mean: keep
		default:
			target[i] = d
		}
	}
	if c.shape(v) == nil || free > 1 {
		return c.ReshapeTo(g, c.Shape(v))
	}
	return c.Reshape(g, target...)
}

// number is a constant of rank 0 of the type that a tensor of the graph has.
func (c *vjp) number(v float64, like onnx.Value) onnx.Value {
	if c.info.Type(string(like)) == onnx.Double {
		raw := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
		return c.Initializer(&pb.TensorProto{DataType: int32p(onnx.Double), RawData: raw})
	}
	return c.Scalar(float32(v))
}

func int32p(t onnx.Type) *int32 {
	v := int32(t)
	return &v
}

// single reports whether a tensor holds float32.
func (c *vjp) single(v onnx.Value) bool { return c.info.Type(string(v)) == onnx.Float }

// filled is a tensor of one number, with the shape and type of a tensor of the graph.
func (c *vjp) filled(v float64, like onnx.Value) onnx.Value {
	one := c.number(v, like)
	shape := c.shape(like)
	switch {
	case shape != nil && len(shape) == 0:
		return one
	case c.Opset() < 8 && shape != nil:
		one = c.Reshape(one, slices.Repeat([]int{1}, len(shape))...)
	}
	return c.expandLike(one, like)
}
