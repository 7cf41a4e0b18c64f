package onnx

import (
	"fmt"

	"github.com/noether-ml/noether/onnx/pb"
)

// subgraphs are the graphs that a node holds (the branches of If, the body of Loop and Scan).
func subgraphs(n *pb.NodeProto) []*pb.GraphProto {
	var list []*pb.GraphProto
	for _, a := range n.Attribute {
		if a.G != nil {
			list = append(list, a.G)
		}
		list = append(list, a.Graphs...)
	}
	return list
}

// reads are the tensors that a node needs: its inputs, and what its subgraphs take from around them.
func reads(n *pb.NodeProto) []string {
	var names []string
	for _, in := range n.Input {
		if in != "" {
			names = append(names, in)
		}
	}
	for _, g := range subgraphs(n) {
		names = append(names, captured(g)...)
	}
	return names
}

// captured are the tensors that a subgraph reads and does not define.
func captured(g *pb.GraphProto) []string {
	own := initializers(g)
	for _, in := range g.Input {
		own[in.GetName()] = true
	}
	var names []string
	take := func(name string) {
		if !own[name] {
			own[name] = true // once is enough
			names = append(names, name)
		}
	}
	for _, n := range g.Node {
		for _, name := range reads(n) {
			take(name)
		}
		for _, out := range n.Output {
			own[out] = true
		}
	}
	for _, out := range g.Output {
		take(out.GetName())
	}
	return names
}

// eachGraph calls f for the graph of a model and all graphs inside it, those of functions included.
func eachGraph(p *pb.ModelProto, f func(*pb.GraphProto) error) error {
	if err := within(p.Graph, f); err != nil {
		return err
	}
	for _, fn := range p.Functions {
		if err := within(&pb.GraphProto{Node: fn.Node}, f); err != nil {
			return err
		}
	}
	return nil
}

func within(g *pb.GraphProto, f func(*pb.GraphProto) error) error {
	if err := f(g); err != nil {
		return err
	}
	for _, n := range g.Node {
		for _, sub := range subgraphs(n) {
			if err := within(sub, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachTensor calls f for every tensor that a model holds, initializers and constants in attributes, with a phrase that
// says where it is.
func eachTensor(p *pb.ModelProto, f func(t *pb.TensorProto, where string) error) error {
	return eachGraph(p, func(g *pb.GraphProto) error {
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
				if err := f(a.T, fmt.Sprintf("attribute %s of %s", a.GetName(), label(n))); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// label is how errors name a node: by its name, or by what it makes.
func label(n *pb.NodeProto) string {
	if n.GetName() != "" {
		return fmt.Sprintf("node %q (%s)", n.GetName(), n.GetOpType())
	}
	if len(n.Output) > 0 {
		return fmt.Sprintf("node (%s) of tensor %q", n.GetOpType(), n.Output[0])
	}
	return fmt.Sprintf("node (%s)", n.GetOpType())
}
