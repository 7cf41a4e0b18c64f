package infer

import (
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
)

// outputValue returns the value of an output of the given shape, or nil if it cannot be inferred.
// Elements that depend on an unknown one are NaN.
func (op *operation) outputValue(output int, shape []int) *array {
	x := op.value(0)
	switch op.node.GetOpType() {
	case "Constant":
		return op.constantValue()
	case "Shape":
		if op.layout(0) == nil {
			return nil
		}
		return vector(op.shapeSizes())
	case "Size":
		n := 1
		for _, s := range op.layout(0).sizes() {
			n = times(n, s)
		}
		if op.layout(0) == nil || n < 0 {
			return nil
		}
		return &array{shape: []int{}, data: []float64{float64(n)}}
	case "ConstantOfShape":
		fill := 0.0
		if t := onnx.AttrTensor(op.node, "value"); t != nil {
			if v := constantArray(t); v != nil && len(v.data) == 1 {
				fill = v.data[0]
			}
		}
		return generate(shape, func([]int) float64 { return fill })
	case "Range":
		if op.value(0) == nil || op.value(2) == nil {
			return nil
		}
		from, step := op.value(0).at(nil), op.value(2).at(nil)
		return generate(shape, func(i []int) float64 { return from + float64(i[0])*step })
	case "Concat":
		return op.concatValue(shape)
	default:
		if x == nil {
			return nil
		}
		if f := op.rearranged(x, output); f != nil {
			return generate(shape, f)
		}
		return op.compute(x, shape)
	}
}

func (op *operation) constantValue() *array {
	for _, a := range op.node.Attribute {
		switch a.GetName() {
		case "value":
			return constantArray(a.GetT())
		case "value_int":
			return &array{shape: []int{}, data: []float64{float64(a.GetI())}}
		case "value_ints":
			return vector(pbutil.Ints(a.Ints))
		}
	}
	return nil
}

func (op *operation) concatValue(shape []int) *array {
	at, ok := op.axisOf(0, len(shape))
	for i := range op.args {
		if v := op.value(i); !ok || v == nil || len(v.shape) != len(shape) {
			return nil
		}
	}
	return generate(shape, func(index []int) float64 {
		index = append([]int(nil), index...)
		for _, f := range op.args {
			if index[at] < f.value.shape[at] {
				return f.value.at(index)
			}
			index[at] -= f.value.shape[at]
		}
		return math.NaN()
	})
}

// rearranged returns a function from an index of the output to the element of x there, for
// operators that rearrange or convert. It is nil for others and for unknown arguments. Call it with
// all indices in row-major order, as generate does.
func (op *operation) rearranged(x *array, output int) func(index []int) float64 {
	switch op.node.GetOpType() {
	case "Identity", "Expand":
		return x.at
	case "Cast":
		switch t := onnx.Type(onnx.AttrInt(op.node, "to", 0)); {
		case t.IsFloat():
			return x.at
		case t == onnx.Bool:
			return func(index []int) float64 { v := x.at(index); return boolValue(v != 0, v, v) }
		}
		return func(index []int) float64 { return math.Trunc(x.at(index)) }
	case "Reshape", "Squeeze", "Unsqueeze", "Flatten":
		// Index in x of the last element that was returned: these operators keep the order.
		next := -1
		return func([]int) float64 {
			if next++; next < len(x.data) {
				return x.data[next]
			}
			return math.NaN()
		}
	case "Transpose":
		perm := onnx.AttrInts(op.node, "perm")
		return func(index []int) float64 {
			from := make([]int, len(index))
			for i := range index {
				if perm == nil {
					from[len(index)-1-i] = index[i]
				} else {
					from[perm[i]] = index[i]
				}
			}
			return x.at(from)
		}
	case "Gather":
		return op.gatherValue(x)
	case "Slice":
		return op.sliceValue(x)
	case "Split":
		return op.splitValue(x, output)
	}
	return nil
}

func (op *operation) gatherValue(x *array) func(index []int) float64 {
	at, ok := op.axisOf(0, len(x.shape))
	indices := op.value(1)
	if !ok || indices == nil {
		return nil
	}
	return func(index []int) float64 {
		k := len(indices.shape)
		pick := indices.at(index[at : at+k])
		if pick < 0 {
			pick += float64(x.shape[at])
		}
		if !(pick >= 0 && pick < float64(x.shape[at])) {
			return math.NaN()
		}
		from := append(append([]int(nil), index[:at]...), int(pick))
		return x.at(append(from, index[at+k:]...))
	}
}

