package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// unbroadcast sums g, of the broadcast shape, to the shape of input i.
func (op *operation) unbroadcast(g onnx.Value, i int) onnx.Value {
	return op.sumTo(g, op.broadcastInputs(), op.x(i))
}

func (op *operation) broadcastInputs() []int {
	var shapes [][]int
	for _, k := range op.inputs() {
		shapes = append(shapes, op.shape(op.x(k)))
	}
	return broadcastShape(shapes...)
}

// broadcastShape returns the common shape: nil for unknown ranks, -1 for dimensions. A free
// dimension may be 1, so two different ones are unknown.
func broadcastShape(shapes ...[]int) []int {
	rank := 0
	for _, s := range shapes {
		if s == nil {
			return nil
		}
		rank = max(rank, len(s))
	}
	shape := slices.Repeat([]int{1}, rank)
	for _, s := range shapes {
		for k, d := range s {
			at := &shape[rank-len(s)+k]
			switch {
			case d == *at || d == 1 || *at > 1 && d < 0:
			case *at == 1 || d >= 0:
				*at = d
			default:
				*at = -1
			}
		}
	}
	return shape
}

// sumTo sums g, of shape from, over broadcast axes to the shape of v.
func (op *operation) sumTo(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	to := op.shape(v)
	if to == nil || from == nil {
		return op.sumToRuntime(g, from, v)
	}
	lead := len(from) - len(to)
	var repeated, leading []int
	for k := range from {
		switch {
		case k < lead:
			repeated, leading = append(repeated, k), append(leading, k)
		case to[k-lead] == from[k] && from[k] != -1:
		case to[k-lead] == 1:
			repeated = append(repeated, k)
		case to[k-lead] < 0:
			return op.sumToRuntime(g, from, v) // it may be 1 or not
		}
	}
	switch {
	case len(repeated) == 0:
		return g
	case len(repeated) == len(leading):
		return op.ReduceSum(g, false, leading...)
	case len(leading) == 0:
		return op.ReduceSum(g, true, repeated...)
	case len(repeated) == len(from) && len(to) == 1 && to[0] == 1:
		return op.Reshape(op.ReduceSum(g, false), 1)
	}
	return op.reshapeLike(op.ReduceSum(g, false, repeated...), v)
}

func (op *operation) sumToRuntime(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	if op.Opset() < 13 { // the axes of ReduceSum are an attribute
		return op.sumByRatio(g, from, v)
	}
	sizes := op.Shape(v)
	if to := op.shape(v); from != nil && to != nil {
		if lead := len(from) - len(to); lead > 0 {
			g = op.ReduceSum(g, false, upTo(lead)...)
		}
		return op.sumOverOnes(g, sizes)
	}
	shape := op.Shape(g)
	lead := op.Sub(op.Op("Size", nil, shape), op.Op("Size", nil, sizes))
	ones := op.Expand(op.Int(1), op.Unsqueeze(lead, 0))
	return op.ReshapeTo(op.sumOverOnes(g, op.Concat(0, ones, sizes)), sizes)
}

// sumOverOnes sums g over the axes whose element of sizes is 1, and keeps these axes.
func (op *operation) sumOverOnes(g, sizes onnx.Value) onnx.Value {
	axes := op.Squeeze(op.Op("NonZero", nil, op.equalInts(sizes, op.Int(1))), 0)
	return op.Op("ReduceSum", onnx.Attrs{"keepdims": 1, "noop_with_empty_axes": 1}, g, axes)
}

// sumByRatio is sumToRuntime before opset 13: m elements from n are reshaped to m/n x n, and summed
// over the first.
func (op *operation) sumByRatio(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	to := op.shape(v)
	if from == nil || to == nil {
		op.fail("before opset 13, the rank of %q must be known", v)
	}
	if lead := len(from) - len(to); lead > 0 {
		g = op.ReduceSum(g, false, upTo(lead)...)
	}
	sizes := op.Shape(v)
	split := op.Reshape(op.Concat(1, op.Unsqueeze(op.ratio(op.Shape(g), sizes), 1), op.Unsqueeze(sizes, 1)), -1)
	return op.ReduceSum(op.ReshapeTo(g, split), false, evenUpTo(len(to))...)
}

func evenUpTo(n int) []int {
	list := upTo(n)
	for i := range list {
		list[i] *= 2
	}
	return list
}

// ratio divides sizes a by sizes b, of which they are multiples. It is 0 for empty axes.
func (op *operation) ratio(a, b onnx.Value) onnx.Value {
	return op.Div(a, op.Add(b, op.Cast(op.equalInts(b, op.Ints(0)), onnx.Int64)))
}

// expandLike expands x, which has as many axes as v or none, to the shape of v.
func (op *operation) expandLike(x, v onnx.Value) onnx.Value {
	if op.Opset() >= 8 {
		return op.Expand(x, op.shapeOf(v))
	}
	return op.Op("Tile", nil, x, op.ratio(op.shapeOf(v), op.Shape(x))) // Expand came with opset 8
}
