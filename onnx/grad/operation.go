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
//	func mul(op *operation) { // y = A B: dA = dy B, dB = dy A
//		op.accumulate(0, func() onnx.Value { return op.unbroadcast(op.Mul(op.dy(0), op.x(1)), 0) })
//		op.accumulate(1, func() onnx.Value { return op.unbroadcast(op.Mul(op.dy(0), op.x(0)), 1) })
//	}
//
// accumulate calls its function only if that gradient is wanted.
type rule func(op *operation)

// unary returns the rule of an operator whose first input alone has a gradient. f writes that
// gradient; an empty value means zero.
func unary(f func(op *operation) onnx.Value) rule {
	return func(op *operation) { op.accumulate(0, func() onnx.Value { return f(op) }) }
}

// An operation is a node whose vector-Jacobian product is being written. The methods of
// onnx.Builder add nodes to the graph; equal nodes are added once. The other methods describe the
// node, or add a few nodes in the form that the graph's operator set has for them. A method whose
// comment describes a tensor ("mask is 1 where ...") adds the nodes that compute this tensor, and
// returns its name.
type operation struct {
	*onnx.Builder // names what it adds by the scope of the node: see scopeOf
	*tape
	node  *pb.NodeProto
	index int // of the node in tape.nodes; 0 in forward mode
}

// scopeOf is the prefix of the names of the gradient's nodes: the name of the node, or its
// operator.
func scopeOf(n *pb.NodeProto) string {
	if name := strings.Trim(n.GetName(), "/"); name != "" {
		return name
	}
	return n.GetOpType()
}

// A ruleError is the panic value of fail.
type ruleError struct{ error }

// fail ends the rule with an error that names the node. It does not return.
func (op *operation) fail(format string, args ...any) {
	panic(ruleError{fmt.Errorf("%s: %s", onnx.Label(op.node), fmt.Sprintf(format, args...))})
}

// apply applies a rule, and stores its error in tape.err. Rules assume a well-formed node, as a
// runtime checks when it loads the model. With an axis that does not exist, or a list that is too
// short, they panic with an index out of range.
func (op *operation) apply(r rule) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ruleError:
			op.tape.err = e.error
		default:
			op.tape.err = fmt.Errorf("%s: malformed node: check its axes, lists and shapes (%v)", onnx.Label(op.node), e)
		}
	}()
	r(op)
}

// x is the i-th input of the node, empty where it is absent.
func (op *operation) x(i int) onnx.Value {
	if i < len(op.node.Input) {
		return onnx.Value(op.node.Input[i])
	}
	return ""
}

// y is the i-th output of the node, empty where it is absent.
func (op *operation) y(i int) onnx.Value {
	if i < len(op.node.Output) {
		return onnx.Value(op.node.Output[i])
	}
	return ""
}

// inputs are the indices of the inputs that are present.
func (op *operation) inputs() []int {
	var list []int
	for i, name := range op.node.Input {
		if name != "" {
			list = append(list, i)
		}
	}
	return list
}

// firstOutput is the first output that is present: recurrent nodes may leave out those before it.
func (op *operation) firstOutput() onnx.Value {
	for _, name := range op.node.Output {
		if name != "" {
			return onnx.Value(name)
		}
	}
	return ""
}

// dy is the gradient of the i-th output, empty where none flows to it.
func (op *operation) dy(i int) onnx.Value { return op.gradientOf(op.y(i)) }

// dyForProduct is the gradient of the first output, for a caller that multiplies it by v. If v has
// the shape of that output, the gradient may be one that is not expanded yet (see
// tape.unexpanded), since the multiplication broadcasts it.
func (op *operation) dyForProduct(v onnx.Value) onnx.Value {
	if equalShapes(op.shape(v), op.broadcastInputs()) {
		return op.compactGradientOf(op.y(0))
	}
	return op.dy(0)
}

// wanted reports whether the gradient of the i-th input is wanted.
func (op *operation) wanted(i int) bool { return op.active[op.x(i)] }

// accumulate adds a term to the gradient of the i-th input where it is wanted; only then f is
// called. f returns a tensor of that input's shape, or an empty value for zero.
func (op *operation) accumulate(i int, f func() onnx.Value) {
	if op.wanted(i) {
		if g := f(); g != "" {
			op.tape.add(op.x(i), g)
		}
	}
}

// accumulateUnexpanded is accumulate for a term that is expanded later. The term has as many axes
// as the input, with size 1 along the axes still to be expanded. keepsChannels: the channel axis
// (the second) is not one of them.
func (op *operation) accumulateUnexpanded(i int, keepsChannels bool, f func() onnx.Value) {
	if op.wanted(i) {
		if g := f(); g != "" {
			op.tape.addUnexpanded(op.x(i), g, keepsChannels)
		}
	}
}

