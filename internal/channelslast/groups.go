package channelslast

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// terms are when a group is computed with channels last.
type terms struct {
	worth  int     // so many products in convolutions by squares pay for a number whose layout changes on the way into a group or out of it,
	others float64 // so many for one in another convolution, which the engine may do quicker,
	most   int     // and in all groups their transformed weights are at most so many numbers
}

// withGradients are those where gradients are computed too.
var withGradients = terms{worth: 100, most: math.MaxInt}

// A group is nodes that hand feature maps on to one another, and could all be computed with channels last.
type group struct {
	name     string          // the tensor that stands for it
	products int             // of convolutions by squares
	others   int             // of other convolutions
	weights  int             // of these, transformed
	crossing map[string]bool // tensors that come in or go out
}

// A grouping is the groups of a graph.
type grouping struct {
	static *infer.Info
	apart  map[string]bool   // what nodes make that are not to be in groups
	of     map[string]string // what the nodes of groups make, and another such tensor that leads to the one that stands for the group
	groups map[string]*group // by that
}

// Groups are the outputs of the nodes, of those so far, that are to be computed with channels last: convolutions with constant weights, ReLUs and sums.
func Groups(b *onnx.Builder, static *infer.Info) map[string]bool {
	return grouped(b.Nodes(), static, nil, withGradients)
}

// grouped are the outputs of nodes in groups that pay, the largest groups first. What is to stay apart is in none.
func grouped(nodes []*pb.NodeProto, static *infer.Info, apart map[string]bool, t terms) map[string]bool {
	if !kernels.Convolves() {
		return nil
	}
	g := &grouping{static: static, apart: apart, of: map[string]string{}, groups: map[string]*group{}}
	for _, n := range nodes {
		g.join(n)
	}
	for t := range g.of {
		if root := g.find(t); g.groups[root] == nil {
			g.groups[root] = &group{name: root, crossing: map[string]bool{}}
		}
	}
	g.count(nodes)
	chosen := map[string]bool{}
	for _, of := range slices.SortedFunc(maps.Values(g.groups), larger) {
		if g.pays(of, t) && of.weights <= t.most {
			t.most -= of.weights
			chosen[of.name] = true
		}
	}
	for x := range g.of {
		chosen[x] = chosen[g.find(x)]
	}
	maps.DeleteFunc(chosen, func(_ string, is bool) bool { return !is })
	return chosen
}

// larger puts groups of more products first.
func larger(a, b *group) int {
	return cmp.Or(cmp.Compare(b.products, a.products), strings.Compare(a.name, b.name))
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
	if !groupable(g.static, n) || g.apart[n.Output[0]] {
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
		g.groups[g.find(n.Output[0])].add(g.static, n)
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

func (g *grouping) pays(of *group, t terms) bool {
	cost := 0
	for x := range of.crossing {
		cost += elements(g.static.Shape(x))
	}
	return float64(of.products) > t.others*float64(of.others)+float64(t.worth*cost)
}

// add counts what a convolution of a group multiplies.
func (of *group) add(static *infer.Info, n *pb.NodeProto) {
	if n.GetOpType() != "Conv" {
		return
	}
	result, w := static.Shape(n.Output[0]), static.Shape(n.Input[1])
	products := elements(result) * elements(w[1:])
	if !bySquares(static, n) {
		of.others += products
		return
	}
	of.products += products
	of.weights += transformed(result, w)
}

// mapsOf are the feature maps that a node reads.
func mapsOf(n *pb.NodeProto) []string {
	if n.GetOpType() == "Conv" {
		return n.Input[:1]
	}
	return n.Input
}

// groupable reports whether a node can be computed with channels last.
func groupable(static *infer.Info, n *pb.NodeProto) bool {
	if n.GetDomain() != "" && n.GetDomain() != "ai.onnx" || len(n.Output) != 1 {
		return false
	}
	shape := static.Shape(n.Output[0])
	if len(shape) != 4 || slices.Min(shape[1:]) < 1 || static.Type(n.Output[0]) != onnx.Float {
		return false
	}
	switch n.GetOpType() {
	case "Conv":
		_, ok := Window(static, n)
		return ok && static.Constant(n.Input[1])
	case "Relu":
		return true
	case "Add":
		return slices.Equal(static.Shape(n.Input[0]), shape) && slices.Equal(static.Shape(n.Input[1]), shape)
	}
	return false
}
