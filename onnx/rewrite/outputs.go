package rewrite

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// WithOutputs returns a model with exactly the named outputs, in that order, and nothing that they
// do not need. It shares the weights of m. An unknown or repeated name, or none, is an error.
func WithOutputs(m *onnx.Model, names []string) (*onnx.Model, error) {
	types := m.ElementTypes()
	g := m.Proto().Graph
	declared := map[string]*pb.ValueInfoProto{}
	for _, v := range slices.Concat(g.ValueInfo, g.Input, g.Output) {
		declared[v.GetName()] = v
	}
	var outputs []*pb.ValueInfoProto
	taken := map[string]bool{}
	for _, name := range names {
		t, known := types[name]
		switch {
		case !known:
			return nil, fmt.Errorf("cutting a model: it has no tensor %q", name)
		case taken[name]:
			return nil, fmt.Errorf("cutting a model: tensor %q is requested twice", name)
		case declared[name] != nil:
			outputs = append(outputs, declared[name])
		case t == onnx.Undefined, t == onnx.NoTensor:
			outputs = append(outputs, &pb.ValueInfoProto{Name: &name}) // the runtime infers it
		default:
			outputs = append(outputs, onnx.ValueInfo{Name: name, Type: t}.Proto())
		}
		taken[name] = true
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("cutting a model: no outputs are requested")
	}
	g = pbutil.Shallow(g)
	g.Output = outputs
	prune(g)
	return m.WithGraph(g), nil
}

// TensorAsInput returns the model with v as an additional input, no longer an output. It is an
// error if no node computes the tensor. That node stays, its output renamed; WithOutputs removes
// what only the tensor needed.
func TensorAsInput(m *onnx.Model, v onnx.ValueInfo) (*onnx.Model, error) {
	g := pbutil.Shallow(m.Proto().Graph)
	g.Node = slices.Clone(g.Node)
	at := slices.IndexFunc(g.Node, func(n *pb.NodeProto) bool { return slices.Contains(n.Output, v.Name) })
	if at < 0 {
		return nil, fmt.Errorf("making a tensor an input: no node of the model computes %q", v.Name)
	}
	n := pbutil.Shallow(g.Node[at])
	n.Output = slices.Clone(n.Output)
	for i, out := range n.Output {
		if out == v.Name {
			n.Output[i] += " computed"
		}
	}
	g.Node[at] = n
	g.Input = append(slices.Clone(g.Input), v.Proto())
	g.Output = slices.DeleteFunc(slices.Clone(g.Output), func(o *pb.ValueInfoProto) bool { return o.GetName() == v.Name })
	g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), func(o *pb.ValueInfoProto) bool { return o.GetName() == v.Name })
	return m.WithGraph(g), nil
}

// Prune removes the nodes and weights that no output needs; inputs that are initializers become
// constants.
func Prune(m *onnx.Model) *onnx.Model {
	g := pbutil.Shallow(m.Proto().Graph)
	weights := map[string]bool{}
	for _, w := range g.Initializer {
		weights[w.GetName()] = true
	}
	inputs := slices.DeleteFunc(slices.Clone(g.Input), func(p *pb.ValueInfoProto) bool { return weights[p.GetName()] })
	prune(g)
	g.Input = inputs
	return m.WithGraph(g)
}

// prune removes what a graph's outputs do not need, declared types (value_info) included.
func prune(g *pb.GraphProto) {
	needed := map[string]bool{}
	for _, out := range g.Output {
		needed[out.GetName()] = true
	}
	var kept []*pb.NodeProto
	for _, n := range slices.Backward(g.Node) {
		if !slices.ContainsFunc(n.Output, func(out string) bool { return needed[out] }) {
			continue
		}
		kept = append(kept, n)
		for _, name := range onnx.Reads(n) {
			needed[name] = true
		}
	}
	slices.Reverse(kept)
	g.Node = kept
	// Outputs of a needed node keep their declarations, even if they are not needed themselves.
	for _, n := range kept {
		for _, out := range n.Output {
			needed[out] = true
		}
	}
	g.Input = filterNeeded(g.Input, needed)
	g.Initializer = filterNeeded(g.Initializer, needed)
	g.ValueInfo = filterNeeded(g.ValueInfo, needed)
	g.SparseInitializer = slices.DeleteFunc(slices.Clone(g.SparseInitializer), func(t *pb.SparseTensorProto) bool {
		return !needed[t.GetValues().GetName()]
	})
}

// filterNeeded returns a new list of the items whose name is needed.
func filterNeeded[T interface{ GetName() string }](list []T, needed map[string]bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return !needed[t.GetName()] })
}
