package blocks

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A Layer is a chosen layer with a description of its position in the network.
type Layer struct {
	tensor.Layer
	Role string // position in the network, for example "stage 2, block 1"
}

// Choose returns at least minLayers layers, if it finds as many, and at most maxLayers. One of them
// is the input of the classifier, which Choose adds last.
const (
	minLayers = 8
	maxLayers = 12
)

// Choose returns eight to twelve layers along the depth of a network: the stem, the ends of blocks,
// among them the last of each stage, and the input of the classifier. A small network may have
// fewer layers. layers are those that can be measured, with their axes and the shape of one sample.
// input and output are the tensors between which the network lies.
func Choose(g *onnx.Model, input, output string, layers []tensor.Layer) []Layer {
	measurable := map[string]tensor.Layer{}
	for _, l := range layers {
		measurable[l.Name] = l
	}
	c := &chooser{path: findPath(g, input, output), layers: measurable, restored: restored(g), added: map[string]bool{}}
	c.addBlocks()
	c.markParts()
	if blocks := slices.DeleteFunc(slices.Clone(c.found), func(f candidate) bool { return f.part }); len(blocks) >= minLayers-1 {
		c.found = blocks
	}
	if len(c.found) < minLayers-1 {
		c.addJoins()
	}
	if len(c.found) < minLayers-1 {
		c.addActivations()
	}
	c.addStem()
	c.assignStages()
	last := penultimate(g, layers)
	if last.Name != "" {
		// Layers after the last one belong to the classifier.
		c.found = slices.DeleteFunc(c.found, func(f candidate) bool { return f.layer.Depth > last.Depth })
	}
	repeats := slices.ContainsFunc(c.found, func(f candidate) bool { return f.layer.Name == last.Name })
	var out []Layer
	for _, f := range thin(c.found, maxLayers-1) {
		role := f.role
		if f.layer.Name == last.Name {
			role += ", read by the classifier"
		}
		out = append(out, Layer{f.layer, role})
	}
	if last.Name != "" && !repeats {
		out = append(out, Layer{last, "read by the classifier"})
	}
	return out
}

// penultimate returns the layer that the classifier reads, or the zero Layer.
func penultimate(g *onnx.Model, layers []tensor.Layer) tensor.Layer {
	found, err := g.Select("penultimate")
	if err != nil || len(found) != 1 {
		return tensor.Layer{}
	}
	i := slices.IndexFunc(layers, func(l tensor.Layer) bool { return l.Name == found[0].Name })
	if i < 0 {
		return tensor.Layer{}
	}
	return layers[i]
}

type candidate struct {
	layer tensor.Layer
	node  int  // index of its node on the path
	kind  kind // its place in the network
	part  bool // it ends a part of a block, not a whole block
	stage int  // number of its stage, from 1; 0 for the stem
	role  string
}

// A kind says what a candidate is in the network.
type kind int

const (
	stem       kind = iota
	block           // end of a block with convolutions, or of one without a residual sum
	attention       // sum of a shortcut and a branch with attention
	perceptron      // sum of a shortcut and a branch of matrix products (the MLP of a transformer)
	activation      // activation of a network without blocks
	pooled          // activation before a pooling or a Flatten
)

func (k kind) ofBlock() bool { return k == block || k == attention || k == perceptron }

type chooser struct {
	path     *path                   // the nodes between input and output, with all branches
	layers   map[string]tensor.Layer // layers that can be measured, by name
	restored map[string]string       // see the function
	found    []candidate             // in the order of computation
	added    map[string]bool         // names of the layers in found
}

// restored returns, for each tensor that is only read to be quantised, the tensor that is restored
// from the integers. The network computes with that one: where a quantised network has no Relu, the
// quantisation cuts off negative values.
func restored(g *onnx.Model) map[string]string {
	readers := map[string][]*pb.NodeProto{}
	for _, n := range g.Nodes() {
		for _, in := range onnx.Reads(n) {
			readers[in] = append(readers[in], n)
		}
	}
	only := func(name, op string) string { // the output of the only reader, if it has this operator
		if r := readers[name]; len(r) == 1 && r[0].GetOpType() == op && r[0].Input[0] == name {
			return r[0].Output[0]
		}
		return ""
	}
	out := map[string]string{}
	for name := range readers {
		if q := only(name, "QuantizeLinear"); q != "" {
			if d := only(q, "DequantizeLinear"); d != "" {
				out[name] = d
			}
		}
	}
	return out
}

// add appends a tensor, which the node with this index computes, to the candidates, unless it
// cannot be measured or is among them.
func (c *chooser) add(tensor string, node int, k kind) {
	if r, ok := c.restored[tensor]; ok {
		tensor = r
	}
	l, ok := c.layers[tensor]
	if !ok || c.added[tensor] {
		return
	}
	c.added[tensor] = true
	c.found = append(c.found, candidate{layer: l, node: node, kind: k})
}

