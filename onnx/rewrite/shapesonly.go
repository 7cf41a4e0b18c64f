package rewrite

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// ShapesOnly returns a model with the same shapes but other values, with a fraction of the memory
// and operations. Float32 initializers of more than infer.MaxValues (4096) elements become zeros
// created at run time. Products with them, and convolutions without groups, sum over one channel; a
// Split before them checks the number. Opsets below 9, which lack ConstantOfShape, are unchanged.
func ShapesOnly(m *onnx.Model) *onnx.Model {
	if m.Opset() < 9 {
		return m
	}
	g := pbutil.Shallow(m.Proto().Graph)
	r := shapesOnly{opset: m.Opset(), weights: map[string][]int64{}, made: map[string]bool{}, graph: g}
	large := map[string]bool{}
	var small []*pb.TensorProto
	for _, t := range g.Initializer {
		if n, err := pbutil.Elements(t.Dims); err != nil || n <= infer.MaxValues || onnx.Type(t.GetDataType()) != onnx.Float {
			small = append(small, t)
			continue
		}
		large[t.GetName()] = true
		r.weights[t.GetName()] = t.Dims
	}
	g.Initializer = small
	nodes := g.Node
	g.Node = nil
	for _, n := range nodes {
		n = r.contractOne(n)
		for _, in := range onnx.Reads(n) {
			if large[in] {
				r.zeros(in, r.weights[in])
			}
		}
		g.Node = append(g.Node, n)
	}
	for _, out := range g.Output {
		if large[out.GetName()] {
			r.zeros(out.GetName(), r.weights[out.GetName()])
		}
	}
	return m.WithGraph(g)
}

type shapesOnly struct {
	opset   int
	weights map[string][]int64 // shapes of the large initializers
	made    map[string]bool    // zeros that have been added
	graph   *pb.GraphProto
}

// zeros adds a node that produces float32 zeros, unless it exists.
func (r *shapesOnly) zeros(name string, dims []int64) {
	if r.made[name] {
		return
	}
	r.made[name] = true
	shape := r.ints("shape of "+name, dims)
	r.graph.Node = append(r.graph.Node, &pb.NodeProto{OpType: new("ConstantOfShape"), Input: []string{shape}, Output: []string{name}})
}

func (r *shapesOnly) ints(name string, values []int64) string {
	r.graph.Initializer = append(r.graph.Initializer, &pb.TensorProto{Name: &name, DataType: new(int32(onnx.Int64)), Dims: []int64{int64(len(values))}, Int64Data: values})
	return name
}

// contractOne makes a node that sums over channels of its input and a large initializer sum over
// one. It adds the nodes that produce the inputs; other nodes are unchanged.
func (r *shapesOnly) contractOne(n *pb.NodeProto) *pb.NodeProto {
	if len(n.Input) < 2 || len(n.Output) == 0 || !onnx.IsStandard(n) || n.Input[0] == n.Input[1] {
		return n
	}
	dims := r.weights[n.Input[1]]
	axis, weightAxis, ok := contracted(n, len(dims))
	if !ok || dims[weightAxis] < 2 {
		return n
	}
	if x := r.weights[n.Input[0]]; x != nil {
		r.zeros(n.Input[0], x)
	}
	channels := dims[weightAxis]
	dims = slices.Clone(dims)
	dims[weightAxis] = 1
	weight := fmt.Sprintf("one of axis %d of %s", weightAxis, n.Input[1])
	r.zeros(weight, dims)
	split := &pb.NodeProto{
		OpType: new("Split"), Input: []string{n.Input[0]},
		Output:    []string{"one channel for " + n.Output[0], "other channels for " + n.Output[0]},
		Attribute: []*pb.AttributeProto{{Name: new("axis"), Type: pb.AttributeProto_INT.Enum(), I: new(int64(axis))}},
	}
	if parts := []int64{1, channels - 1}; r.opset >= 13 {
		split.Input = append(split.Input, r.ints("channels for "+n.Output[0], parts))
	} else {
		split.Attribute = append(split.Attribute, &pb.AttributeProto{Name: new("split"), Type: pb.AttributeProto_INTS.Enum(), Ints: parts})
	}
	r.graph.Node = append(r.graph.Node, split)
	n = pbutil.Shallow(n)
	n.Input = slices.Clone(n.Input)
	n.Input[0], n.Input[1] = split.Output[0], weight
	return n
}

// contracted returns the axes of the input and of the weights, of that rank, that a node sums over;
// ok is false if it cannot be contracted.
func contracted(n *pb.NodeProto, rank int) (axis, weightAxis int, ok bool) {
	switch n.GetOpType() {
	case "MatMul":
		return -1, 0, rank == 2
	case "Gemm":
		return 1 - onnx.AttrInt(n, "transA", 0), onnx.AttrInt(n, "transB", 0), rank == 2
	case "Conv":
		return 1, 1, rank > 2 && onnx.AttrInt(n, "group", 1) == 1
	case "ConvTranspose":
		return 1, 0, rank > 2 && onnx.AttrInt(n, "group", 1) == 1
	}
	return 0, 0, false
}
