package onnx

import (
	"fmt"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// CompatibleWith returns nil if every node means the same in the later opset, else an error with
// the first that does not. It also refuses an earlier opset and, for another one, versions outside
// 11 to 18 and functions.
func (m *Model) CompatibleWith(opset int) error {
	version := m.Opset()
	switch {
	case version == opset || version == 0: // 0: the model uses no standard operators
		return nil
	case version > opset:
		return fmt.Errorf("it uses opset %d, which is later than %d", version, opset)
	case version < 11 || opset > 18:
		return fmt.Errorf("it uses opset %d and not %d: convert it with onnx.version_converter", version, opset)
	case len(m.proto.Functions) > 0:
		return fmt.Errorf("it uses opset %d and not %d, and functions of its own: convert it with onnx.version_converter", version, opset)
	}
	if n := firstChanged(m.proto.Graph, version, opset); n != nil {
		return fmt.Errorf("it uses opset %d, and %s has another meaning in %d: convert it with onnx.version_converter", version, Label(n), opset)
	}
	return nil
}

// firstChanged returns the first node, subgraphs included, whose meaning differs, or nil.
func firstChanged(g *pb.GraphProto, from, to int) *pb.NodeProto {
	for _, n := range g.Node {
		for _, c := range changes[n.GetOpType()] {
			if c.since > from && c.since <= to && IsStandard(n) && c.breaks(n) {
				return n
			}
		}
		for _, sub := range pbutil.Subgraphs(n) {
			if inner := firstChanged(sub, from, to); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// A change is a version in which some nodes of an operator changed their meaning.
type change struct {
	since  int                        // version of the operator set
	breaks func(n *pb.NodeProto) bool // whether the meaning of node n changes
}

// changes covers versions 11 to 18. Others add types, or options with the earlier default; but
// Resize 13 drops tf_half_pixel_for_nn, which ONNX Runtime still computes, with a warning.
var changes = map[string][]change{
	"Dropout": {{12, has("ratio")}},
	"Squeeze": {{13, has("axes")}}, "Unsqueeze": {{13, has("axes")}}, "ReduceSum": {{13, has("axes")}},
	"Softmax": {{13, coerced}}, "LogSoftmax": {{13, coerced}}, "Hardmax": {{13, coerced}},
	"BatchNormalization": {{14, func(n *pb.NodeProto) bool { return len(n.Output) > 1 }}},
	"RoiAlign":           {{16, func(n *pb.NodeProto) bool { return find(n, "coordinate_transformation_mode") == nil }}},
	"Split":              {{13, has("split")}, {18, func(n *pb.NodeProto) bool { return len(n.Input) < 2 }}},
	"ReduceMean":         {{18, has("axes")}}, "ReduceMax": {{18, has("axes")}}, "ReduceMin": {{18, has("axes")}}, "ReduceProd": {{18, has("axes")}},
	"ReduceL1": {{18, has("axes")}}, "ReduceL2": {{18, has("axes")}}, "ReduceSumSquare": {{18, has("axes")}},
	"ReduceLogSum": {{18, has("axes")}}, "ReduceLogSumExp": {{18, has("axes")}},
}

func has(attribute string) func(n *pb.NodeProto) bool {
	return func(n *pb.NodeProto) bool { return find(n, attribute) != nil }
}

// coerced: a softmax before 13 may differ from a later one, since it normalises over all axes from
// axis (default 1) on; only -1 is surely equal.
func coerced(n *pb.NodeProto) bool { return AttrInt(n, "axis", 1) != -1 }
