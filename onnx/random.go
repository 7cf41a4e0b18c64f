package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// RandomNodes returns the labels of nodes that draw random numbers, also in subgraphs and
// functions.
func (m *Model) RandomNodes() []string {
	var list []string
	_ = pbutil.EachGraph(m.proto, func(g *pb.GraphProto) error {
		for _, n := range g.Node {
			if IsStandard(n) && m.isRandom(g, n) {
				list = append(list, Label(n))
			}
		}
		return nil
	})
	return list
}

// isRandom reports whether a standard node of graph g draws random numbers.
func (m *Model) isRandom(g *pb.GraphProto, n *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial":
		return true
	case "Dropout":
		// The inputs are data, ratio and, from opset 12 on, training mode. Before, ONNX Runtime
		// never drops values.
		return len(n.Input) > 2 && n.Input[2] != "" && !m.isZero(g, n.Input[2]) && !m.isZero(g, n.Input[1])
	}
	return false
}

func (m *Model) isZero(g *pb.GraphProto, name string) bool {
	in := &Model{proto: &pb.ModelProto{Graph: g}} // g alone, which may be a subgraph
	for _, model := range []*Model{in, m} {
		if t := model.constant(name); t != nil {
			return !pbutil.External(t) && isZero(t)
		}
		for _, n := range model.proto.Graph.Node {
			if n.GetOpType() == "Constant" && slices.Contains(n.Output, name) {
				a := find(n, "value_float")
				return a != nil && a.GetRefAttrName() == "" && a.GetF() == 0
			}
		}
	}
	return false
}

func isZero(t *pb.TensorProto) bool {
	raw := slices.Clone(t.RawData)
	if kind := Type(t.GetDataType()); len(raw) > 0 && (kind == Float || kind == Double || kind == Float16 || kind == BFloat16) {
		raw[len(raw)-1] &= 0x7f // -0 is 0
	}
	return !slices.ContainsFunc(raw, func(b byte) bool { return b != 0 }) &&
		!slices.ContainsFunc(t.Int32Data, func(v int32) bool { return v != 0 }) &&
		!slices.ContainsFunc(t.FloatData, func(v float32) bool { return v != 0 }) &&
		!slices.ContainsFunc(t.DoubleData, func(v float64) bool { return v != 0 })
}
