package onnx

import (
	"cmp"

	"github.com/noether-ml/noether/onnx/pb"
)

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

// Element types of outputs that are not those of the first input.
var (
	fixedTypes = byOperator(map[string]Type{
		"Shape Size ArgMax ArgMin NonZero NonMaxSuppression":                       Int64,
		"Equal Greater GreaterOrEqual Less LessOrEqual And Or Not Xor IsNaN IsInf": Bool,
		"ConvInteger MatMulInteger":                                                Int32,
	})
	// laterTypes are those of outputs behind the first.
	laterTypes = byOperator(map[string]Type{"TopK MaxPool Unique": Int64, "Dropout": Bool})
	// typedLike names the input whose type it is.
	typedLike = byOperator(map[string]int{"Where CastLike DequantizeLinear": 1, "OneHot": 2, "QLinearConv QLinearMatMul": 7})
	// typedByAttribute has what the attribute dtype says, or, where it is missing, this; Undefined is the type of the first input.
	typedByAttribute = byOperator(map[string]Type{
		"RandomNormal RandomUniform HannWindow HammingWindow BlackmanWindow": Float,
		"RandomNormalLike RandomUniformLike EyeLike Bernoulli":               Undefined,
		"Multinomial": Int32,
	})
)

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
	op := n.GetOpType()
	if t, ok := fixedTypes[op]; ok {
		return t
	}
	if t, ok := laterTypes[op]; ok && i > 0 {
		return t
	}
	if from, ok := typedLike[op]; ok {
		return input(from)
	}
	if t, ok := typedByAttribute[op]; ok {
		return attribute("dtype", cmp.Or(t, input(0)))
	}
	switch op {
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
		return cmp.Or(input(2), Uint8)
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
