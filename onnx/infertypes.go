package onnx

import "github.com/noether-ml/noether/onnx/pb"

// elementTypes is the element type of each tensor of the main graph, Undefined where it cannot be told.
func (m *Model) elementTypes() map[string]Type {
	g := m.proto.Graph
	types := map[string]Type{}
	for _, in := range g.Input {
		types[in.GetName()] = port(in).Type
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
		if t := port(v).Type; t != Undefined {
			types[v.GetName()] = t
		}
	}
	return types
}

// outputType is the element type of a node's i-th output: that of the first input, except where the operator's
// definition says otherwise.
func outputType(n *pb.NodeProto, i int, types map[string]Type) Type {
	input := func(i int) Type {
		if i < len(n.Input) {
			return types[n.Input[i]]
		}
		return Undefined
	}
	attribute := func(name string, otherwise Type) Type { return Type(AttrInt(n, name, int(otherwise))) }
	switch n.GetOpType() {
	case "Cast", "Bernoulli":
		return attribute("to", attribute("dtype", input(0)))
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression":
		return Int64
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf":
		return Bool
	case "Where", "CastLike":
		return input(1)
	case "OneHot":
		return input(2)
	case "Constant":
		return constantType(n)
	case "ConstantOfShape":
		if t := AttrTensor(n, "value"); t != nil {
			return Type(t.GetDataType())
		}
		return Float
	case "RandomNormal", "RandomUniform", "HannWindow", "HammingWindow", "BlackmanWindow":
		return attribute("dtype", Float)
	case "RandomNormalLike", "RandomUniformLike", "EyeLike":
		return attribute("dtype", input(0))
	case "Multinomial":
		return attribute("dtype", Int32)
	case "QuantizeLinear":
		if t := input(2); t != Undefined {
			return t
		}
		return Uint8
	case "DequantizeLinear":
		return input(1)
	case "DynamicQuantizeLinear":
		if i == 1 {
			return Float
		}
		return Uint8
	case "ConvInteger", "MatMulInteger":
		return Int32
	case "QLinearConv", "QLinearMatMul":
		return input(7)
	case "TopK", "MaxPool", "Unique":
		if i > 0 {
			return Int64
		}
	case "Dropout":
		if i == 1 {
			return Bool
		}
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

// bodyType is the type that the subgraph of an If, Loop or Scan declares for its output. The first output of a Loop's
// body is its condition, which the node does not return.
func bodyType(n *pb.NodeProto, i int) Type {
	if n.GetOpType() == "Loop" {
		i++
	}
	for _, g := range subgraphs(n) {
		if i < len(g.Output) {
			return port(g.Output[i]).Type
		}
	}
	return Undefined
}
