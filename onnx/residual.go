package onnx

import (
	"fmt"
	"maps"
	"slices"
)

// residual returns the sums that end residual blocks: sums of two branches that each come from
// layers with weights, not both from the same layers. This excludes the sum with a bias and that
// inside the tanh approximation of GELU, x + 0.0447 x³.
func (m *Model) residual(layers []Layer) ([]string, error) {
	depth := m.depths()
	from := map[string]map[string]bool{} // for a tensor, the closest layers with weights and residual sums before it
	sums := map[string]bool{}
	for _, n := range m.proto.Graph.Node {
		var branches []map[string]bool
		before := map[string]bool{}
		for _, in := range n.Input {
			if _, ok := depth[in]; ok {
				branches = append(branches, from[in])
				maps.Copy(before, from[in])
			}
		}
		op := n.GetOpType()
		sum := (op == "Add" || op == "Sum") && fromDifferentLayers(branches)
		for _, out := range n.Output {
			if from[out] = before; sum || weighted(n) {
				from[out] = map[string]bool{out: true}
			}
			sums[out] = sum
		}
	}
	names := slices.DeleteFunc(Names(layers), func(name string) bool { return !sums[name] })
	if len(names) == 0 {
		return nil, fmt.Errorf(`no layer matches "residual": the model has no sum of two branches with weights`)
	}
	return names, nil
}

// fromDifferentLayers reports whether there are several branches, each with layers, that do not all
// come from the same layers.
func fromDifferentLayers(branches []map[string]bool) bool {
	differ := false
	for _, b := range branches {
		if len(b) == 0 {
			return false
		}
		differ = differ || !maps.Equal(b, branches[0])
	}
	return differ
}
