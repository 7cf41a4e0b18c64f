package rewrite

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// ReadRounded reads a model as ReadFloat32 does, but of a half-precision model each operator reads
// values that are rounded to its type, as on a device that stores activations so. Sums within an
// operator are in float32.
func ReadRounded(path string) (*onnx.Model, error) {
	m, err := onnx.Read(path)
	if err != nil {
		return nil, err
	}
	types := m.ElementTypes()
	wide, err := ToFloat32(m)
	if err != nil {
		return nil, fmt.Errorf("reading model %s: %w", path, err)
	}
	return rounded(wide, types), nil
}

// roundedSuffix ends the names of rounded tensors.
const roundedSuffix = " rounded"

// rounded returns a model of the main graph's nodes, in which those read rounded copies of the tensors
// that have half precision in types. Copies are float32. Constants are rounded already, and subgraphs
// are left as they are.
func rounded(m *onnx.Model, types map[string]onnx.Type) *onnx.Model {
	g := pbutil.Shallow(m.Proto().Graph)
	copies := map[string]bool{}
	var nodes []*pb.NodeProto
	round := func(name string) {
		t := types[name]
		if !t.Half() {
			return
		}
		cast := func(from, to string, t onnx.Type) {
			nodes = append(nodes, &pb.NodeProto{OpType: new("Cast"), Name: new(to + "/Cast"), Input: []string{from}, Output: []string{to},
				Attribute: []*pb.AttributeProto{{Name: new("to"), Type: pb.AttributeProto_INT.Enum(), I: new(int64(t))}}})
		}
		cast(name, name+" as "+t.String(), t)
		cast(name+" as "+t.String(), name+roundedSuffix, onnx.Float)
		copies[name] = true
	}
	for _, in := range g.Input {
		round(in.GetName())
	}
	for _, n := range g.Node {
		if slices.ContainsFunc(n.Input, func(in string) bool { return copies[in] }) {
			n = pbutil.Shallow(n)
			n.Input = slices.Clone(n.Input)
			for i, in := range n.Input {
				if copies[in] {
					n.Input[i] += roundedSuffix
				}
			}
		}
		nodes = append(nodes, n)
		if !exact[n.GetOpType()] {
			for _, out := range n.Output {
				if out != "" {
					round(out)
				}
			}
		}
	}
	g.Node = nodes
	return m.WithGraph(g)
}

// exact has operators whose results need no rounding if their inputs are rounded, and Constant.
var exact = map[string]bool{"Constant": true, "Identity": true, "Reshape": true, "Flatten": true, "Transpose": true, "Squeeze": true, "Unsqueeze": true,
	"Slice": true, "Split": true, "Concat": true, "Gather": true, "Expand": true, "Tile": true, "Relu": true, "MaxPool": true, "GlobalMaxPool": true}