func (op *operation) sliceValue(x *array) func(index []int) float64 {
	// A cut is what Slice takes of one axis: count positions, -1 if unknown.
	cuts, ok := op.cuts(unlabelled(x.shape...))
	if !ok {
		return nil
	}
	return func(index []int) float64 {
		from := append([]int(nil), index...)
		for _, s := range cuts {
			if s.count < 0 {
				return math.NaN()
			}
			from[s.axis] = s.start + from[s.axis]*s.step
		}
		return x.at(from)
	}
}

func (op *operation) splitValue(x *array, output int) func(index []int) float64 {
	l := unlabelled(x.shape...)
	at, ok := op.axisOf(0, len(l))
	if !ok {
		return nil
	}
	start := 0
	for _, part := range op.split(l)[:output] {
		start += part[at].size()
	}
	return func(index []int) float64 {
		from := append([]int(nil), index...)
		from[at] += start
		return x.at(from)
	}
}

func (op *operation) compute(x *array, shape []int) *array {
	if f := unaryOps[op.node.GetOpType()]; f != nil {
		return generate(shape, func(i []int) float64 { return f(x.at(i)) })
	}
	if f := binaryOps[op.node.GetOpType()]; f != nil {
		return op.combine(shape, f)
	}
	switch op.node.GetOpType() {
	case "Div":
		if op.in.types[op.node.Input[0]].IsFloat() {
			return op.combine(shape, func(a, b float64) float64 { return a / b })
		}
		return op.combine(shape, func(a, b float64) float64 { return math.Trunc(a / b) })
	case "Mod":
		if onnx.AttrInt(op.node, "fmod", 0) == 1 {
			return op.combine(shape, math.Mod)
		}
		return op.combine(shape, func(a, b float64) float64 { return a - b*math.Floor(a/b) })
	case "Where":
		yes, no := op.value(1), op.value(2)
		if yes == nil || no == nil {
			return nil
		}
		return generate(shape, func(i []int) float64 {
			switch condition := x.at(i); {
			case math.IsNaN(condition):
				return condition
			case condition != 0:
				return yes.at(i)
			}
			return no.at(i)
		})
	case "ReduceProd": // of all elements, as in the number of elements of a shape
		if len(op.args) > 1 || len(shape) > 0 && (len(shape) > 1 || shape[0] != 1) {
			return nil
		}
		product := 1.0
		for _, v := range x.data {
			product *= v
		}
		return generate(shape, func([]int) float64 { return product })
	}
	return nil
}

// combine folds operands, broadcast to shape, by f: f(f(first, second), third) and so on.
func (op *operation) combine(shape []int, f func(a, b float64) float64) *array {
	for i := range op.args {
		if op.value(i) == nil {
			return nil
		}
	}
	return generate(shape, func(index []int) float64 {
		v := op.args[0].value.at(index)
		for _, other := range op.args[1:] {
			v = f(v, other.value.at(index))
		}
		return v
	})
}

// Operators that are applied to each element. An unknown operand, NaN, gives NaN.
var unaryOps = map[string]func(float64) float64{
	"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt, "Abs": math.Abs,
	"Neg": func(v float64) float64 { return -v },
	"Not": func(v float64) float64 { return boolValue(v == 0, v, v) },
}

// Operators that combine the elements of two operands, or of several one after the other.
var binaryOps = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b },
	"Pow": math.Pow, "Min": math.Min, "Max": math.Max,
	"Equal":          func(a, b float64) float64 { return boolValue(a == b, a, b) },
	"Greater":        func(a, b float64) float64 { return boolValue(a > b, a, b) },
	"GreaterOrEqual": func(a, b float64) float64 { return boolValue(a >= b, a, b) },
	"Less":           func(a, b float64) float64 { return boolValue(a < b, a, b) },
	"LessOrEqual":    func(a, b float64) float64 { return boolValue(a <= b, a, b) },
	"And":            func(a, b float64) float64 { return boolValue(a != 0 && b != 0, a, b) },
	"Or":             func(a, b float64) float64 { return boolValue(a != 0 || b != 0, a, b) },
}

// boolValue returns 1 or 0 for is, or NaN if one of the operands a and b is unknown.
func boolValue(is bool, a, b float64) float64 {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		return math.NaN()
	case is:
		return 1
	}
	return 0
}
