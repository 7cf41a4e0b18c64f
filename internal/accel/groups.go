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

// A costModel decides which groups of nodes are computed in NHWC, by native operators, instead of
// in NCHW by ONNX Runtime. A group gains by its convolutions that use Winograd's algorithm. The
// unit of gain and costs is what one multiplication of these convolutions gains. Multiplications
// are counted as in direct convolution, with free dimensions as 1.
type costModel struct {
	// of one element at the border of a group
	layoutChange int
	// of a multiplication without Winograd's algorithm, in which ONNX Runtime may be faster
	other float64
	// maxWeights bounds the transformed weights of all groups, which exist as long as the session.
	maxWeights int
}

// The cost models of graphs without and with gradients. 2^26 weights are 256 MiB. The numbers are
// rough: they were set by timing whole networks, not single operators.
var (
	forwardCosts  = costModel{layoutChange: 150, other: 0.2, maxWeights: 1 << 26}
	gradientCosts = costModel{layoutChange: 100, maxWeights: math.MaxInt}
)

// A group is a connected set of nodes that can be computed in NHWC.
type group struct {
	root     string          // an output that represents the group
	winograd int             // multiplications of convolutions that use Winograd's algorithm
	other    int             // multiplications of other convolutions
	weights  int             // number of transformed weights
	border   map[string]bool // tensors that enter or leave it: their layout has to be changed
}

// A grouping is the groups of a graph: a disjoint-set forest of the outputs of nodes.
type grouping struct {
	*graph
	excluded map[string]bool // outputs of nodes that belong to no group
	// parent of each output of a node in a group; a root is its own parent.
	parent map[string]string
	groups map[string]*group // by root
}

// selectGroups returns the outputs of the nodes in groups that are faster in NHWC, those with the
// most multiplications by Winograd's algorithm first, within maxWeights.
func selectGroups(from *graph, nodes []*pb.NodeProto, excluded map[string]bool, costs costModel) map[string]bool {
	g := &grouping{graph: from, excluded: excluded, parent: map[string]string{}, groups: map[string]*group{}}
	for _, n := range nodes {
		g.add(n)
	}
	for t := range g.parent {
		if root := g.find(t); g.groups[root] == nil {
			g.groups[root] = &group{root: root, border: map[string]bool{}}
		}
	}
	g.measure(nodes)
	chosen := map[string]bool{}
	for _, gr := range slices.SortedFunc(maps.Values(g.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.winograd, a.winograd), strings.Compare(a.root, b.root))
	}) {
		if g.faster(gr, costs) && gr.weights <= costs.maxWeights {
			costs.maxWeights -= gr.weights
			chosen[gr.root] = true
		}
	}
	for t := range g.parent {
		chosen[t] = chosen[g.find(t)]
	}
	maps.DeleteFunc(chosen, func(_ string, is bool) bool { return !is })
	return chosen
}

func (g *grouping) find(t string) string {
	if g.parent[t] != t {
		g.parent[t] = g.find(g.parent[t])
	}
	return g.parent[t]
}

func (g *grouping) add(n *pb.NodeProto) {
	if !g.supportsNHWC(n) || g.excluded[n.Output[0]] {
		return
	}
	out := n.Output[0]
	g.parent[out] = out
	for _, t := range featureMaps(n) {
		if g.parent[t] != "" {
			g.parent[g.find(t)] = out
		}
	}
}

func (g *grouping) measure(nodes []*pb.NodeProto) {
	read := map[string]bool{}
	for _, n := range nodes {
		if len(n.Output) == 0 || g.parent[n.Output[0]] == "" {
			for _, t := range onnx.Reads(n) {
				g.addBorder(t, t)
			}
			continue
		}
		g.groups[g.find(n.Output[0])].count(g.static, n)
		for _, t := range featureMaps(n) {
			read[t] = true
			if g.parent[t] == "" {
				g.addBorder(t, n.Output[0])
			}
		}
	}
	for t := range g.parent {
		if !read[t] {
			g.addBorder(t, t)
		}
	}
}

func (g *grouping) addBorder(t, output string) {
	if g.parent[output] != "" {
		g.groups[g.find(output)].border[t] = true
	}
}

func (g *grouping) faster(gr *group, costs costModel) bool {
	size := 0
	for t := range gr.border {
		size += elements(g.static.Shape(t))
	}
	return float64(gr.winograd) > costs.other*float64(gr.other)+float64(costs.layoutChange*size)
}

