package accel

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// terms say when a group is worth computing with the channels last.
type terms struct {
	// A crossing number, one whose layout changes on the way into a group or out of it, costs as much as so many products of
	// convolutions by Winograd's algorithm.
	crossing int
	// A product in another convolution, which the engine may compute faster, costs as much as so many.
	others float64
	// The transformed weights of all groups, which live as long as the session, are at most so many numbers.
	weights int
}

// The terms of a graph without gradients, whose transformed weights take at most 256 MiB, and of one with gradients.
var (
	forwardTerms  = terms{crossing: 150, others: 0.2, weights: 1 << 26}
	gradientTerms = terms{crossing: 100, weights: math.MaxInt}
)

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
	*graph
	apart  map[string]bool   // what nodes make that are not to be in groups
	of     map[string]string // what the nodes of groups make, and another such tensor that leads to the one that stands for the group
	groups map[string]*group // by that
}

// groupsOf returns the outputs of the nodes in groups that pay, the largest groups first. Outputs in apart are in no group.
func groupsOf(from *graph, nodes []*pb.NodeProto, apart map[string]bool, t terms) map[string]bool {
	g := &grouping{graph: from, apart: apart, of: map[string]string{}, groups: map[string]*group{}}
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
		if g.pays(of, t) && of.weights <= t.weights {
			t.weights -= of.weights
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
	if !g.groupable(n) || g.apart[n.Output[0]] {
		return
	}
	out := n.Output[0]
	g.of[out] = out
	for _, t := range g.mapsOf(n) {
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
		for _, t := range g.mapsOf(n) {
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
	return float64(of.products) > t.others*float64(of.others)+float64(t.crossing*cost)
}

// add counts the products of a convolution of a group.
func (of *group) add(static *infer.Info, n *pb.NodeProto) {
	if n.GetOpType() != "Conv" || onnx.AttrInt(n, "group", 1) != 1 {
		return
	}
	result, w := static.Shape(n.Output[0]), static.Shape(n.Input[1])
	products := elements(result) * elements(w[1:])
	if !usesWinograd(static, n) {
		of.others += products
		return
	}
	of.products += products
	of.weights += transformedWeights(result, w)
}

// mapsOf returns the feature maps that a node reads.
func (g *graph) mapsOf(n *pb.NodeProto) []string {
	switch n.GetOpType() {
	case "Conv", "ConvTranspose", "Greater":
		return n.Input[:1]
	}
	return n.Input
}

// groupable reports whether a node can be computed with the channels last.
func (g *graph) groupable(n *pb.NodeProto) bool {
	if n.GetDomain() != "" && n.GetDomain() != "ai.onnx" || len(n.Output) != 1 {
		return false
	}
	shape := g.static.Shape(n.Output[0])
	if len(shape) != 4 || slices.Min(shape[1:]) < 1 {
		return false
	}
	switch n.GetOpType() {
	case "Greater", "HardSigmoid", "Cast":
		return g.maskedBy(n.Output[0]) != ""
	}
	if g.static.Type(n.Output[0]) != onnx.Float {
		return false
	}
	switch n.GetOpType() {
	case "Conv", "ConvTranspose":
		_, ok := windowOf(g.static, n)
		return ok && g.static.Constant(n.Input[1]) || g.isIdentity(n)
	case "Relu":
		return true
	case "Add":
		return slices.Equal(g.static.Shape(n.Input[0]), shape) && slices.Equal(g.static.Shape(n.Input[1]), shape)
	case "Mul":
		dy, mask, ok := g.masked(n)
		return ok && slices.Equal(g.static.Shape(mask), shape) && len(g.static.Shape(dy)) == 4
	}
	return false
}

// masked returns the gradient that a product takes through a ReLU, and its mask.
func (g *graph) masked(n *pb.NodeProto) (dy, mask string, ok bool) {
	return g.operands(n.Output[0], "Mul", func(t string) bool { return g.maskedBy(t) != "" })
}

// maskedBy returns the tensor that is positive where a mask is 1, as package grad writes masks: Greater(y, 0), cast to a
// number, or a HardSigmoid so steep that it is 0 or 1.
func (g *graph) maskedBy(mask string) string {
	n := g.makers[mask]
	switch {
	case isOp(n, "HardSigmoid") && onnx.AttrFloat(n, "alpha", 0.2) >= 1e38 && onnx.AttrFloat(n, "beta", 0.5) == 0:
		return n.Input[0]
	case isOp(n, "Cast") && g.static.Type(mask) == onnx.Float && isOp(g.makers[n.Input[0]], "Greater"):
		return g.maskedBy(n.Input[0])
	case isOp(n, "Greater"):
		if v, ok := g.number(n.Input[1]); ok && v == 0 && g.static.Type(n.Input[0]) == onnx.Float {
			return n.Input[0]
		}
	}
	return ""
}

// isIdentity reports whether a convolution multiplies each channel by 1.
func (g *graph) isIdentity(n *pb.NodeProto) bool {
	w := g.static.Shape(n.Input[1])
	if n.GetOpType() != "Conv" || len(n.Input) != 2 || !slices.Equal(w, []int{onnx.AttrInt(n, "group", 1), 1, 1, 1}) {
		return false
	}
	for _, name := range []string{"pads", "strides"} {
		if v := onnx.AttrInts(n, name); v != nil && slices.Max(v) > map[string]int{"strides": 1}[name] {
			return false
		}
	}
	weights, ok := g.static.Values(n.Input[1])
	return ok && !slices.ContainsFunc(weights, func(v float64) bool { return v != 1 })
}

// normalised returns the outputs of convolutions that only a normalisation reads: the engine folds it into their weights.
func normalised(nodes []*pb.NodeProto, outputs []string) map[string]bool {
	readers, list := map[string]int{}, map[string]bool{}
	for _, t := range outputs {
		readers[t]++
	}
	for _, n := range nodes {
		for _, t := range onnx.Reads(n) {
			readers[t]++
		}
	}
	for _, n := range nodes {
		if n.GetOpType() == "BatchNormalization" && readers[n.Input[0]] == 1 {
			list[n.Input[0]] = true
		}
	}
	return list
}
