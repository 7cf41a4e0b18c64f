package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// Outputs of a convolution with its channels last: the result, then the same with the channels first, as it is at the end, before max(0, .) and before more is added.
const (
	result = iota
	ended
	added
	summed
	results
)

// A tapping is a graph whose convolutions come to write what is read of them with the channels first. As nodes of their own, which nothing in the graph waits for,
// ChannelsFirst would all come after everything else: a second pass over memory, of feature maps that are kept for nothing else.
type tapping struct {
	nodes   []*pb.NodeProto
	readers map[string]int           // nodes that read a tensor
	outputs map[string]bool          // of the graph
	firsts  map[string]*pb.NodeProto // ChannelsFirst of a tensor
	made    map[string]*pb.NodeProto // convolutions by their results
}

// writeOutputs lets the native convolutions write the tensors that leave the layout, and end in a ReLU or a sum though what they make before that is an output too.
// It changes nodes that Lay has made, which no other model has.
func writeOutputs(m *onnx.Model, outputs []string) {
	t := &tapping{m.Nodes(), map[string]int{}, map[string]bool{}, map[string]*pb.NodeProto{}, map[string]*pb.NodeProto{}}
	for _, o := range outputs {
		t.outputs[o] = true
	}
	for _, n := range t.nodes {
		for _, x := range onnx.Reads(n) {
			t.readers[x]++
		}
		switch n.GetOpType() {
		case convChannelsLast:
			t.made[n.Output[result]] = n
		case channelsFirst:
			t.firsts[n.Input[0]] = n
		}
	}
	for _, n := range t.nodes {
		t.grow(n)
	}
	for _, n := range t.nodes {
		if n.GetOpType() == convChannelsLast {
			t.give(n)
		}
	}
}

// grow makes a ReLU or a sum, whose channels are last, the end of the convolution before it.
func (t *tapping) grow(n *pb.NodeProto) {
	switch n.GetOpType() {
	case "Relu":
		if c := t.made[n.Input[0]]; c != nil && t.ends(c) {
			t.become(n, c, slices.Clone(c.Input), 1)
		}
	case "Add":
		for i, x := range n.Input {
			c := t.made[x]
			if c == nil || n.Input[0] == n.Input[1] || len(c.Input) > addend || !t.ends(c) {
				continue
			}
			inputs := slices.Clone(c.Input)
			for len(inputs) < addend {
				inputs = append(inputs, "")
			}
			t.become(n, c, append(inputs, n.Input[1-i]), 0)
			return
		}
	}
}

// ends reports whether all that a convolution is read for, besides outputs of the graph, is one node, and it can go on there.
func (t *tapping) ends(c *pb.NodeProto) bool {
	others := t.readers[c.Output[result]] - 1
	if first := t.firsts[c.Output[result]]; first != nil {
		others += t.readers[first.Output[0]] - 1
	}
	return others == 0 && onnx.AttrInt(c, "relu", 0) == 0 && len(c.Input) <= mask
}

// become makes a node a convolution, with what that writes with its channels first, in place of another that nothing reads any more.
func (t *tapping) become(n, c *pb.NodeProto, inputs []string, relu int64) {
	which := summed
	if len(c.Input) > addend {
		which = added
	}
	outputs := make([]string, results)
	copy(outputs, c.Output)
	outputs[result] = n.Output[0]
	t.move(c.Output[result], &outputs[which])
	n.Domain, n.OpType, n.Input, n.Output, n.Attribute = c.Domain, c.OpType, inputs, outputs, slices.Clone(c.Attribute)
	for i, a := range n.Attribute {
		if a.GetName() == "relu" {
			n.Attribute[i] = &pb.AttributeProto{Name: a.Name, Type: a.Type, I: &relu}
		}
	}
	c.Output = c.Output[:1]
	t.made[c.Output[result]], t.made[n.Output[result]] = nil, n
}

// give lets a convolution write its result with the channels first where that is read, and no other where nothing reads it.
func (t *tapping) give(c *pb.NodeProto) {
	if t.made[c.Output[result]] != c {
		return
	}
	outputs := make([]string, results)
	copy(outputs, c.Output)
	if t.move(outputs[result], &outputs[ended]) && t.readers[outputs[result]] == 1 && len(c.Input) <= mask {
		outputs[result] = ""
	}
	for outputs[len(outputs)-1] == "" {
		outputs = outputs[:len(outputs)-1]
	}
	c.Output = outputs
}

// move takes the name of a tensor with its channels first from the node that makes it.
func (t *tapping) move(last string, to *string) bool {
	first := t.firsts[last]
	if first == nil {
		return false
	}
	*to = first.Output[0]
	first.Output[0] = "unread " + last
	return true
}
