package onnx

import (
	"fmt"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Reads returns a node's inputs and the outer tensors that its subgraphs read.
func Reads(n *pb.NodeProto) []string {
	var names []string
	for _, in := range n.Input {
		if in != "" {
			names = append(names, in)
		}
	}
	for _, g := range pbutil.Subgraphs(n) {
		names = append(names, captured(g)...)
	}
	return names
}

// captured returns the outer tensors that a subgraph reads.
func captured(g *pb.GraphProto) []string {
	inner := initializers(g) // tensors of the subgraph, and outer ones that are listed already
	for _, in := range g.Input {
		inner[in.GetName()] = true
	}
	var names []string
	add := func(name string) {
		if !inner[name] {
			inner[name] = true
			names = append(names, name)
		}
	}
	for _, n := range g.Node {
		for _, name := range Reads(n) {
			add(name)
		}
		for _, out := range n.Output {
			inner[out] = true
		}
	}
	for _, out := range g.Output {
		add(out.GetName())
	}
	return names
}

// eachTensor calls f for every dense initializer and tensor attribute; where describes it for
// errors.
func eachTensor(p *pb.ModelProto, f func(t *pb.TensorProto, where string) error) error {
	return pbutil.EachGraph(p, func(g *pb.GraphProto) error {
		for _, t := range g.Initializer {
			if err := f(t, fmt.Sprintf("tensor %q", t.GetName())); err != nil {
				return err
			}
		}
		for _, n := range g.Node {
			for _, a := range n.Attribute {
				if a.T == nil {
					continue
				}
				if err := f(a.T, fmt.Sprintf("attribute %s of %s", a.GetName(), Label(n))); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Label describes a node in errors: its name, or its first output, with its operator.
func Label(n *pb.NodeProto) string {
	if n.GetName() != "" {
		return fmt.Sprintf("node %q (%s)", n.GetName(), n.GetOpType())
	}
	if len(n.Output) > 0 {
		return fmt.Sprintf("node (%s) of tensor %q", n.GetOpType(), n.Output[0])
	}
	return fmt.Sprintf("node (%s)", n.GetOpType())
}