// attr, attrFloat, attrInts and attrString are attributes of the node. Where it lacks the
// attribute, they are fallback, and attrInts is nil.
func (op *operation) attr(name string, fallback int) int {
	return onnx.AttrInt(op.node, name, fallback)
}

func (op *operation) attrFloat(name string, fallback float64) float64 {
	return float64(onnx.AttrFloat(op.node, name, float32(fallback)))
}

func (op *operation) attrInts(name string) []int { return onnx.AttrInts(op.node, name) }

func (op *operation) attrString(name, fallback string) string {
	return onnx.AttrString(op.node, name, fallback)
}

// attrOrInput is a list of integers that is an attribute in some operator sets and the i-th input
// in others, nil where it is absent. An empty name stands for a list that is never an attribute.
// known is false where it is an input that is computed when the graph runs.
func (op *operation) attrOrInput(name string, i int) (list []int, known bool) {
	if list := op.attrInts(name); list != nil {
		return list, true
	}
	if op.x(i) == "" {
		return nil, true
	}
	return op.info.Ints(string(op.x(i)))
}

// elementType is the element type of a tensor.
func (op *operation) elementType(v onnx.Value) onnx.Type { return op.info.Type(string(v)) }

// shape is the shape of a tensor of the graph before gradients were added, nil where the rank is
// unknown. Free dimensions are negative: -1 where nothing is known, and equal numbers for
// dimensions that are always equal.
func (op *operation) shape(v onnx.Value) []int { return op.info.Shape(string(v)) }

// rank is the number of axes of a tensor. It fails where that is unknown.
func (op *operation) rank(v onnx.Value) int {
	s := op.shape(v)
	if s == nil {
		op.fail("the rank of tensor %q is not known before the graph runs", v)
	}
	return len(s)
}

// axisOf is the attribute axis, counted from the front of a tensor of this rank. fallback is its
// default.
func (op *operation) axisOf(fallback, rank int) int {
	return normalizeAxis(op.attr("axis", fallback), rank)
}

// normalizeAxis counts an axis from the front, given the rank.
func normalizeAxis(a, rank int) int {
	if a < 0 {
		return a + rank
	}
	return a
}

// normalizeAxes counts each axis of a list from the front, given the rank.
func normalizeAxes(list []int, rank int) []int {
	list = slices.Clone(list)
	for i := range list {
		list[i] = normalizeAxis(list[i], rank)
	}
	return list
}

// upTo returns 0, 1, ..., n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// isFixed reports whether the rank and all dimensions are known.
func isFixed(shape []int) bool {
	return shape != nil && !slices.ContainsFunc(shape, func(d int) bool { return d < 0 })
}

// shapeOf is the shape of a tensor as an int64 vector: a constant where it is fixed.
func (op *operation) shapeOf(v onnx.Value) onnx.Value {
	if s := op.shape(v); isFixed(s) {
		return op.Ints(s...)
	}
	return op.Shape(v)
}

// size is the length of an axis of a tensor, an int64 vector of one element.
func (op *operation) size(v onnx.Value, axis int) onnx.Value {
	if s := op.shape(v); len(s) > axis && s[axis] >= 0 {
		return op.Ints(s[axis])
	}
	return op.Gather(op.Shape(v), op.Ints(axis), 0)
}

// reshapeLike reshapes g, which has as many elements as v, to the shape of v.
func (op *operation) reshapeLike(g, v onnx.Value) onnx.Value {
	target := slices.Clone(op.shape(v))
	free := 0 // sizes that Reshape cannot get as constants; it infers one
	for i, d := range target {
		switch {
		case d < 0:
			target[i] = -1
			free++
		case d == 0:
			free = 2 // as a constant, 0 would stand for the size of g
		}
	}
	if op.shape(v) == nil || free > 1 {
		return op.ReshapeTo(g, op.Shape(v))
	}
	return op.Reshape(g, target...)
}

// scalarLike returns a constant of rank 0 with the element type of like.
func (op *operation) scalarLike(v float64, like onnx.Value) onnx.Value {
	if op.elementType(like) == onnx.Double {
		raw := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
		return op.Initializer(&pb.TensorProto{DataType: new(int32(onnx.Double)), RawData: raw})
	}
	return op.Scalar(float32(v))
}

// filled is a tensor of one repeated number, with the shape and type of like, a tensor of the
// graph.
func (op *operation) filled(v float64, like onnx.Value) onnx.Value {
	number := op.scalarLike(v, like)
	shape := op.shape(like)
	switch {
	case shape != nil && len(shape) == 0:
		return number
	case op.Opset() < 8 && shape != nil:
		number = op.Reshape(number, slices.Repeat([]int{1}, len(shape))...)
	}
	return op.expandLike(number, like)
}
