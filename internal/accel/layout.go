package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// rewriteGroups rewrites the groups that are faster in NHWC with native operators. For every tensor
// of a group it adds a node that converts the tensor to NCHW, under its old name. rewrite.Prune
// removes those that nothing reads.
func rewriteGroups(b *onnx.Builder, outputs []string) bool {
	g, nodes := newGraph(b), b.Nodes()
	for _, out := range outputs {
		g.uncast[out] = true
	}
	costs := forwardCosts
	if slices.ContainsFunc(nodes, func(n *pb.NodeProto) bool {
		_, _, ok := g.reluGradient(n)
		return len(n.Output) == 1 && ok
	}) {
		costs = gradientCosts
	}
	readers := countReaders(nodes, outputs)
	chosen := selectGroups(g, nodes, readByNormalisation(nodes, readers), costs)
	if len(chosen) == 0 {
		return false
	}
	l := &layout{graph: g, b: b, nhwc: map[string]onnx.Value{}, convolutions: map[string]convolution{}, readers: readers}
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if len(n.Output) != 1 || !chosen[n.Output[0]] {
			return nil
		}
		v := l.write(n)
		l.nhwc[n.Output[0]] = v
		return b.Node(domain, channelsFirst, 1, nil, v)
	})
	return true
}

type layout struct {
	*graph
	b    *onnx.Builder
	nhwc map[string]onnx.Value // tensors in NHWC, by name in NCHW
	// by the names of their results in NCHW
	convolutions map[string]convolution
	readers      map[string]int
}

// A convolution is a native convolution with its epilogue: the sum with an addend, ReLU, then a
// mask, which zeroes the result where another tensor is not positive.
type convolution struct {
	op     string
	window window       // strides, pads and dilations
	inputs []onnx.Value // x, w, bias, addend, mask
	relu   int          // 1: with ReLU; 0: without
	side   int          // side of the output tiles of Winograd's algorithm; see tileSide
}

// Indices of the inputs of a native convolution; ReLU has no input.
const addend, mask, reluStep = 3, 4, 0

func (l *layout) write(n *pb.NodeProto) onnx.Value {
	in, out := n.Input, n.Output[0]
	switch n.GetOpType() {
	case "Conv", "ConvTranspose":
		if l.isIdentity(n) { // its result is its input, whose convolution a mask may still extend
			if c, ok := l.fusible(in[0], mask); ok {
				l.convolutions[out] = c
			}
			return l.toNHWC(in[0])
		}
		return l.writeConvolution(n)
	case "Relu":
		if c, ok := l.fusible(in[0], reluStep); ok {
			c.relu = 1
			return l.convolve(n, c)
		}
	case "Add":
		for i, t := range in {
			if c, ok := l.fusible(t, addend); ok {
				c.inputs[addend] = l.toNHWC(in[1-i])
				return l.convolve(n, c)
			}
		}
	case "Mul":
		dy, m, _ := l.reluGradient(n)
		if c, ok := l.fusible(dy, mask); ok && slices.Equal(l.static.Shape(dy), l.static.Shape(m)) {
			c.inputs[mask] = l.toNHWC(l.maskSource(m)) // the tensor that is positive where m is 1
			return l.convolve(n, c)
		}
	}
	return l.writeElementwise(n)
}

// The second input of Greater is a scalar, which has no layout.
func (l *layout) writeElementwise(n *pb.NodeProto) onnx.Value {
	inputs := make([]onnx.Value, len(n.Input))
	for i, t := range n.Input {
		inputs[i] = onnx.Value(t)
		if i == 0 || n.GetOpType() != "Greater" {
			inputs[i] = l.toNHWC(t)
		}
	}
	switch n.GetOpType() {
	case "HardSigmoid":
		attrs := onnx.Attrs{"alpha": onnx.AttrFloat(n, "alpha", 0.2), "beta": onnx.AttrFloat(n, "beta", 0.5)}
		return l.b.Op("HardSigmoid", attrs, inputs...)
	case "Cast":
		return l.b.Cast(inputs[0], onnx.Float)
	}
	return l.b.Op(n.GetOpType(), nil, inputs...)
}

func (l *layout) writeConvolution(n *pb.NodeProto) onnx.Value {
	w, _ := windowOf(l.static, n)
	c := convolution{op: convChannelsLast, window: w, inputs: []onnx.Value{l.toNHWC(n.Input[0]), onnx.Value(n.Input[1]), "", "", ""}}
	if n.GetOpType() == "ConvTranspose" {
		c.op = convTransposeChannelsLast
	} else if len(n.Input) > 2 {
		c.inputs[2] = onnx.Value(n.Input[2])
	}
	c.side = tileSide(l.static.Shape(n.Output[0]), l.static.Shape(n.Input[1]))
	return l.convolve(n, c)
}

// fusible returns the convolution that produces t, if t has one reader and its epilogue can be
// extended by a step; the order is addend, reluStep, mask.
func (l *layout) fusible(t string, step int) (convolution, bool) {
	c, ok := l.convolutions[t]
	if !ok || l.readers[t] != 1 || c.inputs[mask] != "" || step != mask && c.relu != 0 || step == addend && c.inputs[addend] != "" {
		return c, false
	}
	c.inputs = slices.Clone(c.inputs)
	return c, true
}

func (l *layout) convolve(n *pb.NodeProto, c convolution) onnx.Value {
	l.convolutions[n.Output[0]] = c
	attrs := c.window.attrs()
	attrs["relu"], attrs["side"] = c.relu, c.side
	inputs := c.inputs
	for inputs[len(inputs)-1] == "" {
		inputs = inputs[:len(inputs)-1]
	}
	return l.b.Node(domain, c.op, 1, attrs, inputs...)[0]
}

func (l *layout) toNHWC(t string) onnx.Value {
	v := l.nhwc[t]
	if v == "" {
		v = l.b.Node(domain, channelsLast, 1, nil, onnx.Value(t))[0]
		l.nhwc[t] = v
	}
	return v
}
