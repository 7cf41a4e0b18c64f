package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// rewriteGroups computes the groups of nodes that gain by it with the channels last, and reports whether there are any.
// Every tensor keeps its name in the usual layout, made by a node that may be unused: onnx.Model.WithOutputs drops these.
func rewriteGroups(b *onnx.Builder, outputs []string) bool {
	g, nodes := newGraph(b), b.Nodes()
	t := forwardTerms
	if slices.ContainsFunc(nodes, func(n *pb.NodeProto) bool {
		_, _, ok := g.masked(n)
		return len(n.Output) == 1 && ok
	}) {
		t = gradientTerms
	}
	chosen := groupsOf(g, nodes, normalised(nodes, outputs), t)
	if len(chosen) == 0 {
		return false
	}
	l := &layout{graph: g, b: b, chosen: chosen, last: map[string]onnx.Value{}, made: map[string]convolution{}, readers: map[string]int{}}
	for _, n := range nodes {
		for _, t := range onnx.Reads(n) {
			l.readers[t]++
		}
	}
	for _, t := range outputs {
		l.readers[t]++
	}
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if len(n.Output) != 1 || !chosen[n.Output[0]] {
			return nil
		}
		v := l.write(n)
		l.last[n.Output[0]] = v
		return b.Node(domain, channelsFirst, 1, nil, v)
	})
	return true
}

// A layout is a graph while groups of its nodes are rewritten.
type layout struct {
	*graph
	b       *onnx.Builder
	chosen  map[string]bool
	last    map[string]onnx.Value  // tensors with the channels last
	made    map[string]convolution // the convolution that ends in such a tensor
	readers map[string]int
}

// A convolution is a native one and what follows it in the same pass: the sum with an addend, ReLU, then a mask.
type convolution struct {
	op     string
	window window
	inputs []onnx.Value // x, w, bias, addend, mask
	relu   int
	side   int // of its tiles
}

const addend, mask = 3, 4

// write computes a node of a group.
func (l *layout) write(n *pb.NodeProto) onnx.Value {
	in, out := n.Input, n.Output[0]
	switch n.GetOpType() {
	case "Conv", "ConvTranspose":
		if l.isIdentity(n) {
			if c, ok := l.continued(in[0], mask); ok {
				l.made[out] = c
			}
			return l.of(in[0])
		}
		return l.writeConvolution(n)
	case "Relu":
		if c, ok := l.continued(in[0], 0); ok {
			c.relu = 1
			return l.convolve(n, c)
		}
	case "Add":
		for i, t := range in {
			if c, ok := l.continued(t, addend); ok {
				c.inputs[addend] = l.of(in[1-i])
				return l.convolve(n, c)
			}
		}
	case "Mul":
		dy, m, _ := l.masked(n)
		if c, ok := l.continued(dy, mask); ok && slices.Equal(l.static.Shape(dy), l.static.Shape(m)) {
			c.inputs[mask] = l.of(l.maskedBy(m))
			return l.convolve(n, c)
		}
	}
	return l.elementwise(n)
}

// elementwise is the same node for tensors with the channels last.
func (l *layout) elementwise(n *pb.NodeProto) onnx.Value {
	inputs := make([]onnx.Value, len(n.Input))
	for i, t := range n.Input {
		inputs[i] = onnx.Value(t)
		if i == 0 || n.GetOpType() != "Greater" {
			inputs[i] = l.of(t)
		}
	}
	switch n.GetOpType() {
	case "HardSigmoid":
		return l.b.Op("HardSigmoid", onnx.Attrs{"alpha": onnx.AttrFloat(n, "alpha", 0.2), "beta": onnx.AttrFloat(n, "beta", 0.5)}, inputs...)
	case "Cast":
		return l.b.Cast(inputs[0], onnx.Float)
	}
	return l.b.Op(n.GetOpType(), nil, inputs...)
}

func (l *layout) writeConvolution(n *pb.NodeProto) onnx.Value {
	w, _ := windowOf(l.static, n)
	c := convolution{op: convChannelsLast, window: w, inputs: []onnx.Value{l.of(n.Input[0]), onnx.Value(n.Input[1]), "", "", ""}}
	if n.GetOpType() == "ConvTranspose" {
		c.op = convTransposeChannelsLast
	} else if len(n.Input) > 2 {
		c.inputs[2] = onnx.Value(n.Input[2])
	}
	c.side = tileSide(l.static.Shape(n.Output[0]), l.static.Shape(n.Input[1]))
	return l.convolve(n, c)
}

// continued returns the convolution that made a tensor, if that has no other reader and a further step can follow: an
// addend, ReLU (0), or a mask, in this order.
func (l *layout) continued(t string, step int) (convolution, bool) {
	c, ok := l.made[t]
	if !ok || l.readers[t] != 1 || c.inputs[mask] != "" || step != mask && c.relu != 0 || step == addend && c.inputs[addend] != "" {
		return c, false
	}
	c.inputs = slices.Clone(c.inputs)
	return c, true
}

func (l *layout) convolve(n *pb.NodeProto, c convolution) onnx.Value {
	l.made[n.Output[0]] = c
	attrs := c.window.attrs()
	attrs["relu"], attrs["side"] = c.relu, c.side
	inputs := c.inputs
	for inputs[len(inputs)-1] == "" {
		inputs = inputs[:len(inputs)-1]
	}
	return l.b.Node(domain, c.op, 1, attrs, inputs...)[0]
}

// of returns a tensor with its channels last.
func (l *layout) of(t string) onnx.Value {
	v := l.last[t]
	if v == "" {
		v = l.b.Node(domain, channelsLast, 1, nil, onnx.Value(t))[0]
		l.last[t] = v
	}
	return v
}
