package accel

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// An adamUpdate is the update of one parameter by Adam, as package train writes it:
//
//	m' = beta1 m + g;  v' = beta2 v + g g;  p' = k p - s m' / (sqrt v' + e)
//
// g is the gradient, m and v are its moments without the factors 1 - beta, s is the step size, e
// epsilon, and k the factor of AdamW's weight decay. s and e include those factors and
// Adam's bias correction.
type adamUpdate struct {
	p, g, m, v          string // names of tensors
	s, e, k             string // names of scalars; k is empty if it is 1
	beta1, beta2        float64
	nextP, nextM, nextV string // names of p', m' and v'
}

// rewriteAdam replaces the updates of Adam by native operators. It reports whether there are any.
func rewriteAdam(b *onnx.Builder) bool {
	g := newGraph(b)
	updates := map[string]adamUpdate{} // by the name of m' or v', whichever is computed first
	for i, n := range b.Nodes() {
		if u, ok := g.adamUpdateOf(n); ok {
			first := u.nextM
			if g.index[u.nextV] < g.index[first] {
				first = u.nextV
			}
			if g.available(g.index[first], u.p, u.g, u.m, u.v, u.s, u.e, u.k) && g.index[first] < i {
				updates[first] = u
			}
		}
	}
	if len(updates) == 0 {
		return false
	}
	results := map[string]onnx.Value{} // outputs of native operators, by the names of p', m' and v'
	b.Rewrite(func(n *pb.NodeProto) []onnx.Value {
		if len(n.Output) != 1 {
			return nil
		}
		if u, ok := updates[n.Output[0]]; ok {
			k := onnx.Value(u.k)
			if k == "" {
				k = b.Scalar(1)
			}
			next := b.Node(domain, adam, 3, onnx.Attrs{"beta1": u.beta1, "beta2": u.beta2},
				onnx.Value(u.p), onnx.Value(u.g), onnx.Value(u.m), onnx.Value(u.v), onnx.Value(u.s), onnx.Value(u.e), k)
			results[u.nextP], results[u.nextM], results[u.nextV] = next[0], next[1], next[2]
		}
		if v, ok := results[n.Output[0]]; ok {
			return []onnx.Value{v}
		}
		return nil
	})
	return true
}

func (g *graph) available(index int, tensors ...string) bool {
	for _, t := range tensors {
		if i, ok := g.index[t]; ok && i >= index {
			return false
		}
	}
	return true
}

// k is an input of the graph: if p is a product with a constant, that constant is not k.
func (g *graph) adamUpdateOf(n *pb.NodeProto) (adamUpdate, bool) {
	var u adamUpdate
	if !isOp(n, "Sub") || g.static.Type(n.Output[0]) != onnx.Float {
		return u, false
	}
	u.p, u.nextP = n.Input[0], n.Output[0]
	if p, k, ok := g.product(u.p); ok && !g.static.Constant(k) {
		u.p, u.k = p, k
	}
	step, s, ok := g.product(n.Input[1])
	if !ok {
		return u, false
	}
	u.s = s
	div, ok := g.producer(step, "Div")
	if !ok {
		return u, false
	}
	u.nextM = div.Input[0]
	root, e, ok := g.operands(div.Input[1], "Add", g.isScalar)
	if !ok {
		return u, false
	}
	u.e = e
	sqrt, ok := g.producer(root, "Sqrt")
	if !ok {
		return u, false
	}
	u.nextV = sqrt.Input[0]
	if u.m, u.g, u.beta1, ok = g.decayedSum(u.nextM); !ok {
		return u, false
	}
	var square string
	if u.v, square, u.beta2, ok = g.decayedSum(u.nextV); !ok {
		return u, false
	}
	mul, ok := g.producer(square, "Mul")
	return u, ok && mul.Input[0] == u.g && mul.Input[1] == u.g
}

// decayedSum returns the operands of a tensor that is beta x + y with a constant beta.
func (g *graph) decayedSum(sum string) (x, y string, beta float64, ok bool) {
	n, ok := g.producer(sum, "Add")
	if !ok {
		return "", "", 0, false
	}
	x, factor, ok := g.product(n.Input[0])
	if !ok {
		return "", "", 0, false
	}
	beta, ok = g.scalarValue(factor)
	return x, n.Input[1], beta, ok
}
