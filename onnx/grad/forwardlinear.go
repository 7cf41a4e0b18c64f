package grad

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// allInputs stands for all inputs in linearInputs.
const allInputs = math.MaxInt

// linearInputs has the number k for an operator that is linear in each of its first k inputs while
// the others are fixed, apart from a term that is added (see addend). Concat is linear in all its
// inputs together.
var linearInputs = map[string]int{
	"Conv": 2, "ConvTranspose": 2, "Einsum": allInputs, "Gemm": 2, "MatMul": 2, "Mul": 2, "Concat": allInputs,
	"AveragePool": 1, "Cast": 1, "CastLike": 1, "CumSum": 1, "DepthToSpace": 1, "Expand": 1, "Flatten": 1, "Gather": 1, "GatherElements": 1,
	"GatherND": 1, "GlobalAveragePool": 1, "Identity": 1, "Neg": 1, "Pad": 1, "ReduceMean": 1, "ReduceSum": 1, "Reshape": 1,
	"Resize": 1, "Slice": 1, "SpaceToDepth": 1, "Split": 1, "Squeeze": 1, "Tile": 1, "Transpose": 1, "Trilu": 1, "Unsqueeze": 1,
	"Upsample": 1,
}

// addend is the index of an input that is added to the result of a linear operator, such as a bias
// or the constant of a padding. It is 0, which is never such an input, where there is none.
var addend = map[string]int{"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "Pad": 2}

// isLinear reports whether every active input is one in which the node is linear, or its addend.
func (op *operation) isLinear() bool {
	if !onnx.IsStandard(op.node) {
		return false
	}
	for _, i := range op.inputs() {
		kind := op.node.GetOpType()
		if isAddend := i > 0 && i == addend[kind]; op.wanted(i) && i >= linearInputs[kind] && !isAddend {
			return false
		}
	}
	return true
}

// pushLinear applies a linear operator to the tangents: to each by itself, with the other inputs as
// they are, and adds the results up. The tangent of the addend takes its place in one of the terms.
func (f *forward) pushLinear(op *operation) {
	kind := op.node.GetOpType()
	attrs := onnx.AttrsOf(op.node)
	delete(attrs, "value") // the constants that Pad (before opset 11) and Resize write outside of x
	delete(attrs, "extrapolation_value")
	inputs, tangents := make([]onnx.Value, len(op.node.Input)), make([]onnx.Value, len(op.node.Input))
	for i := range inputs {
		inputs[i], tangents[i] = op.x(i), f.tangents[op.x(i)]
	}
	apply := func(inputs []onnx.Value) []onnx.Value {
		for len(inputs) > 0 && inputs[len(inputs)-1] == "" {
			inputs = inputs[:len(inputs)-1]
		}
		return op.Ops(kind, len(op.node.Output), attrs, inputs...)
	}
	var sums []onnx.Value
	switch some := slices.ContainsFunc(tangents, func(v onnx.Value) bool { return v != "" }); {
	case !some:
		sums = make([]onnx.Value, len(op.node.Output))
	case kind == "Concat":
		for i, x := range inputs {
			if tangents[i] == "" {
				tangents[i] = op.filled(0, x)
			}
		}
		sums = apply(tangents)
	default:
		at := addend[kind]
		hasAddend := at > 0 && at < len(inputs)
		if hasAddend && tangents[at] != "" && tangents[0] == "" {
			tangents[0] = op.filled(0, inputs[0])
		}
		for i := range inputs {
			if tangents[i] == "" || hasAddend && i == at {
				continue
			}
			term := slices.Clone(inputs)
			term[i] = tangents[i]
			if hasAddend {
				term[at] = op.addedTangent(tangents[at])
				tangents[at] = ""
			}
			sums = op.addAll(sums, apply(term))
		}
	}
	for i := range op.node.Output {
		if y := op.y(i); y != "" && f.active[y] {
			f.set(y, sums[i])
		}
	}
}

// addedTangent is the tangent of an addend as an input: before opset 11, that of Gemm is not
// optional.
func (op *operation) addedTangent(tangent onnx.Value) onnx.Value {
	if tangent == "" && op.node.GetOpType() == "Gemm" && op.Opset() < 11 {
		return op.num(0)
	}
	return tangent
}

// addAll adds two lists of tensors, of which the first may be empty.
func (op *operation) addAll(a, b []onnx.Value) []onnx.Value {
	for i := range a {
		b[i] = op.Add(a[i], b[i])
	}
	return b
}
