package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// residual returns the layers that are sums at the end of residual blocks, and an error if there
// are none.
func (m *Model) residual(layers []tensor.Layer) ([]string, error) {
	depth := m.depths() // has the tensors that depend on an input of the model
	nodes := m.proto.Graph.Node
	reads := func(i int) []string {
		return slices.DeleteFunc(slices.Clone(nodes[i].Input), func(in string) bool { _, ok := depth[in]; return !ok })
	}
	sums := map[string]bool{}
	for _, i := range Joins(nodes, reads, weighted, "Add", "Sum") {
		for _, out := range nodes[i].Output {
			sums[out] = true
		}
	}
	names := slices.DeleteFunc(Names(layers), func(name string) bool { return !sums[name] })
	if len(names) == 0 {
		return nil, fmt.Errorf(`no layer matches "residual": the model has no sum of two branches with weights`)
	}
	return names, nil
}

// Joins returns the indices of the nodes of some operators that join branches with weights: their
// nearest origins, layers with weights or other such nodes, differ. Excluded are sums with a bias,
// and x + 0.0447 x³ of tanh GELU. reads returns a node's tensors that count.
func Joins(nodes []*pb.NodeProto, reads func(i int) []string, weighted func(n *pb.NodeProto) bool, ops ...string) []int {
	origins := map[string]map[string]bool{} // for a tensor, the nearest layers and joins before it
	var joins []int
	for i, n := range nodes {
		before := map[string]bool{}
		var branches []map[string]bool
		for _, in := range reads(i) {
			branches = append(branches, origins[in])
			maps.Copy(before, origins[in])
		}
		joined := slices.Contains(ops, n.GetOpType()) && fromDifferentLayers(branches)
		for _, out := range n.Output {
			if origins[out] = before; joined || weighted(n) {
				origins[out] = map[string]bool{out: true}
			}
		}
		if joined {
			joins = append(joins, i)
		}
	}
	return joins
}

// A branch holds the origins of one tensor; none may be empty.
func fromDifferentLayers(branches []map[string]bool) bool {
	return !slices.ContainsFunc(branches, func(b map[string]bool) bool { return len(b) == 0 }) &&
		slices.ContainsFunc(branches, func(b map[string]bool) bool { return !maps.Equal(b, branches[0]) })
}
