package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// Outputs of ConvChannelsLast: its result in NHWC, then in NCHW the result, the sum before ReLU,
// and the convolution without the addend.
const (
	resultNHWC = iota
	resultNCHW
	beforeReLU
	withoutAddend
	outputCount
)

// A fusion merges nodes into the native convolutions before them. A separate ChannelsFirst would be
// executed last, since no other node waits for it. It would read feature maps from memory once
// more.
type fusion struct {
	readers map[string]int           // number of nodes that read a tensor
	toNCHW  map[string]*pb.NodeProto // the ChannelsFirst of a tensor
	convs   map[string]*pb.NodeProto // convolutions by their results in NHWC
}

// fuseOutputs lets native convolutions write NCHW tensors. It merges ReLUs and sums with them even
// if the tensor before them is an output of the graph too. It changes the nodes that rewriteGroups
// has added, which no other model shares.
func fuseOutputs(m *onnx.Model) {
	nodes := m.Nodes()
	f := &fusion{countReaders(nodes, nil), map[string]*pb.NodeProto{}, map[string]*pb.NodeProto{}}
	for _, n := range nodes {
		switch n.GetOpType() {
		case convChannelsLast:
			f.convs[n.Output[resultNHWC]] = n
		case channelsFirst:
			f.toNCHW[n.Input[0]] = n
		}
	}
	for _, n := range nodes {
		f.fuse(n)
	}
	for _, n := range nodes {
		if n.GetOpType() == convChannelsLast {
			f.setOutputs(n)
		}
	}
}

func (f *fusion) fuse(n *pb.NodeProto) {
	switch n.GetOpType() {
	case "Relu":
		if c := f.convs[n.Input[0]]; c != nil && f.fusible(c) {
			f.replace(n, c, slices.Clone(c.Input), 1)
		}
	case "Add":
		for i, x := range n.Input {
			c := f.convs[x]
			if c == nil || n.Input[0] == n.Input[1] || len(c.Input) > addend || !f.fusible(c) {
				continue
			}
			inputs := append(slices.Clone(c.Input), make([]string, addend-len(c.Input))...)
			f.replace(n, c, append(inputs, n.Input[1-i]), 0)
			return
		}
	}
}

// fusible reports whether only one node reads c, not counting outputs, and its epilogue can be
// extended: with ReLU or a mask it cannot.
func (f *fusion) fusible(c *pb.NodeProto) bool {
	others := f.readers[c.Output[resultNHWC]] - 1
	if toNCHW := f.toNCHW[c.Output[resultNHWC]]; toNCHW != nil {
		others += f.readers[toNCHW.Output[0]] - 1
	}
	return others == 0 && onnx.AttrInt(c, "relu", 0) == 0 && len(c.Input) <= mask
}

// replace turns node n into the convolution c with other inputs and relu; n writes what c writes in
// NCHW, and c is unused afterwards.
func (f *fusion) replace(n, c *pb.NodeProto, inputs []string, relu int64) {
	stage := withoutAddend // at which n computes the result of c
	if len(c.Input) > addend {
		stage = beforeReLU
	}
	outputs := make([]string, outputCount)
	copy(outputs, c.Output)
	outputs[resultNHWC] = n.Output[0]
	f.takeNCHW(c.Output[resultNHWC], &outputs[stage])
	n.Domain, n.OpType, n.Input, n.Output, n.Attribute = c.Domain, c.OpType, inputs, outputs, slices.Clone(c.Attribute)
	for i, a := range n.Attribute {
		if a.GetName() == "relu" {
			n.Attribute[i] = &pb.AttributeProto{Name: a.Name, Type: a.Type, I: &relu}
		}
	}
	c.Output = c.Output[:1]
	f.convs[c.Output[resultNHWC]], f.convs[n.Output[resultNHWC]] = nil, n
}

// setOutputs lets c write NCHW if something needs that, and NHWC only if something needs that or c
// has a mask.
func (f *fusion) setOutputs(c *pb.NodeProto) {
	if f.convs[c.Output[resultNHWC]] != c {
		return
	}
	outputs := make([]string, outputCount)
	copy(outputs, c.Output)
	if f.takeNCHW(outputs[resultNHWC], &outputs[resultNCHW]) && f.readers[outputs[resultNHWC]] == 1 && len(c.Input) <= mask {
		outputs[resultNHWC] = ""
	}
	for outputs[len(outputs)-1] == "" {
		outputs = outputs[:len(outputs)-1]
	}
	c.Output = outputs
}

// takeNCHW sets name to that of the NCHW copy of a tensor, if there is one, so that the convolution
// writes it.
func (f *fusion) takeNCHW(tensor string, name *string) bool {
	toNCHW := f.toNCHW[tensor]
	if toNCHW == nil {
		return false
	}
	*name = toNCHW.Output[0]
	// a name that no node reads, so that Prune removes the node.
	toNCHW.Output[0] = "unread " + tensor
	return true
}
