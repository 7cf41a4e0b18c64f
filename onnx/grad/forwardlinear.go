package grad

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// allInputs stands for all inputs in linearInputs.
const allInputs = math.MaxInt

// linearInputs is the number k of first inputs in each of which an operator is linear, apart from
// the addend; Concat in all together.
var linearInputs = map[string]int{
	"Conv": 2, "ConvTranspose": 2, "Einsum": allInputs, "Gemm": 2, "MatMul": 2, "Mul": 2, "Concat": allInputs,
	"AveragePool": 1, "Cast": 1, "CastLike": 1, "Col2Im": 1, "CumSum": 1, "DepthToSpace": 1, "Expand": 1, "Flatten": 1, "Gather": 1, "GatherElements": 1,
	"GatherND": 1, "GlobalAveragePool": 1, "Identity": 1, "Neg": 1, "Pad": 1, "ReduceMean": 1, "ReduceSum": 1, "Reshape": 1,
	"Resize": 1, "Slice": 1, "SpaceToDepth": 1, "Split": 1, "Squeeze": 1, "Tile": 1, "Transpose": 1, "Trilu": 1, "Unsqueeze": 1,
	"Upsample": 1,
}

// addend is the index of an added input, such as a bias or a padding's constant.
var addend = map[string]int{"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "Pad": 2}

// isLinear: in every active input; the addend counts as one.
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

// pushLinear sets a linear operator's tangents: it is applied to each input's tangent with the
// other inputs, and summed. The addend's tangent is in the first term only.
func (f *forward) pushLinear(op *operation) {
	kind := op.node.GetOpType()
	attrs := onnx.AttrsOf(op.node)
	// Of Pad before opset 11; like extrapolation_value of Resize, a constant: its tangent is 0.
	delete(attrs, "value")
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

// addedTangent returns the addend's tangent, or no input if zero; Gemm before opset 11 gets 0.
func (op *operation) addedTangent(tangent onnx.Value) onnx.Value {
	if tangent == "" && op.node.GetOpType() == "Gemm" && op.Opset() < 11 {
		return op.num(0)
	}
	return tangent
}

// addAll returns a + b by tensor, or b without a; it overwrites b.
func (op *operation) addAll(a, b []onnx.Value) []onnx.Value {
	for i := range a {
		b[i] = op.Add(a[i], b[i])
	}
	return b
}
