package parity

import (
	"slices"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// A network is a model's graph with links in both directions. It is empty for a model that is no
// graph.
type network struct {
	nodes    []*pb.NodeProto
	producer map[string]*pb.NodeProto   // of each tensor that a node computes
	readers  map[string][]*pb.NodeProto // of each tensor
	outputs  map[string]bool
	types    map[string]onnx.Type
	weights  map[string]*pb.TensorProto
}

func networkOf(m *model.Model) *network {
	g := &network{producer: map[string]*pb.NodeProto{}, readers: map[string][]*pb.NodeProto{}, outputs: map[string]bool{}, weights: map[string]*pb.TensorProto{}}
	graph := m.Graph()
	if graph == nil {
		return g
	}
	g.nodes, g.types = graph.Nodes(), graph.ElementTypes()
	for _, n := range g.nodes {
		for _, out := range n.Output {
			g.producer[out] = n
		}
		for _, name := range onnx.Reads(n) {
			g.readers[name] = append(g.readers[name], n)
		}
	}
	for _, out := range graph.Outputs() {
		g.outputs[out.Name] = true
	}
	for _, w := range graph.Proto().Graph.Initializer {
		g.weights[w.GetName()] = w
	}
	return g
}

// segment returns the nodes that compute a tensor from the nearest tensors of a set, in the order
// of the graph, and those tensors.
func (g *network) segment(name string, stop map[string]bool) (nodes []*pb.NodeProto, inputs []string) {
	seen := map[string]bool{}
	inside := map[*pb.NodeProto]bool{}
	var visit func(name string)
	visit = func(name string) {
		n := g.producer[name]
		if n == nil || inside[n] {
			return
		}
		inside[n] = true
		for _, in := range onnx.Reads(n) {
			if !seen[in] && stop[in] {
				inputs = append(inputs, in)
			}
			if !seen[in] && !stop[in] {
				visit(in)
			}
			seen[in] = true
		}
	}
	visit(name)
	nodes = slices.DeleteFunc(slices.Clone(g.nodes), func(n *pb.NodeProto) bool { return !inside[n] || n.GetOpType() == "Constant" })
	return nodes, inputs
}

// onlyReader returns the node that alone reads a tensor that is no output, or nil.
func (g *network) onlyReader(name string) *pb.NodeProto {
	if r := g.readers[name]; len(r) == 1 && !g.outputs[name] {
		return r[0]
	}
	return nil
}