// addBlocks adds the cuts that end blocks. The step of a cut is the nodes after the cut before, up
// to it. A step joins if it ends in the sum or concatenation of branches with weights. A block
// without a residual connection, such as those of MobileNet that change the size, ends where a
// residual block starts.
func (c *chooser) addBlocks() {
	cuts := c.path.cuts
	end := -1 // index of the last cut of the block before
	for i, cut := range cuts {
		if !cut.step.joins() {
			continue
		}
		if i > 0 && i-1 > end {
			c.addStart(end, i-1, cut.step)
		}
		k := block
		switch {
		case cut.step.attention:
			k = attention
		case !cut.step.conv:
			k = perceptron
		}
		end = c.blockEnd(i)
		best := c.representative(i, end)
		c.add(cuts[best].tensor, cuts[best].node, k)
	}
}

// addStart adds the cut at which a block begins (cut start) if that ends the stem or a block
// without a residual connection. end is the last cut of the block before, and next the step that
// joins the branches of the block that begins. A single layer between two blocks, such as one that
// halves the size, is not a block. Before a concatenation only a pooling ends the stem.
func (c *chooser) addStart(end, start int, next step) {
	cut := c.path.cuts[start]
	weighted := 0 // nodes with weights between the two blocks
	for _, between := range c.path.cuts[end+1 : start+1] {
		weighted += between.step.products
	}
	switch concat := next.op == "Concat"; {
	case len(c.found) == 0 && (!concat || pools[cut.step.op]):
		c.add(cut.tensor, cut.node, stem)
	case len(c.found) > 0 && !concat && weighted > 1:
		c.add(cut.tensor, cut.node, block)
	}
}

// blockEnd returns the index of the last cut of the block whose branches join at cut i. The cuts
// after i belong to the block as long as only activation functions and rearrangements of values lie
// between.
func (c *chooser) blockEnd(i int) int {
	for ; i+1 < len(c.path.cuts); i++ {
		if s := c.path.cuts[i+1].step; !s.activates() && (s.parallel || !arranges[s.op]) {
			break
		}
	}
	return i
}

// representative returns the index of the cut from first to last that represents a block:
// preferably one after an activation function, and with known axes of positions and channels.
func (c *chooser) representative(first, last int) int {
	best := first
	for i := first + 1; i <= last; i++ {
		hasAxes := c.hasClearAxes(c.path.cuts[i].tensor)
		if !c.hasClearAxes(c.path.cuts[best].tensor) && hasAxes || c.path.cuts[i].step.activates() && hasAxes {
			best = i
		}
	}
	return best
}

// hasClearAxes reports whether a tensor can be measured, has one channel axis and, if it has
// positions, known axes of them: H and W of pixels, or T of tokens.
func (c *chooser) hasClearAxes(name string) bool {
	l, ok := c.layers[name]
	return ok && slices.Contains([]tensor.Axes{"NCHW", "NHWC", "NTC", "NCT", "NC"}, l.Axes)
}

// markParts marks the candidates that end only a part of a block. In a transformer's block that is
// the sum of the attention branch. In blocks with convolutions and attention it is every sum but
// the last.
func (c *chooser) markParts() {
	for i := range len(c.found) - 1 {
		f, next := &c.found[i], c.found[i+1]
		switch {
		case positions(next.layer) != positions(f.layer):
		case c.mixed(*f):
			f.part = f.kind.ofBlock() && next.kind != block
		default:
			f.part = f.kind == attention && next.kind == perceptron
		}
	}
}

// mixed reports whether blocks of a candidate's size have both convolutions and attention.
func (c *chooser) mixed(f candidate) bool {
	var with [pooled + 1]bool // by kind, of which pooled is the last
	for _, other := range c.found {
		if positions(other.layer) == positions(f.layer) {
			with[other.kind] = true
		}
	}
	return with[block] && with[attention]
}

// addJoins adds the sums and concatenations of branches with weights that are not cuts: those
// inside dense blocks, and those of networks with parallel branches.
func (c *chooser) addJoins() {
	cuts := c.cutNames()
	for _, i := range c.path.joins() {
		if sum := c.path.nodes[i].Output[0]; c.hasClearAxes(sum) && !cuts[sum] {
			c.add(sum, i, block)
		}
	}
	c.sort()
}

func (c *chooser) cutNames() map[string]bool {
	names := map[string]bool{}
	for _, cut := range c.path.cuts {
		names[cut.tensor] = true
	}
	return names
}