func (gr *group) count(static *infer.Info, n *pb.NodeProto) {
	if n.GetOpType() != "Conv" || onnx.AttrInt(n, "group", 1) != 1 {
		return
	}
	y, w := static.Shape(n.Output[0]), static.Shape(n.Input[1])
	products := elements(y) * elements(w[1:])
	if !usesWinograd(static, n) {
		gr.other += products
		return
	}
	gr.winograd += products
	gr.weights += transformedWeights(y, w)
}

// featureMaps returns the inputs of a node that are feature maps: not weights or scalars.
func featureMaps(n *pb.NodeProto) []string {
	switch n.GetOpType() {
	case "Conv", "ConvTranspose", "Greater":
		return n.Input[:1]
	}
	return n.Input
}

func (g *graph) supportsNHWC(n *pb.NodeProto) bool {
	if !onnx.IsStandard(n) || len(n.Output) != 1 {
		return false
	}
	shape := g.static.Shape(n.Output[0])
	if len(shape) != 4 || slices.Min(shape[1:]) < 1 {
		return false
	}
	switch n.GetOpType() {
	case "Greater":
		return g.maskSource(n.Output[0]) != "" && !g.uncast[n.Output[0]]
	case "Cast":
		return g.maskSource(n.Output[0]) != "" && !g.uncast[n.Input[0]]
	case "HardSigmoid":
		return g.maskSource(n.Output[0]) != ""
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
		dy, mask, ok := g.reluGradient(n)
		return ok && slices.Equal(g.static.Shape(mask), shape) && len(g.static.Shape(dy)) == 4
	}
	return false
}

// reluGradient recognises the gradient of a ReLU: dy times a mask that is 1 where the ReLU's output
// is positive, else 0.
func (g *graph) reluGradient(n *pb.NodeProto) (dy, mask string, ok bool) {
	return g.operands(n.Output[0], "Mul", func(t string) bool { return g.maskSource(t) != "" })
}

// maskSource returns the tensor that is positive where a mask is 1, or "". Package grad writes
// masks as Greater(y, 0), cast to float, or as a HardSigmoid so steep that it is 0 or 1.
func (g *graph) maskSource(mask string) string {
	n := g.producers[mask]
	switch {
	case isOp(n, "HardSigmoid") && onnx.AttrFloat(n, "alpha", 0.2) >= 1e38 && onnx.AttrFloat(n, "beta", 0.5) == 0:
		return n.Input[0]
	case isOp(n, "Cast") && g.static.Type(mask) == onnx.Float && isOp(g.producers[n.Input[0]], "Greater"):
		return g.maskSource(n.Input[0])
	case isOp(n, "Greater"):
		if v, ok := g.scalarValue(n.Input[1]); ok && v == 0 && g.static.Type(n.Input[0]) == onnx.Float {
			return n.Input[0]
		}
	}
	return ""
}

func (g *graph) isIdentity(n *pb.NodeProto) bool {
	w := g.static.Shape(n.Input[1])
	if n.GetOpType() != "Conv" || len(n.Input) != 2 || !slices.Equal(w, []int{onnx.AttrInt(n, "group", 1), 1, 1, 1}) {
		return false
	}
	if slices.Max(append(onnx.AttrInts(n, "pads"), 0)) > 0 || slices.Max(append(onnx.AttrInts(n, "strides"), 1)) > 1 {
		return false
	}
	weights, ok := g.static.Values(n.Input[1])
	return ok && !slices.ContainsFunc(weights, func(v float64) bool { return v != 1 })
}

// countReaders counts the nodes that read each tensor, and an output of the graph once more.
func countReaders(nodes []*pb.NodeProto, outputs []string) map[string]int {
	readers := map[string]int{}
	for _, t := range outputs {
		readers[t]++
	}
	for _, n := range nodes {
		for _, t := range onnx.Reads(n) {
			readers[t]++
		}
	}
	return readers
}

// readByNormalisation returns the tensors that only a BatchNormalization reads: ONNX Runtime merges
// it with the convolution before it.
func readByNormalisation(nodes []*pb.NodeProto, readers map[string]int) map[string]bool {
	set := map[string]bool{}
	for _, n := range nodes {
		if n.GetOpType() == "BatchNormalization" && readers[n.Input[0]] == 1 {
			set[n.Input[0]] = true
		}
	}
	return set
}
