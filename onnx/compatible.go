package onnx

import (
	"fmt"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// CompatibleWith returns nil if every node of the model has the same meaning in a later version
// opset of the operator set, so that the model can be included in a graph of that version.
// Otherwise the error names the first node with another meaning. It also returns an error if opset
// is earlier than the model's version or, where they differ, if one is outside 11 to 18 or the
// model defines functions.
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

// firstChanged returns the first node of a graph or its subgraphs whose meaning differs between the
// versions from and to of the operator set, or nil.
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

// A change is a version of the operator set in which some nodes of an operator changed their
// meaning.
type change struct {
	since  int                        // version of the operator set
	breaks func(n *pb.NodeProto) bool // whether the meaning of node n changes
}

// changes lists the changes between versions 11 and 18 of the operator set. All other changes add
// types, or attributes and inputs whose defaults give the earlier behaviour, but for one: Resize 13
// drops the mode tf_half_pixel_for_nn, which ONNX Runtime still computes, with a warning.
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

// has returns a function that reports whether a node has an attribute.
func has(attribute string) func(n *pb.NodeProto) bool {
	return func(n *pb.NodeProto) bool { return find(n, attribute) != nil }
}

// coerced reports whether a softmax of a version before 13 may differ from one of a later version.
// The earlier one reshapes (coerces) its input to a matrix and normalises over all axes from its
// attribute axis on (1 by default); a later one normalises over that axis alone. The two are known
// to be equal only for the last axis, -1.
func coerced(n *pb.NodeProto) bool { return AttrInt(n, "axis", 1) != -1 }