// addActivations adds the outputs of activation functions. If candidates have been found before, it
// adds only those that every path goes through, between the blocks.
func (c *chooser) addActivations() {
	before := map[string]bool{} // inputs of a pooling or a Flatten
	for i, n := range c.path.nodes {
		if op := n.GetOpType(); pools[op] || op == "Flatten" {
			for in := range c.path.reads[i] {
				before[in] = true
			}
		}
	}
	cuts, hasBlocks := c.cutNames(), len(c.found) > 0
	for i, n := range c.path.nodes {
		tensor := n.Output[0]
		// Weights of channels (squeeze-and-excitation).
		gate := positions(c.layers[tensor]) == 1 && len(c.layers[tensor].Axes) > 2
		if !activations[n.GetOpType()] || !c.hasClearAxes(tensor) || gate || hasBlocks && !cuts[tensor] {
			continue
		}
		k := activation
		if before[tensor] {
			k = pooled
		}
		c.add(tensor, i, k)
	}
	c.sort()
}

func (c *chooser) sort() {
	slices.SortStableFunc(c.found, func(a, b candidate) int { return a.node - b.node })
}

// addStem adds the first activation before the first block, if no layer before that block is found.
func (c *chooser) addStem() {
	if len(c.found) == 0 || !c.found[0].kind.ofBlock() {
		return
	}
	for _, cut := range c.path.cuts {
		if cut.node >= c.found[0].node {
			return
		}
		if cut.step.activates() && c.hasClearAxes(cut.tensor) {
			c.found = slices.Insert(c.found, 0, candidate{layer: c.layers[cut.tensor], node: cut.node, kind: stem})
			return
		}
	}
}

// assignStages numbers the stages and writes the roles. A stage is a run of layers with the same
// number of positions.
func (c *chooser) assignStages() {
	stage, size := 0, -1 // the stages so far, and the number of positions in the last one
	for i := range c.found {
		f := &c.found[i]
		if f.kind == stem {
			continue
		}
		if n := positions(f.layer); n != size {
			stage, size = stage+1, n
		}
		f.stage = stage
	}
	for from := 0; from < len(c.found); {
		to := from + 1
		for to < len(c.found) && c.found[to].stage == c.found[from].stage {
			to++
		}
		c.writeRoles(c.found[from:to], stage)
		from = to
	}
}

func (c *chooser) writeRoles(layers []candidate, stages int) {
	total := map[string]int{}
	for _, f := range layers {
		if !f.part {
			total[f.kind.noun()]++
		}
	}
	number := map[string]int{}
	for i := range layers {
		f := &layers[i]
		noun := f.kind.noun()
		switch {
		case f.kind == stem:
			f.role = "stem"
			continue
		case positions(f.layer) <= 1:
			f.role = noun + " without positions"
			continue
		case f.part:
			f.role = fmt.Sprintf("inside of %s %d of %d", noun, number[noun]+1, total[noun])
		default:
			number[noun]++
			f.role = fmt.Sprintf("%s %d of %d", noun, number[noun], total[noun])
		}
		if stages > 1 {
			f.role = fmt.Sprintf("stage %d, %s", f.stage, f.role)
		}
		if f.kind == pooled {
			f.role += ", before pooling"
		}
	}
}

func (k kind) noun() string {
	if k.ofBlock() {
		return "block"
	}
	return "activation"
}

// positions returns the number of positions of a layer's maps, or of its tokens.
func positions(l tensor.Layer) int {
	n := 1
	for i, axis := range l.Axes {
		if strings.ContainsRune("HWT", axis) && i > 0 && i <= len(l.Shape) {
			n *= l.Shape[i-1]
		}
	}
	return n
}

// thin reduces the candidates to at most limit. It keeps the stem and, of each stage, the last
// layer and every s-th layer before it, with the smallest s that is sufficient. If there are more
// stages than limit, it keeps the last layers of evenly spaced ones, the first and the last
// included.
func thin(found []candidate, limit int) []candidate {
	var stages [][]candidate
	for i, f := range found {
		if i == 0 || found[i-1].stage != f.stage {
			stages = append(stages, nil)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], f)
	}
	// The number of layers decreases with s, so s is found by bisection.
	s := 1 + sort.Search(len(found), func(i int) bool {
		left := 0
		for _, stage := range stages {
			left += (len(stage) + i) / (i + 1)
		}
		return left <= limit
	})
	var out []candidate
	for _, stage := range stages {
		for i, f := range stage {
			if (len(stage)-1-i)%s == 0 {
				out = append(out, f)
			}
		}
	}
	if len(out) <= limit {
		return out
	}
	spaced := make([]candidate, limit)
	for i := range spaced {
		spaced[i] = out[i*(len(out)-1)/(limit-1)]
	}
	return spaced
}
