package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A graph is what is known of a builder's nodes before they are rewritten.
type graph struct {
	static *infer.Info
	makers map[string]*pb.NodeProto // the node that makes a tensor
	index  map[string]int           // the position of that node
}

func newGraph(b *onnx.Builder) *graph {
	g := &graph{static: infer.Analyze(b.Snapshot()), makers: map[string]*pb.NodeProto{}, index: map[string]int{}}
	for i, n := range b.Nodes() {
		for _, out := range n.Output {
			g.makers[out], g.index[out] = n, i
		}
	}
	return g
}

// isOp reports whether a node is a standard operator with one output.
func isOp(n *pb.NodeProto, op string) bool {
	return n.GetOpType() == op && (n.GetDomain() == "" || n.GetDomain() == "ai.onnx") && len(n.Output) == 1
}

// maker returns the node that makes a tensor, if it is of a standard operator.
func (g *graph) maker(tensor, op string) (*pb.NodeProto, bool) {
	n := g.makers[tensor]
	return n, isOp(n, op)
}

// transposed returns the tensor that x is the transpose of, by a permutation.
func (g *graph) transposed(x string, perm ...int) (string, bool) {
	n, ok := g.maker(x, "Transpose")
	if !ok || !slices.Equal(onnx.AttrInts(n, "perm"), perm) {
		return "", false
	}
	return n.Input[0], true
}

// reshaped returns the tensor that x is another shape of.
func (g *graph) reshaped(x string) (string, bool) {
	n, ok := g.maker(x, "Reshape")
	if !ok {
		return "", false
	}
	return n.Input[0], true
}

// number returns the value of a constant of one element.
func (g *graph) number(tensor string) (float64, bool) {
	v, ok := g.static.Values(tensor)
	if !ok || len(v) != 1 {
		return 0, false
	}
	return v[0], true
}

// isScalar reports whether a tensor is known to have one element.
func (g *graph) isScalar(tensor string) bool {
	shape := g.static.Shape(tensor)
	return shape != nil && elements(shape) == 1 && !slices.Contains(shape, -1)
}

// product returns the factors of a product, the one of one element second.
func (g *graph) product(tensor string) (x, scalar string, ok bool) {
	return g.operands(tensor, "Mul", g.isScalar)
}

// operands returns the two inputs of a commutative operator, the one that holds second.
func (g *graph) operands(tensor, op string, holds func(string) bool) (other, held string, ok bool) {
	n, ok := g.maker(tensor, op)
	switch {
	case !ok || len(n.Input) != 2:
		return "", "", false
	case holds(n.Input[1]):
		return n.Input[0], n.Input[1], true
	case holds(n.Input[0]):
		return n.Input[1], n.Input[0], true
	}
	return "", "", false
}
