package blocks

import "maps"

// A join is a tensor in which branches with weights come together: a sum or concatenation.
type join struct {
	tensor string
	node   int // index in path.nodes of the node that computes it
}

// joins returns the sums and concatenations whose branches come from different layers with weights.
// p is the part of the graph between an input and some outputs: p.nodes are its nodes in order,
// p.reads the tensors that each reads. This excludes the sum with a bias and sums inside an
// activation function.
func (p *path) joins() []join {
	origins := map[string]map[string]bool{} // for a tensor, the nearest layers with weights and joins before it
	var out []join
	for i, n := range p.nodes {
		before := map[string]bool{}
		var branches []map[string]bool
		for in := range p.reads[i] {
			branches = append(branches, origins[in])
			maps.Copy(before, origins[in])
		}
		op := n.GetOpType()
		joins := (op == "Add" || op == "Sum" || op == "Concat") && fromDifferentLayers(branches)
		for _, name := range n.Output {
			origins[name] = before
			if joins || products[op] {
				origins[name] = map[string]bool{name: true}
			}
		}
		if joins {
			out = append(out, join{n.Output[0], i})
		}
	}
	return out
}

// fromDifferentLayers reports whether there are several branches, all with weights, that do not all
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
