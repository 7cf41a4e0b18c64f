package channelslast

import (
	"slices"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A layout is a graph while nodes are put to channels last.
type layout struct {
	b       *onnx.Builder
	chosen  map[string]bool
	last    map[string]onnx.Value // tensors with channels last
	made    map[string]convolved  // of those, what a convolution ends with
	readers map[string]int
}

// A convolved is a convolution and what follows it in the same pass: more is added, then max(0, .) taken, then kept where a mask is positive.
type convolved struct {
	op     string
	attrs  onnx.Attrs
	inputs []onnx.Value // x, w, bias or dy, w, x; then more and mask
	relu   int
	side   int // of the squares that it goes by, if it does
}

const more, mask = 3, 4

// Lay computes the chosen nodes, and their gradients, with channels last. Every tensor keeps its name in the usual order, made by a
// node that nobody may need: onnx.Model.WithOutputs leaves those out. before is what was known of the graph before the gradients; tensors that
// are going to be outputs, as far as that is known, are made once.
func Lay(b *onnx.Builder, before *infer.Info, chosen map[string]bool, outputs ...string) {
	if len(chosen) == 0 {
		return
	}
	b.NeedDomain(kernels.Domain, 1)
	l := &layout{b: b, chosen: chosen, last: map[string]onnx.Value{}, made: map[string]convolved{}, readers: map[string]int{}}
	for _, n := range b.Nodes() {
		for _, t := range onnx.Reads(n) {
			l.readers[t]++
		}
	}
	for _, t := range outputs {
		l.readers[t]++
	}
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		v := l.write(before, n)
		if v == "" {
			return nil
		}
		l.last[n.Output[0]] = v
		return b.Node(kernels.Domain, kernels.ChannelsFirst, 1, nil, v)
	})
}

// write computes a node with channels last, if it is one of those.
func (l *layout) write(before *infer.Info, n *pb.NodeProto) onnx.Value {
	if n.GetDomain() == kernels.Domain {
		return l.writeGradient(before, n)
	}
	in := n.Input
	switch op := n.GetOpType(); {
	case op == "Conv" && l.chosen[n.Output[0]]:
		attrs, _ := Window(before, n)
		inputs := []onnx.Value{l.of(in[0]), onnx.Value(in[1]), "", "", ""}
		if len(in) > 2 {
			inputs[2] = onnx.Value(in[2])
		}
		return l.convolve(n, convolved{op: kernels.ConvolutionLast, attrs: attrs, inputs: inputs, side: sideOf(before.Shape(n.Output[0]), before.Shape(in[1]))})
	case op == "Relu" && l.chosen[n.Output[0]]:
		if c, ok := l.ends(in[0], 0); ok {
			c.relu = 1
			return l.convolve(n, c)
		}
		return l.b.Relu(l.of(in[0]))
	case op == "Add" && (l.chosen[n.Output[0]] || l.last[in[0]] != "" && l.last[in[1]] != "" && !before.Has(n.Output[0])):
		return l.writeSum(n)
	}
	return ""
}

// writeSum adds in the pass of the convolution that made one of the terms.
func (l *layout) writeSum(n *pb.NodeProto) onnx.Value {
	for i, t := range n.Input {
		if c, ok := l.ends(t, more); ok {
			c.inputs[more] = l.of(n.Input[1-i])
			return l.convolve(n, c)
		}
	}
	return l.b.Add(l.of(n.Input[0]), l.of(n.Input[1]))
}

func (l *layout) writeGradient(before *infer.Info, n *pb.NodeProto) onnx.Value {
	in := n.Input
	switch {
	case n.GetOpType() == kernels.ConvolutionInputGradient && l.last[in[2]] != "":
		attrs := onnx.Attrs{}
		for _, name := range []string{"strides", "dilations", "pads"} {
			attrs[name] = onnx.AttrInts(n, name)
		}
		return l.convolve(n, convolved{
			op: kernels.ConvolutionInputGradientLast, attrs: attrs, side: sideOf(before.Shape(in[2]), before.Shape(in[1])),
			inputs: []onnx.Value{l.of(in[0]), onnx.Value(in[1]), l.of(in[2]), "", ""},
		})
	case n.GetOpType() == kernels.ReluGradient && l.last[in[0]] != "":
		if c, ok := l.ends(in[1], mask); ok {
			c.inputs[mask] = l.of(in[0])
			return l.convolve(n, c)
		}
		return l.b.Node(kernels.Domain, kernels.ReluGradient, 1, nil, l.of(in[0]), l.of(in[1]))[0]
	}
	return ""
}

// ends gives the convolution that made a tensor, if that has no other reader and can go on: with more, max(0, .) or a mask, in this order.
func (l *layout) ends(t string, with int) (convolved, bool) {
	c, ok := l.made[t]
	if !ok || l.readers[t] != 1 || c.inputs[mask] != "" || with != mask && c.relu != 0 || with == more && c.inputs[more] != "" {
		return c, false
	}
	c.inputs = slices.Clone(c.inputs)
	return c, true
}

func (l *layout) convolve(n *pb.NodeProto, c convolved) onnx.Value {
	l.made[n.Output[0]] = c
	attrs := onnx.Attrs{"relu": c.relu, "side": c.side}
	for name, v := range c.attrs {
		attrs[name] = v
	}
	inputs := c.inputs
	for inputs[len(inputs)-1] == "" {
		inputs = inputs[:len(inputs)-1]
	}
	return l.b.Node(kernels.Domain, c.op, 1, attrs, inputs...)[0]
}

// of is a tensor with its channels last.
func (l *layout) of(t string) onnx.Value {
	v := l.last[t]
	if v == "" {
		v = l.b.Node(kernels.Domain, kernels.ChannelsLast, 1, nil, onnx.Value(t))[0]
		l.last[t] = v
	}
	return v
}
