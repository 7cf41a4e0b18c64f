package blocks

import (
	"cmp"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// An Operation is a node of a graph on a path of data from the input to the output of a network.
type Operation struct {
	Tensor string // its first output that the path reads or ends in
	Op     string // operator, such as "Conv"
	Reads  []int  // indices of the operations whose outputs it reads, in increasing order
	Group  int    // number of its group, from 0
}

// maxInBlock is the largest number of operations of a block that stays one group.
const maxInBlock = 64

// Outline returns the operations between the input and the outputs of a network in the order of
// computation. They are grouped, for a drawing that can fold groups. A block is a part of the
// network between two cuts, such as a residual block. A block whose branches join is a group. In
// other parts of the network, and in blocks of more than maxInBlock (64) operations, a group is an
// operation with weights and the operations that follow it. An operation reads only from its own
// group and from groups with smaller numbers.
func Outline(g *onnx.Model, input string, outputs ...string) []Operation {
	p := findPath(g, input, outputs...)
	groups := p.groups()
	index := map[string]int{} // of the operation that computes a tensor
	read := set(outputs...)
	for _, reads := range p.reads {
		maps.Copy(read, reads)
	}
	out := make([]Operation, len(p.nodes))
	for i, n := range p.nodes {
		o := Operation{Op: n.GetOpType(), Group: groups[i], Reads: []int{}}
		for name := range p.reads[i] {
			if from, ok := index[name]; ok {
				o.Reads = append(o.Reads, from)
			}
		}
		slices.Sort(o.Reads)
		o.Reads = slices.Compact(o.Reads)
		for _, name := range n.Output {
			if !read[name] {
				continue
			}
			index[name] = i
			o.Tensor = cmp.Or(o.Tensor, name)
		}
		out[i] = o
	}
	return out
}

// groups returns the number of the group of each node. p.cuts are the cuts of the path in order,
// each with the node that computes it and the step that leads to it from the cut before.
func (p *path) groups() []int {
	c := &chooser{path: p}
	group := make([]int, len(p.nodes))
	next, from := 0, 0 // number of the next group; index of the first node without a group
	// chain divides the nodes from the end of the last block up to an index into groups that start
	// at nodes with weights.
	chain := func(to int) {
		next += p.divide(group[from:to], from, next)
		from = to
	}
	for i := 0; i < len(p.cuts); i++ {
		if !p.cuts[i].step.joins() { // no branches with weights end here
			continue
		}
		start := 0
		if i > 0 {
			start = p.cuts[i-1].node + 1
		}
		chain(start)
		i = c.blockEnd(i)
		end := p.cuts[i].node + 1
		if end-start > maxInBlock {
			chain(end)
			continue
		}
		for k := start; k < end; k++ {
			group[k] = next
		}
		next, from = next+1, end
	}
	chain(len(p.nodes))
	return group
}

// divide sets numbers[i] to the group of node from + i, with numbers from first on, and returns how
// many groups there are. A node with weights, whose operator is in products, starts a group; others
// belong to the last group that they read from.
func (p *path) divide(numbers []int, from, first int) int {
	produced := map[string]int{}
	next := first
	for i := range numbers {
		n, group := p.nodes[from+i], -1
		for name := range p.reads[from+i] {
			if g, ok := produced[name]; ok {
				group = max(group, g)
			}
		}
		if group < 0 || products[n.GetOpType()] {
			group = next
			next++
		}
		numbers[i] = group
		for _, name := range n.Output {
			produced[name] = group
		}
	}
	return next - first
}
