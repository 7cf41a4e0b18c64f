package onnx

import (
	"cmp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// ElementTypes returns each tensor's element type, Undefined if it cannot be inferred. It is
// NoTensor for sequences, maps, optionals and sparse tensors.
func (m *Model) ElementTypes() map[string]Type {
	g := m.proto.Graph
	types := map[string]valueType{}
	for _, in := range g.Input {
		types[in.GetName()] = typeOf(in.GetType())
	}
	for _, t := range g.Initializer {
		types[t.GetName()] = valueType{element: Type(t.GetDataType())}
	}
	for _, n := range g.Node {
		for i, out := range n.Output {
			if out != "" {
				types[out] = outputType(n, i, types)
			}
		}
	}
	for _, v := range slices.Concat(g.ValueInfo, g.Output) {
		if t := typeOf(v.GetType()); t != (valueType{}) {
			types[v.GetName()] = t
		}
	}
	elements := make(map[string]Type, len(types))
	for name, t := range types {
		elements[name] = t.element
		if t.around != "" {
			elements[name] = NoTensor
		}
	}
	return elements
}

// A valueType is the type of a value in a graph: a tensor, or what has tensors as its elements.
type valueType struct {
	element Type   // of the tensors
	around  string // from the outside, a letter for each sequence, optional, map or sparse tensor
}

// The letters of valueType.around.
const (
	sequence, optional, mapping, sparse = "s", "o", "m", "x"
)

// typeOf returns a type that a graph declares.
func typeOf(t *pb.TypeProto) valueType {
	within := func(letter string, t valueType) valueType { return valueType{t.element, letter + t.around} }
	switch v := t.GetValue().(type) {
	case *pb.TypeProto_TensorType:
		return valueType{element: Type(v.TensorType.GetElemType())}
	case *pb.TypeProto_SequenceType:
		return within(sequence, typeOf(v.SequenceType.GetElemType()))
	case *pb.TypeProto_OptionalType:
		return within(optional, typeOf(v.OptionalType.GetElemType()))
	case *pb.TypeProto_MapType:
		return within(mapping, typeOf(v.MapType.GetValueType()))
	case *pb.TypeProto_SparseTensorType:
		return valueType{Type(v.SparseTensorType.GetElemType()), sparse}
	}
	return valueType{}
}

// outputType returns an output's type: the first input's unless the operator says otherwise.
func outputType(n *pb.NodeProto, i int, types map[string]valueType) valueType {
	first := valueType{}
	if len(n.Input) > 0 {
		first = types[n.Input[0]]
	}
	switch n.GetOpType() {
	case "SequenceEmpty":
		return valueType{Type(AttrInt(n, "dtype", int(Float))), sequence}
	case "SequenceConstruct", "SplitToSequence":
		return valueType{first.element, sequence}
	case "SequenceAt", "ConcatFromSequence":
		return valueType{element: first.element}
	case "Optional":
		return valueType{first.element, optional + first.around}
	case "OptionalGetElement":
		return valueType{first.element, strings.TrimPrefix(first.around, optional)}
	case "ZipMap":
		return valueType{Float, sequence + mapping}
	case "If", "Loop", "Scan":
		return bodyType(n, i)
	case "SequenceMap":
		return valueType{bodyType(n, i).element, sequence}
	case "Identity", "SequenceInsert", "SequenceErase":
		return first
	}
	return valueType{element: elementType(n, i, types)}
}

// elementType returns the element type of an output that is a tensor.
func elementType(n *pb.NodeProto, i int, types map[string]valueType) Type {
	input := func(i int) Type {
		if i < len(n.Input) {
			return types[n.Input[i]].element
		}
		return Undefined
	}
	attribute := func(name string, fallback Type) Type { return Type(AttrInt(n, name, int(fallback))) }
	switch n.GetOpType() {
	case "Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression", "SequenceLength":
		return Int64
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Not", "Xor", "IsNaN", "IsInf",
		"OptionalHasElement", "RegexFullMatch":
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
	case "QLinearConcat":
		return input(1) // likewise
	case "QGemm":
		if len(n.Input) < 8 || n.Input[7] == "" { // no scale of the result
			return Float
		}
	case "QLinearWhere":
		return input(1)
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
	case "StringSplit":
		if i > 0 {
			return Int64
		}
	case "TfIdfVectorizer", "FeatureVectorizer", "LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor", "Normalizer", "OneHotEncoder", "Scaler":
		return Float
	case "LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier":
		switch {
		case i > 0:
			return Float
		case find(n, "classlabels_strings") != nil:
			return String
		}
		return Int64
	case "LabelEncoder", "CategoryMapper":
		return encodedType(n, input(0))
	case "DictVectorizer", "CastMap":
		return Undefined // the engine infers it
	}
	return input(0)
}

// encodedType returns the element type of the labels that a LabelEncoder or CategoryMapper gives
// for labels of type from.
func encodedType(n *pb.NodeProto, from Type) Type {
	for attribute, t := range map[string]Type{"values_floats": Float, "values_int64s": Int64, "values_strings": String} {
		if find(n, attribute) != nil {
			return t
		}
	}
	if t := AttrTensor(n, "values_tensor"); t != nil {
		return Type(t.GetDataType())
	}
	if from == String {
		return Int64
	}
	return String
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
func bodyType(n *pb.NodeProto, i int) valueType {
	if n.GetOpType() == "Loop" {
		i++
	}
	for _, g := range pbutil.Subgraphs(n) {
		if i < len(g.Output) {
			return typeOf(g.Output[i].GetType())
		}
	}
	return valueType{}
}
