package infer

import (
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
)

// value is what a node that does shape arithmetic computes, its output having a shape; nil for
// other nodes.
func (c *node) value(output int, shape []int) *array {
	x := c.val(0)
	switch op := c.node.GetOpType(); op {
	case "Constant":
		return c.constantValue()
	case "Shape":
		if c.arg(0) == nil {
			return nil
		}
		return vector(c.shapeSizes())
	case "Size":
		n := 1
		for _, s := range c.arg(0).sizes() {
			n = times(n, s)
		}
		if c.arg(0) == nil || n < 0 {
			return nil
		}
		return &array{shape: []int{}, data: []float64{float64(n)}}
	case "ConstantOfShape":
		fill := 0.0
		if t := onnx.AttrTensor(c.node, "value"); t != nil {
			if v := constantArray(t); v != nil && len(v.data) == 1 {
				fill = v.data[0]
			}
		}
		return generate(shape, func([]int) float64 { return fill })
	case "Range":
		if c.val(0) == nil || c.val(2) == nil {
			return nil
		}
		from, step := c.val(0).at(nil), c.val(2).at(nil)
		return generate(shape, func(i []int) float64 { return from + float64(i[0])*step })
	case "Concat":
		return c.concatValue(shape)
	default:
		if x == nil {
			return nil
		}
		if f := c.move(x, output); f != nil {
			return generate(shape, f)
		}
		return c.compute(x, shape)
	}
}

func (c *node) constantValue() *array {
	for _, a := range c.node.Attribute {
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

func (c *node) concatValue(shape []int) *array {
	at, ok := c.axisOf("axis", 0, len(shape))
	for i := range c.args {
		if v := c.val(i); !ok || v == nil || len(v.shape) != len(shape) {
			return nil
		}
	}
	return generate(shape, func(index []int) float64 {
		index = append([]int(nil), index...)
		for _, f := range c.args {
			if index[at] < f.value.shape[at] {
				return f.value.at(index)
			}
			index[at] -= f.value.shape[at]
		}
		return math.NaN()
	})
}

// move is, for an operator that moves the elements of x, which of them lands at an index; nil for
// other operators.
func (c *node) move(x *array, output int) func(index []int) float64 {
	switch c.node.GetOpType() {
	case "Identity", "Expand":
		return x.at
	case "Cast":
		if t := onnx.Type(onnx.AttrInt(c.node, "to", 0)); t.IsFloat() {
			return x.at
		}
		return func(index []int) float64 { return math.Trunc(x.at(index)) }
	case "Reshape", "Squeeze", "Unsqueeze", "Flatten":
		next := -1 // the order of elements stays
		return func([]int) float64 {
			if next++; next < len(x.data) {
				return x.data[next]
			}
			return math.NaN()
		}
	case "Transpose":
		perm := onnx.AttrInts(c.node, "perm")
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
		return c.gathered(x)
	case "Slice":
		return c.sliced(x)
	case "Split":
		return c.parted(x, output)
	}
	return nil
}

func (c *node) gathered(x *array) func(index []int) float64 {
	at, ok := c.axisOf("axis", 0, len(x.shape))
	indices := c.val(1)
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

func (c *node) sliced(x *array) func(index []int) float64 {
	cuts, ok := c.spans(unlabelled(x.shape...))
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

func (c *node) parted(x *array, output int) func(index []int) float64 {
	l := unlabelled(x.shape...)
	at, ok := c.axisOf("axis", 0, len(l))
	if !ok {
		return nil
	}
	start := 0
	for _, part := range c.split(l)[:output] {
		start += part[at].size()
	}
	return func(index []int) float64 {
		from := append([]int(nil), index...)
		from[at] += start
		return x.at(from)
	}
}

// compute is the result of an operator that computes with the elements of x.
func (c *node) compute(x *array, shape []int) *array {
	if f := unaryOps[c.node.GetOpType()]; f != nil {
		return generate(shape, func(i []int) float64 { return f(x.at(i)) })
	}
	if f := binaryOps[c.node.GetOpType()]; f != nil {
		return c.combine(shape, f)
	}
	switch c.node.GetOpType() {
	case "Div":
		if c.in.types[c.node.Input[0]].IsFloat() {
			return c.combine(shape, func(a, b float64) float64 { return a / b })
		}
		return c.combine(shape, func(a, b float64) float64 { return math.Trunc(a / b) })
	case "Mod":
		if onnx.AttrInt(c.node, "fmod", 0) == 1 {
			return c.combine(shape, math.Mod)
		}
		return c.combine(shape, func(a, b float64) float64 { return a - b*math.Floor(a/b) })
	case "Where":
		yes, no := c.val(1), c.val(2)
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
	case "ReduceProd":
		if len(c.args) > 1 || len(shape) > 0 && (len(shape) > 1 || shape[0] != 1) {
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

// combine applies a function to two or more broadcast operands.
func (c *node) combine(shape []int, f func(a, b float64) float64) *array {
	for i := range c.args {
		if c.val(i) == nil {
			return nil
		}
	}
	return generate(shape, func(index []int) float64 {
		v := c.args[0].value.at(index)
		for _, other := range c.args[1:] {
			v = f(v, other.value.at(index))
		}
		return v
	})
}

var unaryOps = map[string]func(float64) float64{
	"Floor": math.Floor, "Ceil": math.Ceil, "Round": math.RoundToEven, "Sqrt": math.Sqrt, "Abs": math.Abs,
	"Neg": func(v float64) float64 { return -v },
	"Not": func(v float64) float64 { return truth(v == 0, v, v) },
}

var binaryOps = map[string]func(a, b float64) float64{
	"Add": func(a, b float64) float64 { return a + b },
	"Sub": func(a, b float64) float64 { return a - b },
	"Mul": func(a, b float64) float64 { return a * b },
	"Pow": math.Pow, "Min": math.Min, "Max": math.Max,
	"Equal":          func(a, b float64) float64 { return truth(a == b, a, b) },
	"Greater":        func(a, b float64) float64 { return truth(a > b, a, b) },
	"GreaterOrEqual": func(a, b float64) float64 { return truth(a >= b, a, b) },
	"Less":           func(a, b float64) float64 { return truth(a < b, a, b) },
	"LessOrEqual":    func(a, b float64) float64 { return truth(a <= b, a, b) },
	"And":            func(a, b float64) float64 { return truth(a != 0 && b != 0, a, b) },
	"Or":             func(a, b float64) float64 { return truth(a != 0 || b != 0, a, b) },
}

// truth is 1 or 0, or NaN where an operand is not known.
func truth(is bool, a, b float64) float64 {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		return math.NaN()
	case is:
		return 1
	}
	return 0
}
