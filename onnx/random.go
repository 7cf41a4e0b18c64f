package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// RandomNodes returns the labels of the nodes that draw random numbers, also those in subgraphs and
// functions. Outputs that depend on them differ from run to run.
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

// isRandom reports whether a node of graph g, one of the model's, draws random numbers. The node is
// standard.
func (m *Model) isRandom(g *pb.GraphProto, n *pb.NodeProto) bool {
	switch n.GetOpType() {
	case "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial":
		return true
	case "Dropout":
		// From opset 12 on, the third input enables the training mode. Before, ONNX Runtime never
		// drops values.
		return len(n.Input) > 2 && n.Input[2] != "" && !m.isFalse(g, n.Input[2])
	}
	return false
}

// isFalse reports whether a tensor that a node of graph g reads is the constant false.
func (m *Model) isFalse(g *pb.GraphProto, name string) bool {
	in := &Model{proto: &pb.ModelProto{Graph: g}} // g alone, which may be a subgraph
	t := in.constant(name)
	if t == nil {
		t = m.constant(name)
	}
	if t == nil || pbutil.External(t) {
		return false
	}
	isSet := func(b byte) bool { return b != 0 }
	return !slices.ContainsFunc(t.RawData, isSet) && !slices.ContainsFunc(t.Int32Data, func(v int32) bool { return v != 0 })
}
