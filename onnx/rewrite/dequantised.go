package rewrite

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// resultScale has, for each operator on integers with scales (form QOperator), the index of the
// input that is the scale of its result. The zero point follows. QGemm without one returns floats.
var resultScale = map[string]int{
	"QLinearConv": 6, "QLinearMatMul": 6, "QLinearAdd": 6, "QLinearMul": 6, "QGemm": 7, "QLinearWhere": 7, "QLinearConcat": 0,
	"QLinearLeakyRelu": 3, "QLinearSigmoid": 3, "QLinearSoftmax": 3, "QLinearGlobalAveragePool": 3, "QLinearAveragePool": 3, "QLinearReduceMean": 3,
}

// keepsScale has the operators whose result has the values of their first input, some or all.
var keepsScale = map[string]bool{"MaxPool": true, "Reshape": true, "Flatten": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true,
	"Slice": true, "Gather": true, "Expand": true, "Tile": true, "DepthToSpace": true, "SpaceToDepth": true, "Identity": true}

// quantizedSuffix is what onnxruntime's quantiser appends to the name of a tensor that becomes
// integers.
const quantizedSuffix = "_quantized"

// WithDequantised returns a model in which each integer tensor that an operator with scales
// computes is also available as floats: by a DequantizeLinear node, unless there is one. What it
// returns has the tensor's name without "_quantized" or, if that is taken, with "_dequantized".
func WithDequantised(m *onnx.Model) *onnx.Model {
	g := m.Proto().Graph
	if !slices.ContainsFunc(g.Node, func(n *pb.NodeProto) bool { _, ok := resultScale[n.GetOpType()]; return ok }) {
		return m
	}
	taken, dequantised := m.ElementTypes(), map[string]bool{}
	for _, n := range g.Node {
		if n.GetOpType() == "DequantizeLinear" {
			dequantised[n.Input[0]] = true
		}
	}
	scales := map[string][]string{} // scale and zero point of an integer tensor
	var nodes []*pb.NodeProto
	for _, n := range g.Node {
		nodes = append(nodes, n)
		scale := scaleOf(n, scales)
		if scale == nil || len(n.Output) == 0 {
			continue
		}
		out := n.Output[0]
		scales[out] = scale
		if dequantised[out] {
			continue
		}
		name := strings.TrimSuffix(out, quantizedSuffix)
		for _, used := taken[name]; used; _, used = taken[name] {
			name += "_dequantized"
		}
		taken[name] = onnx.Float
		nodes = append(nodes, &pb.NodeProto{OpType: new("DequantizeLinear"), Name: new(name + "/DequantizeLinear"),
			Input: append([]string{out}, scale...), Output: []string{name}})
	}
	g = pbutil.Shallow(g)
	g.Node = nodes
	return m.WithGraph(g)
}

// scaleOf returns the scale and, if there is one, the zero point of a node's first output; nil if it
// is not integers with a scale.
func scaleOf(n *pb.NodeProto, known map[string][]string) []string {
	at, ok := resultScale[n.GetOpType()]
	switch {
	case !ok && keepsScale[n.GetOpType()] && len(n.Input) > 0:
		return known[n.Input[0]]
	case !ok || len(n.Input) <= at || n.Input[at] == "":
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Input[at:min(at+2, len(n.Input))]), func(name string) bool { return name == "" })
}

// FloatOperator returns the operator that one on integers with scales computes, such as Conv for
// QLinearConv, the operator itself if it keeps scales, and "" for others.
func FloatOperator(op string) string {
	_, ok := resultScale[op]
	switch {
	case op == "QGemm":
		return "Gemm"
	case ok:
		return strings.TrimPrefix(op, "QLinear")
	case keepsScale[op]:
		return op
	}
	return ""
}

// ReadDequantised returns a model in which the readers of the integers behind a dequantised tensor
// read the floats, through QuantizeLinear. It returns m if the tensor is not what DequantizeLinear
// makes of the result of an operator with scales.
func ReadDequantised(m *onnx.Model, name string) *onnx.Model {
	g := m.Proto().Graph
	producer := func(name string) int {
		return slices.IndexFunc(g.Node, func(n *pb.NodeProto) bool { return slices.Contains(n.Output, name) })
	}
	at := producer(name)
	if at < 0 || g.Node[at].GetOpType() != "DequantizeLinear" {
		return m
	}
	from := g.Node[at]
	integers := from.Input[0]
	source := producer(integers)
	if source < 0 || FloatOperator(g.Node[source].GetOpType()) == "" {
		return m
	}
	again := integers + " of " + name
	var nodes []*pb.NodeProto
	for i, n := range g.Node {
		switch {
		case i == source:
			nodes = append(nodes, n, from, &pb.NodeProto{OpType: new("QuantizeLinear"), Name: new(again),
				Input: append([]string{name}, from.Input[1:]...), Output: []string{again}})
		case i == at:
		case slices.Contains(n.Input, integers):
			n = pbutil.Shallow(n)
			n.Input = slices.Clone(n.Input)
			for k, in := range n.Input {
				if in == integers {
					n.Input[k] = again
				}
			}
			nodes = append(nodes, n)
		default:
			nodes = append(nodes, n)
		}
	}
	g = pbutil.Shallow(g)
	g.Node = nodes
	return m.WithGraph(g)
}
