package accel

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// A graph holds facts about the nodes of a model before they are rewritten.
type graph struct {
	static    *infer.Info
	producers map[string]*pb.NodeProto // the node that produces a tensor
	index     map[string]int           // the index of that node
	// uncast has the tensors that other nodes than a Cast read. One of booleans among them has no form
	// in NHWC, since only floats change their layout.
	uncast map[string]bool
}

func newGraph(b *onnx.Builder) *graph {
	g := &graph{static: infer.Analyze(b.Snapshot()), producers: map[string]*pb.NodeProto{}, index: map[string]int{}, uncast: map[string]bool{}}
	for i, n := range b.Nodes() {
		if !isOp(n, "Cast") {
			for _, t := range onnx.Reads(n) {
				g.uncast[t] = true
			}
		}
		for _, out := range n.Output {
			g.producers[out], g.index[out] = n, i
		}
	}
	return g
}

func isOp(n *pb.NodeProto, op string) bool {
	return n.GetOpType() == op && onnx.IsStandard(n) && len(n.Output) == 1
}

func (g *graph) producer(tensor, op string) (*pb.NodeProto, bool) {
	n := g.producers[tensor]
	return n, isOp(n, op)
}

func (g *graph) transposed(x string, perm ...int) (string, bool) {
	n, ok := g.producer(x, "Transpose")
	if !ok || !slices.Equal(onnx.AttrInts(n, "perm"), perm) {
		return "", false
	}
	return n.Input[0], true
}

func (g *graph) reshaped(x string) (string, bool) {
	n, ok := g.producer(x, "Reshape")
	if !ok {
		return "", false
	}
	return n.Input[0], true
}

func (g *graph) scalarValue(tensor string) (float64, bool) {
	v, ok := g.static.Values(tensor)
	if !ok || len(v) != 1 {
		return 0, false
	}
	return v[0], true
}

func (g *graph) isScalar(tensor string) bool {
	shape := g.static.Shape(tensor)
	// Free dimensions are negative.
	return shape != nil && !slices.ContainsFunc(shape, func(d int) bool { return d != 1 })
}

func (g *graph) product(tensor string) (x, scalar string, ok bool) {
	return g.operands(tensor, "Mul", g.isScalar)
}

// operands returns the inputs of the commutative operator op that produces a tensor; matched is the
// one for which matches holds.
func (g *graph) operands(tensor, op string, matches func(string) bool) (other, matched string, ok bool) {
	n, ok := g.producer(tensor, op)
	switch {
	case !ok || len(n.Input) != 2:
		return "", "", false
	case matches(n.Input[1]):
		return n.Input[0], n.Input[1], true
	case matches(n.Input[0]):
		return n.Input[1], n.Input[0], true
	}
	return "", "", false
}
