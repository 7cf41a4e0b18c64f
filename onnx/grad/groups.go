package grad

import (
	"slices"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// worth is how many products in convolutions by squares pay for a number whose layout changes on the way into a group or out of it.
const worth = 100

// A group is nodes that hand feature maps on to one another, and could all be computed with channels last.
type group struct {
	products int             // of convolutions by squares
	crossing map[string]bool // tensors that come in or go out
}

// A grouping is the groups of a graph.
type grouping struct {
	static *onnx.Static
	of     map[string]string // what the nodes of groups make, and another such tensor that leads to the one that stands for the group
	groups map[string]*group // by that
}

// grouped are the outputs of the nodes, of those so far, that are to be computed with channels last: convolutions with constant weights, ReLUs and sums.
func grouped(b *onnx.Builder, static *onnx.Static) map[string]bool {
	if !kernels.Convolves() {
		return nil
	}
	g := &grouping{static: static, of: map[string]string{}, groups: map[string]*group{}}
	for _, n := range b.Nodes() {
		g.join(n)
	}
	for t := range g.of {
		if root := g.find(t); g.groups[root] == nil {
			g.groups[root] = &group{crossing: map[string]bool{}}
		}
	}
	g.count(b.Nodes())
	chosen := map[string]bool{}
	for t := range g.of {
		if g.pays(g.groups[g.find(t)]) {
			chosen[t] = true
		}
	}
	return chosen
}

// find is the tensor that stands for the group of another.
func (g *grouping) find(t string) string {
	if g.of[t] != t {
		g.of[t] = g.find(g.of[t])
	}
	return g.of[t]
}

// join makes one group of a node and those whose feature maps it reads.
func (g *grouping) join(n *pb.NodeProto) {
	if !groupable(g.static, n) {
		return
	}
	out := n.Output[0]
	g.of[out] = out
	for _, t := range mapsOf(n) {
		if g.of[t] != "" {
			g.of[g.find(t)] = out
		}
	}
}

// count adds up what groups compute, and what crosses their borders.
func (g *grouping) count(nodes []*pb.NodeProto) {
	read := map[string]bool{}
	for _, n := range nodes {
		if len(n.Output) == 0 || g.of[n.Output[0]] == "" {
			for _, t := range onnx.Reads(n) {
				g.cross(t, t)
			}
			continue
		}
		g.groups[g.find(n.Output[0])].products += bySquares(g.static, n)
		for _, t := range mapsOf(n) {
			read[t] = true
			if g.of[t] == "" {
				g.cross(t, n.Output[0])
			}
		}
	}
	for t := range g.of {
		if !read[t] {
			g.cross(t, t)
		}
	}
}

// cross notes a tensor at the border of the group of another one, if that has one.
func (g *grouping) cross(t, of string) {
	if g.of[of] != "" {
		g.groups[g.find(of)].crossing[t] = true
	}
}

func (g *grouping) pays(of *group) bool {
	cost := 0
	for t := range of.crossing {
		cost += elements(g.static.Shape(t))
	}
	return of.products > worth*cost
}

// mapsOf are the feature maps that a node reads.
func mapsOf(n *pb.NodeProto) []string {
	if n.GetOpType() == "Conv" {
		return n.Input[:1]
	}
	return n.Input
}

// elements is the size of a shape, with 1 for what is not known.
func elements(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= max(1, d)
	}
	return size
}

// groupable reports whether a node can be computed with channels last.
func groupable(static *onnx.Static, n *pb.NodeProto) bool {
	if n.GetDomain() != "" && n.GetDomain() != "ai.onnx" || len(n.Output) != 1 {
		return false
	}
	shape := static.Shape(n.Output[0])
	if len(shape) != 4 || slices.Min(shape[1:]) < 1 || static.Type(n.Output[0]) != onnx.Float {
		return false
	}
	switch n.GetOpType() {
	case "Conv":
		_, ok := windowOf(static, n)
		return ok && static.Constant(n.Input[1])
	case "Relu":
		return true
	case "Add":
		return slices.Equal(static.Shape(n.Input[0]), shape) && slices.Equal(static.Shape(n.Input[1]), shape)
	}
	return false
}

// bySquares is the number of products of a convolution that goes by squares of 3 x 3 places, and 0 for other nodes.
func bySquares(static *onnx.Static, n *pb.NodeProto) int {
	if n.GetOpType() != "Conv" {
		return 0
	}
	w := static.Shape(n.Input[1])
	if attrs, _ := windowOf(static, n); !squares(w, attrs["strides"].([]int), attrs["dilations"].([]int)) || w[1] < 8 {
		return 0
	}
	return elements(static.Shape(n.Output[0])) * tensor.Size(w[1:])
}
