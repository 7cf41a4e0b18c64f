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

// unary is the rule of an operator with a gradient of its first input only, f's; empty: zero.
func unary(f func(op *operation) onnx.Value) rule {
	return func(op *operation) { op.accumulate(0, func() onnx.Value { return f(op) }) }
}

// An operation is a node whose vector-Jacobian product is being written. Builder's methods add
// nodes, equal ones once. Others describe the node or add a few in the opset's form: if the comment
// describes a tensor ("mask is 1 where ..."), they return its name.
type operation struct {
	*onnx.Builder // names what it adds by the scope of the node: see scopeOf
	*tape
	node  *pb.NodeProto
	index int // of the node in tape.nodes; 0 in forward mode
}

func scopeOf(n *pb.NodeProto) string {
	if name := strings.Trim(n.GetName(), "/"); name != "" {
		return name
	}
	return n.GetOpType()
}

type ruleError struct{ error }

// fail ends the rule with an error that names the node. It does not return.
func (op *operation) fail(format string, args ...any) {
	panic(ruleError{fmt.Errorf("%s: %s", onnx.Label(op.node), fmt.Sprintf(format, args...))})
}

// apply stores a rule's error in tape.err. Rules assume well-formed nodes, as runtimes check: a
// wrong axis or a short list panics with an index out of range.
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

// dyForProduct is the first output's gradient, to be multiplied by v: it may still be unexpanded
// (tape.unexpanded) if v has the output's shape.
func (op *operation) dyForProduct(v onnx.Value) onnx.Value {
	shape, all := op.shape(v), op.broadcastInputs()
	if shape != nil && all != nil && slices.Equal(shape, all) && !slices.Contains(shape, -1) {
		return op.compactGradientOf(op.y(0))
	}
	return op.dy(0)
}

func (op *operation) wanted(i int) bool { return op.active[op.x(i)] }

// accumulate adds f's tensor, of input i's shape or empty for zero, if that gradient is wanted.
func (op *operation) accumulate(i int, f func() onnx.Value) {
	if op.wanted(i) {
		if g := f(); g != "" {
			op.tape.add(op.x(i), g)
		}
	}
}

// accumulateUnexpanded is accumulate for a term to be expanded later, with size 1 along those axes.
// keepsChannels: the second is not one.
func (op *operation) accumulateUnexpanded(i int, keepsChannels bool, f func() onnx.Value) {
	if op.wanted(i) {
		if g := f(); g != "" {
			op.tape.addUnexpanded(op.x(i), g, keepsChannels)
		}
	}
}

// The attributes of the node, or fallback; attrInts is nil.
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

// attrOrInput is a list that is an attribute in some opsets and input i in others; nil: absent.
// With an empty name it is always an input. known is false if the graph computes it.
func (op *operation) attrOrInput(name string, i int) (list []int, known bool) {
	if list := op.attrInts(name); list != nil {
		return list, true
	}
	if op.x(i) == "" {
		return nil, true
	}
	return op.info.Ints(string(op.x(i)))
}

func (op *operation) elementType(v onnx.Value) onnx.Type { return op.info.Type(string(v)) }

// shape is a tensor's shape before gradients were added, nil for an unknown rank. Free dimensions
// are negative: -1, or equal if always equal.
func (op *operation) shape(v onnx.Value) []int { return op.info.Shape(string(v)) }

// rank is the number of axes of a tensor. It fails where that is unknown.
func (op *operation) rank(v onnx.Value) int {
	s := op.shape(v)
	if s == nil {
		op.fail("the rank of tensor %q is not known before the graph runs", v)
	}
	return len(s)
}

// axisOf is the attribute axis counted from the front, or fallback.
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

func normalizeAxes(list []int, rank int) []int {
	list = slices.Clone(list)
	for i := range list {
		list[i] = normalizeAxis(list[i], rank)
	}
	return list
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

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

func (op *operation) scalarLike(v float64, like onnx.Value) onnx.Value {
	if op.elementType(like) == onnx.Double {
		raw := binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))
		return op.Initializer(&pb.TensorProto{DataType: new(int32(onnx.Double)), RawData: raw})
	}
	return op.Scalar(float32(v))
}

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
