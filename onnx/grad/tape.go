package grad

import (
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/spelling"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A tape is one walk from the results of a graph back to what they are differentiated by.
type tape struct {
	b       *onnx.Builder
	info    *infer.Info
	nodes   []*pb.NodeProto
	makers  map[onnx.Value]*pb.NodeProto
	active  map[onnx.Value]bool       // a gradient is wanted: it leads to a tensor to differentiate by
	targets map[onnx.Value]bool       // to be differentiated by
	sums    map[onnx.Value]onnx.Value // gradients so far
	joins   map[string]int            // see joinsOf
	err     error

	// Gradients that have yet to be repeated to the shape of their tensor: a sum with another one,
	// or a product, does that by itself.
	repeats map[onnx.Value]onnx.Value

	blockwise map[onnx.Value]bool // gradients that a runtime keeps in blocks of channels: see blocks.go

	// pullback is Pullback, for rules that write a node out and differentiate that.
	pullback func(b *onnx.Builder, y, dy []onnx.Value, by ...onnx.Value) ([]onnx.Value, error)
}

func newTape(b *onnx.Builder, y, by []onnx.Value) (*tape, error) {
	b.Apply(rewrite.Inline)
	b.Apply(rewrite.FixCeilMode)
	if b.Err() != nil {
		return nil, b.Err()
	}
	t := &tape{
		b: b.Scope("grad").Sharing(), info: infer.Analyze(b.Snapshot()), nodes: b.Nodes(),
		makers: map[onnx.Value]*pb.NodeProto{}, active: map[onnx.Value]bool{}, sums: map[onnx.Value]onnx.Value{}, repeats: map[onnx.Value]onnx.Value{},
		targets: map[onnx.Value]bool{}, blockwise: map[onnx.Value]bool{},
	}
	t.joins = joinsOf(t.nodes)
	for _, v := range by {
		if err := t.differentiable(t.current(v), "by"); err != nil {
			return nil, err
		}
		t.active[t.current(v)], t.targets[t.current(v)] = true, true
	}
	for _, v := range y {
		if err := t.differentiable(t.current(v), "of"); err != nil {
			return nil, err
		}
	}
	for _, n := range t.nodes {
		t.activate(n)
		for _, out := range n.Output {
			t.makers[onnx.Value(out)] = n
		}
	}
	return t, nil
}

// current is the present name of a tensor that the caller may know by an older one.
func (t *tape) current(v onnx.Value) onnx.Value {
	now, _ := t.b.Find(v)
	return now
}

// differentiable complains about a tensor that has no gradient.
func (t *tape) differentiable(v onnx.Value, role string) error {
	if !t.info.Has(string(v)) {
		return missing(role, string(v), t.info)
	}
	if !t.real(v) {
		return fmt.Errorf("%s %q: it holds %v, and only floating-point numbers have gradients", role, v, t.info.Type(string(v)))
	}
	return nil
}

// missing is the error for a tensor that the graph does not have.
func missing(role, name string, s *infer.Info) error {
	return fmt.Errorf("%s %q: the graph has no such tensor; near it: %q", role, name, spelling.Nearest(name, s.Names(), 3))
}

// checkCotangent complains about a cotangent that does not fit what it weighs.
func (t *tape) checkCotangent(dy, y onnx.Value) error {
	if dy == "" {
		return nil
	}
	if err := t.differentiable(dy, "cotangent"); err != nil {
		return err
	}
	a, b := t.info.Shape(string(dy)), t.info.Shape(string(y))
	differ := a != nil && b != nil && len(a) != len(b)
	for i := 0; !differ && i < min(len(a), len(b)); i++ {
		differ = a[i] >= 0 && b[i] >= 0 && a[i] != b[i]
	}
	if differ {
		return fmt.Errorf("cotangent %q has shape %s, and %q, which it weighs, %s", dy, sizes(a), y, sizes(b))
	}
	return nil
}

// sizes prints a shape, with a question mark for a free dimension.
func sizes(shape []int) string {
	list := make([]string, len(shape))
	for i, d := range shape {
		list[i] = "?"
		if d >= 0 {
			list[i] = fmt.Sprint(d)
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// real reports whether a tensor holds floating-point numbers, or may.
func (t *tape) real(v onnx.Value) bool {
	switch t.info.Type(string(v)) {
	case onnx.Float, onnx.Double, onnx.Float16, onnx.BFloat16, onnx.Undefined:
		return true
	}
	return false
}

// activate marks what a node makes of active tensors.
func (t *tape) activate(n *pb.NodeProto) {
	if piecewiseConstant[n.GetOpType()] {
		return
	}
	for _, name := range onnx.Reads(n) {
		if !t.active[onnx.Value(name)] {
			continue
		}
		for _, out := range n.Output {
			if out != "" && t.real(onnx.Value(out)) {
				t.active[onnx.Value(out)] = true
			}
		}
		return
	}
}

// seed starts at a result.
func (t *tape) seed(y, dy onnx.Value) {
	if !t.active[y] {
		return
	}
	if dy == "" {
		c := &vjp{Builder: t.b, tape: t}
		dy = c.filled(1, y)
	}
	t.add(y, dy)
}

// add adds a term to the gradient of v.
func (t *tape) add(v, term onnx.Value) {
	if sum := t.sums[v]; sum != "" {
		sum, term = t.together(v, sum, term)
		term = t.inBlocks(t.b.Add(sum, term), sum, term)
	} else if sum := t.repeats[v]; sum != "" {
		term = t.b.Add(sum, term)
	}
	t.sums[v] = term
	delete(t.repeats, v)
}

// addRepeated adds a term that has as many axes as v, some of size 1, and is to be repeated along
// these. What has one place for all channels cannot be put into blocks of them.
func (t *tape) addRepeated(v, term onnx.Value, channels bool) {
	if sum := t.sums[v]; sum != "" {
		if channels {
			t.add(v, term)
		} else {
			t.sums[v] = t.b.Add(sum, term)
		}
		return
	}
	if sum := t.repeats[v]; sum != "" {
		term = t.b.Add(sum, term)
	}
	t.repeats[v] = term
}

// compactGradientOf is the gradient of v so far, perhaps to be repeated; empty where there is none.
func (t *tape) compactGradientOf(v onnx.Value) onnx.Value {
	if sum := t.sums[v]; sum != "" {
		return sum
	}
	return t.repeats[v]
}

// gradientOf is the gradient of v so far, of its shape; empty where there is none.
func (t *tape) gradientOf(v onnx.Value) onnx.Value {
	if g := t.repeats[v]; g != "" {
		c := &vjp{Builder: t.b, tape: t}
		t.sums[v] = c.expandLike(g, v)
		delete(t.repeats, v)
	}
	return t.sums[v]
}

// walk applies the rule of each node through which a gradient flows, the last first.
func (t *tape) walk() {
	for i := len(t.nodes) - 1; i >= 0 && t.err == nil; i-- {
		n := t.nodes[i]
		c := &vjp{tape: t, node: n, index: i}
		flows := false
		for _, out := range n.Output {
			flows = flows || t.compactGradientOf(onnx.Value(out)) != ""
		}
		if !flows || !t.reached(n) || piecewiseConstant[n.GetOpType()] {
			continue
		}
		r := rules[n.GetOpType()]
		if r == nil || n.GetDomain() != "" && n.GetDomain() != "ai.onnx" {
			t.err = fmt.Errorf("%s: a gradient would have to flow through this operator, which has no rule", onnx.Label(n))
			return
		}
		c.Builder = t.b.Scope(scopeOf(n)).Sharing()
		c.apply(r)
	}
}

// apply applies a rule. Rules take a node to be as its operator is defined, as a runtime that loads
// the model makes sure it is; one with an axis that is not there, or too few numbers in a list,
// makes them reach out of bounds.
func (c *vjp) apply(r rule) {
	defer func() {
		if e := recover(); e != nil {
			c.fail("it is not as its operator is defined: check the axes, lists and shapes that it has (%v)", e)
		}
	}()
	r(c)
}

// reached reports whether a node reads what a gradient is wanted of.
func (t *tape) reached(n *pb.NodeProto) bool {
	for _, name := range onnx.Reads(n) {
		if t.active[onnx.Value(name)] {
			return true
		}
	}
	return false
}

// gradient is the whole gradient of v: zero where nothing flowed to it.
func (t *tape) gradient(v onnx.Value) onnx.Value {
	if g := t.gradientOf(v); g != "" {
		return g
	}
	c := &vjp{Builder: t.b, tape: t}
	return c.filled(0, v)
}
