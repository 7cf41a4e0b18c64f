package plan

import (
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// subgrid returns the grid of some pairs of g, with only the layers that they use.
func subgrid(g measure.Grid, pairs [][2]int) measure.Grid {
	out := g
	keep := func(side int, layers []tensor.Layer) ([]tensor.Layer, map[int]int) {
		used := map[int]bool{}
		for _, p := range pairs {
			used[p[side]] = true
		}
		var kept []tensor.Layer
		at := map[int]int{} // from indices into layers to indices into kept
		for i, l := range layers {
			if used[i] {
				at[i] = len(kept)
				kept = append(kept, l)
			}
		}
		return kept, at
	}
	var atA, atB map[int]int
	out.A, atA = keep(0, g.A)
	out.B, atB = keep(1, g.B)
	out.Pairs = nil
	for _, p := range pairs {
		out.Pairs = append(out.Pairs, [2]int{atA[p[0]], atB[p[1]]})
	}
	return out
}

// components splits a grid into its connected components: nodes are layers, edges are pairs.
func components(g measure.Grid) []measure.Grid {
	parent := dataset.Indices(len(g.A) + len(g.B)) // union-find over the layers of A, then those of B
	var root func(i int) int
	root = func(i int) int {
		if parent[i] != i {
			parent[i] = root(parent[i])
		}
		return parent[i]
	}
	for _, p := range g.Pairs {
		parent[root(p[0])] = root(len(g.A) + p[1])
	}
	byRoot := map[int][][2]int{}
	var order []int
	for _, p := range g.Pairs {
		r := root(p[0])
		if byRoot[r] == nil {
			order = append(order, r)
		}
		byRoot[r] = append(byRoot[r], p)
	}
	var out []measure.Grid
	for _, r := range order {
		out = append(out, subgrid(g, byRoot[r]))
	}
	return out
}

// splitGrid halves a grid along its longer side until each part fits into memory (bytes) or is a
// single pair.
func splitGrid(c measure.Comparison, g measure.Grid, memory int64) []measure.Grid {
	if len(g.Pairs) == 1 || c.Cost(g) <= memory {
		return []measure.Grid{g}
	}
	side, half := 0, len(g.A)/2
	if len(g.B) > len(g.A) {
		side, half = 1, len(g.B)/2
	}
	isFirst := func(p [2]int) bool { return p[side] < half }
	first := slices.DeleteFunc(slices.Clone(g.Pairs), func(p [2]int) bool { return !isFirst(p) })
	second := slices.DeleteFunc(slices.Clone(g.Pairs), isFirst)
	return append(splitGrid(c, subgrid(g, first), memory), splitGrid(c, subgrid(g, second), memory)...)
}
