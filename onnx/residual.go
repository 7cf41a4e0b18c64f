package onnx

import (
	"fmt"
	"maps"
	"slices"
)

// residual are the sums that end residual blocks: of two branches, each of which comes from layers
// with weights and not both from the same ones. So neither the sum with a bias is one, nor that
// inside the approximation of GELU by tanh, x + 0.0447 x³.
func (m *Model) residual(layers []Layer) ([]string, error) {
	depth := m.depths()
	from := map[string]map[string]bool{} // of a tensor, the layers with weights and the residual sums that come right before it
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
		sum := (op == "Add" || op == "Sum") && apart(branches)
		for _, out := range n.Output {
			if from[out] = before; sum || weighted(n) {
				from[out] = map[string]bool{out: true}
			}
			sums[out] = sum
		}
	}
	names := slices.DeleteFunc(Names(layers), func(name string) bool { return !sums[name] })
	if len(names) == 0 {
		return nil, fmt.Errorf(`no layer matches "residual": nothing is the sum of two branches with weights`)
	}
	return names, nil
}

// apart reports whether there are several branches, none of them without layers, that do not all
// come from the same.
func apart(branches []map[string]bool) bool {
	differ := false
	for _, b := range branches {
		if len(b) == 0 {
			return false
		}
		differ = differ || !maps.Equal(b, branches[0])
	}
	return differ
}
