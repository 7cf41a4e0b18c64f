package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/tensor"
)

// residual returns the names of those of the layers that are sums at the end of residual blocks. It
// serves the pattern "residual" in a choice of layers. Each term of such a sum depends on layers
// with weights (matrix products and convolutions), and the nearest of these are not the same for
// all terms. This excludes the sum with a bias, and x + 0.0447 x³ in the tanh approximation of
// GELU. It is an error if there is no such sum.
func (m *Model) residual(layers []tensor.Layer) ([]string, error) {
	depth := m.depths() // has the tensors that depend on an input of the model
	// For each tensor, sources has the nearest layers with weights or residual sums on which the
	// tensor depends.
	sources := map[string]map[string]bool{}
	sums := map[string]bool{}
	for _, n := range m.proto.Graph.Node {
		var branches []map[string]bool
		before := map[string]bool{}
		for _, in := range n.Input {
			if _, ok := depth[in]; ok {
				branches = append(branches, sources[in])
				maps.Copy(before, sources[in])
			}
		}
		op := n.GetOpType()
		sum := (op == "Add" || op == "Sum") && fromDifferentLayers(branches)
		for _, out := range n.Output {
			if sources[out] = before; sum || weighted(n) {
				sources[out] = map[string]bool{out: true}
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

// fromDifferentLayers reports whether there are several branches, none of which is empty, that are
// not all equal. A branch holds the sources of one term of a sum.
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
