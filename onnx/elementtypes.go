package onnx

import (
	"cmp"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// ElementTypes returns each tensor's element type, Undefined if it cannot be inferred.
func (m *Model) ElementTypes() map[string]Type {
	g := m.proto.Graph
	types := map[string]Type{}
	for _, in := range g.Input {
		types[in.GetName()] = ValueInfoOf(in).Type
	}
	for _, t := range g.Initializer {
		types[t.GetName()] = Type(t.GetDataType())
	}
	for _, n := range g.Node {
		for i, out := range n.Output {
			if out != "" {
				types[out] = outputType(n, i, types)
			}
		}
	}
	for _, v := range g.ValueInfo {
		if t := ValueInfoOf(v).Type; t != Undefined {
			types[v.GetName()] = t
		}
	}
	return types
}

// outputType returns an output's type: the first input's unless the operator says otherwise.
func outputType(n *pb.NodeProto, i int, types map[string]Type) Type {
	input := func(i int) Type {
		if i < len(n.Input) {
			return types[n.Input[i]]
		}
		return Undefined
	}
	attribute := func(name string, fallback Type) Type { return Type(AttrInt(n, name, int(fallback))) }
	switch n.GetOpType() {
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression":
		return Int64
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf":
		return Bool
	case "ConvInteger", "MatMulInteger":
		return Int32
	case "TopK", "MaxPool", "Unique":
		if i > 0 {
			return Int64
		}
	case "Dropout":
		if i > 0 {
			return Bool
		}
	case "Where", "CastLike", "DequantizeLinear":
		return input(1)
	case "OneHot":
		return input(2) // the values off and on
	case "QLinearConv", "QLinearMatMul":
		return input(7) // the zero point of the result
	case "RandomNormal", "RandomUniform":
		return attribute("dtype", Float)
	case "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix":
		return attribute("output_datatype", Float)
	case "Multinomial":
		return attribute("dtype", Int32)
	case "RandomNormalLike", "RandomUniformLike", "EyeLike", "Bernoulli":
		return attribute("dtype", input(0))
	case "Cast":
		return attribute("to", input(0))
	case "Constant":
		return constantType(n)
	case "ConstantOfShape":
		if t := AttrTensor(n, "value"); t != nil {
			return Type(t.GetDataType())
		}
		return Float
	case "QuantizeLinear":
		// Input 2 is the zero point.
		return cmp.Or(input(2), attribute("output_dtype", Undefined), Uint8)
	case "DynamicQuantizeLinear":
		if i == 1 {
			return Float
		}
		return Uint8
	case "LayerNormalization":
		if i > 0 {
			return attribute("stash_type", Float)
		}
	case "If", "Loop", "Scan":
		return bodyType(n, i)
	}
	return input(0)
}

func constantType(n *pb.NodeProto) Type {
	for _, a := range n.Attribute {
		switch a.GetName() {
		case "value":
			return Type(a.GetT().GetDataType())
		case "value_float", "value_floats":
			return Float
		case "value_int", "value_ints":
			return Int64
		}
	}
	return String
}

// bodyType returns what a subgraph declares for output i; a Loop's body has its condition first.
func bodyType(n *pb.NodeProto, i int) Type {
	if n.GetOpType() == "Loop" {
		i++
	}
	for _, g := range pbutil.Subgraphs(n) {
		if i < len(g.Output) {
			return ValueInfoOf(g.Output[i]).Type
		}
	}
	return Undefined
}
