package blocks

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A path is the subgraph between an input and one or several outputs, with all its branches: the
// nodes through which data flow from the input to an output, in the order of computation.
type path struct {
	nodes []*pb.NodeProto
	reads []map[string]bool // for each node, its inputs on the path
	cuts  []cut
}

// A cut is a tensor that every path from the input to the output goes through.
type cut struct {
	tensor string
	node   int  // index of the node that computes it
	step   step // from the cut before to this one
}

// InBranches returns the names of the layers inside a branch: some path from the input to the
// output, such as a shortcut, does not pass through them. Layers that every path passes through,
// such as those between residual blocks, and layers on no path are not returned.
func InBranches(g *onnx.Model, input, output string, layers []tensor.Layer) map[string]bool {
	p := findPath(g, input, output)
	cuts, out := map[string]bool{}, map[string]bool{}
	for _, c := range p.cuts {
		cuts[c.tensor] = true
	}
	for _, n := range p.nodes {
		for _, name := range n.Output {
			out[name] = !cuts[name]
		}
	}
	for name := range out {
		if !out[name] || !slices.ContainsFunc(layers, func(l tensor.Layer) bool { return l.Name == name }) {
			delete(out, name)
		}
	}
	return out
}

// findPath returns the path from the input to the outputs: the nodes that depend on the input's
// values and that an output depends on. Nodes that depend only on the shape of the input are not on
// the path.
func findPath(g *onnx.Model, input string, outputs ...string) *path {
	nodes := g.Nodes()
	forward := map[string]bool{input: true}
	for _, n := range nodes {
		if onnx.ReadsShapeOnly(n) {
			continue
		}
		for _, in := range onnx.Reads(n) {
			if forward[in] {
				for _, out := range n.Output {
					forward[out] = out != ""
				}
				break
			}
		}
	}
	needed := set(outputs...)
	on := make([]bool, len(nodes))
	for i := len(nodes) - 1; i >= 0; i-- {
		for _, out := range nodes[i].Output {
			on[i] = on[i] || forward[out] && needed[out]
		}
		if on[i] {
			for _, in := range onnx.Reads(nodes[i]) {
				needed[in] = needed[in] || forward[in]
			}
		}
	}
	p := &path{}
	for i, n := range nodes {
		if !on[i] {
			continue
		}
		reads := map[string]bool{}
		for _, in := range onnx.Reads(n) {
			if forward[in] {
				reads[in] = true
			}
		}
		p.nodes, p.reads = append(p.nodes, n), append(p.reads, reads)
	}
	p.findCuts(input, needed)
	return p
}

// findCuts lists the cuts in the order of computation. needed holds the tensors that an output
// depends on. In a list of nodes in this order, a tensor is a cut if it is its node's only output
// on the path and no later node reads an earlier tensor.
func (p *path) findCuts(input string, needed map[string]bool) {
	last := map[string]int{} // index of the last node that reads a tensor
	for i, reads := range p.reads {
		for name := range reads {
			last[name] = i
		}
	}
	// Index of the last reader of the tensors so far; node of the previous cut.
	reach, from := last[input], -1
	for i, n := range p.nodes {
		outputs := slices.DeleteFunc(slices.Clone(n.Output), func(out string) bool { return !needed[out] })
		if reach <= i && len(outputs) == 1 {
			p.cuts = append(p.cuts, cut{outputs[0], i, p.stepBetween(from, i)})
			from = i
		}
		for _, out := range outputs {
			reach = max(reach, last[out])
		}
	}
}

// A step describes the nodes between a cut and the previous cut.
type step struct {
	op       string // operator of the last node
	products int    // nodes that multiply by weights, or two tensors
	// There are several nodes, which are in branches: a chain would have a cut at each.
	parallel  bool
	attention bool // there is a softmax, or an operator for attention
	conv      bool // there is a convolution whose kernel has more than one position
	reduces   bool // some node pools, resizes or normalises
}

// stepBetween describes the nodes after index from, up to index to.
func (p *path) stepBetween(from, to int) step {
	s := step{op: p.nodes[to].GetOpType(), parallel: to-from > 1}
	for _, n := range p.nodes[from+1 : to+1] {
		op := n.GetOpType()
		if products[op] {
			s.products++
		}
		for _, size := range onnx.AttrInts(n, "kernel_shape") {
			s.conv = s.conv || products[op] && size > 1
		}
		s.attention = s.attention || op == "Softmax" || op == "Attention" || op == "MultiHeadAttention"
		s.reduces = s.reduces || pools[op] || normalises[op]
	}
	return s
}

// joins reports whether the step ends a block, such as a residual block: it joins branches, at
// least one of which has weights.
func (s step) joins() bool {
	return s.parallel && s.products > 0 && (s.op == "Add" || s.op == "Sum" || s.op == "Concat")
}

// activates reports whether the step is an activation function: a node, or branches without weights
// that end in a product.
func (s step) activates() bool {
	if s.parallel { // such as x * sigmoid(x)
		return s.products == 0 && !s.reduces && !s.attention && s.op == "Mul"
	}
	return activations[s.op]
}

// Operators with weights or products of two tensors; operators that reduce or change the number of
// positions; normalisations; activation functions; operators that keep or rearrange the values.
var (
	products    = set("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "Gemm", "MatMul", "Einsum", "MatMulInteger", "QLinearMatMul", "LSTM", "GRU", "RNN")
	pools       = set("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "Resize", "Upsample")
	normalises  = set("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization", "LpNormalization", "LRN")
	activations = set("Relu", "LeakyRelu", "PRelu", "Clip", "HardSwish", "Elu", "Selu", "Celu", "Gelu", "Mish", "Swish", "Tanh", "Sigmoid", "HardSigmoid", "Softplus", "Softsign", "ThresholdedRelu", "QuickGelu", "FastGelu")
	arranges    = set("Identity", "Cast", "Dropout", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "QuantizeLinear", "DequantizeLinear")
)

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, name := range names {
		m[name] = true
	}
	return m
}
