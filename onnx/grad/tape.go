package grad

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/spelling"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// A tape is the state of reverse-mode differentiation: the gradients so far.
type tape struct {
	b         *onnx.Builder                // adds the nodes of the gradients
	info      *infer.Info                  // of the graph before gradients were added
	nodes     []*pb.NodeProto              // of that graph, in topological order
	producers map[onnx.Value]*pb.NodeProto // by tensor, the node that computes it
	targets   map[onnx.Value]bool          // the tensors to differentiate by
	// Targets and tensors that depend on one, so that a gradient is wanted.
	active    map[onnx.Value]bool
	gradients map[onnx.Value]onnx.Value // by tensor, the sum of the terms of its gradient so far
	err       error                     // the first one

	// unexpanded gradients lack the shape of their tensor: sums or products can expand them without
	// Expand.
	unexpanded map[onnx.Value]onnx.Value

	// Gradients that a runtime keeps in blocks of channels: see blocked.go.
	blocked map[onnx.Value]bool
	concats map[string]int // indices of Concat nodes by their inputs: see concatsOf

	// pullback is Pullback, for rules that replace a node by several: called directly, it would
	// make rules' initialisation a cycle.
	pullback func(b *onnx.Builder, y, dy []onnx.Value, by ...onnx.Value) ([]onnx.Value, error)
}

// newTape first inlines functions and rewrites pools that round sizes up (rewrite.FixCeilMode).
func newTape(b *onnx.Builder, y, by []onnx.Value) (*tape, error) {
	b.Apply(rewrite.Inline)
	b.Apply(rewrite.FixCeilMode)
	if b.Err() != nil {
		return nil, b.Err()
	}
	t := &tape{
		b: b.Scope("grad").Sharing(), info: infer.Analyze(b.Snapshot()), nodes: b.Nodes(), concats: concatsOf(b.Nodes()),
		producers: map[onnx.Value]*pb.NodeProto{}, targets: map[onnx.Value]bool{}, active: map[onnx.Value]bool{},
		gradients: map[onnx.Value]onnx.Value{}, unexpanded: map[onnx.Value]onnx.Value{}, blocked: map[onnx.Value]bool{},
	}
	for _, v := range by {
		if err := t.checkDifferentiable(t.current(v), "by"); err != nil {
			return nil, err
		}
		t.active[t.current(v)], t.targets[t.current(v)] = true, true
	}
	for _, v := range y {
		if err := t.checkDifferentiable(t.current(v), "of"); err != nil {
			return nil, err
		}
	}
	for _, n := range t.nodes {
		t.activate(n)
		for _, out := range n.Output {
			t.producers[onnx.Value(out)] = n
		}
	}
	return t, nil
}

func (t *tape) current(v onnx.Value) onnx.Value {
	name, _ := t.b.Find(v)
	return name
}

// role is what the tensor is for the caller, such as "by".
func (t *tape) checkDifferentiable(v onnx.Value, role string) error {
	if !t.info.Has(string(v)) {
		return errNoTensor(role, string(v), t.info)
	}
	if !t.mayBeFloat(v) {
		return fmt.Errorf("%s %q: it holds %v, and only floating-point numbers have gradients", role, v, t.info.Type(string(v)))
	}
	return nil
}

func errNoTensor(role, name string, info *infer.Info) error {
	return fmt.Errorf("%s %q: the graph has no such tensor; similar names: %q", role, name, spelling.Nearest(name, info.Names(), 3))
}

// checkVector refuses a dy that does not exist, is no float or has not y's shape; role: cotangent
// or tangent; empty is allowed.
func (t *tape) checkVector(role string, dy, y onnx.Value) error {
	if dy == "" {
		return nil
	}
	if err := t.checkDifferentiable(dy, role); err != nil {
		return err
	}
	a, b := t.info.Shape(string(dy)), t.info.Shape(string(y))
	differ := a != nil && b != nil && len(a) != len(b)
	for i := 0; !differ && i < min(len(a), len(b)); i++ {
		differ = a[i] >= 0 && b[i] >= 0 && a[i] != b[i]
	}
	if differ {
		return fmt.Errorf("%s %q has shape %s, and its tensor %q has shape %s", role, dy, shapeString(a), y, shapeString(b))
	}
	return nil
}

// shapeString prints a shape, with a question mark for a free dimension.
func shapeString(shape []int) string {
	list := make([]string, len(shape))
	for i, d := range shape {
		list[i] = "?"
		if d >= 0 {
			list[i] = fmt.Sprint(d)
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// mayBeFloat reports whether a tensor holds floating-point numbers, or its type is unknown.
func (t *tape) mayBeFloat(v onnx.Value) bool {
	kind := t.info.Type(string(v))
	return kind.IsFloat() || kind == onnx.Undefined
}

func (t *tape) readsActive(n *pb.NodeProto) bool {
	return slices.ContainsFunc(onnx.Reads(n), func(name string) bool { return t.active[onnx.Value(name)] })
}

// carries reports whether a gradient may have to flow through a value: a tensor of floating-point
// numbers, or a sequence, an optional or a map, which may hold such tensors.
func (t *tape) carries(v onnx.Value) bool {
	return t.mayBeFloat(v) || t.info.Type(string(v)) == onnx.NoTensor
}

// activate marks outputs of a node with active inputs, unless piecewise constant or no floats.
func (t *tape) activate(n *pb.NodeProto) {
	if piecewiseConstant[n.GetOpType()] || !t.readsActive(n) {
		return
	}
	for _, out := range n.Output {
		if out != "" && t.carries(onnx.Value(out)) {
			t.active[onnx.Value(out)] = true
		}
	}
}

// seed adds dy (empty: ones) to y's gradient, unless y depends on no target.
func (t *tape) seed(y, dy onnx.Value) {
	if !t.active[y] {
		return
	}
	if dy == "" {
		dy = t.operation().filled(1, y)
	}
	t.add(y, dy)
}

// operation returns an operation without a node, for those methods of operation that need none.
func (t *tape) operation() *operation { return &operation{Builder: t.b, tape: t} }

func (t *tape) add(v, term onnx.Value) {
	if sum := t.gradients[v]; sum != "" {
		sum, term = t.toSameLayout(v, sum, term)
		term = t.markBlocked(t.b.Add(sum, term), sum, term)
	} else if sum := t.unexpanded[v]; sum != "" {
		term = t.b.Add(sum, term)
	}
	t.gradients[v] = term
	delete(t.unexpanded, v)
}

// addUnexpanded adds a term with size 1 along axes to be expanded; keepsChannels: not the channels,
// so it may be blocked (blocked.go).
func (t *tape) addUnexpanded(v, term onnx.Value, keepsChannels bool) {
	if sum := t.gradients[v]; sum != "" {
		if keepsChannels {
			t.add(v, term)
		} else {
			t.gradients[v] = t.b.Add(sum, term)
		}
		return
	}
	if sum := t.unexpanded[v]; sum != "" {
		term = t.b.Add(sum, term)
	}
	t.unexpanded[v] = term
}

// compactGradientOf may still have to be expanded; empty: none.
func (t *tape) compactGradientOf(v onnx.Value) onnx.Value {
	if sum := t.gradients[v]; sum != "" {
		return sum
	}
	return t.unexpanded[v]
}

// gradientOf is the gradient of v so far, of the shape of v. It is empty where there is none.
func (t *tape) gradientOf(v onnx.Value) onnx.Value {
	if g := t.unexpanded[v]; g != "" {
		t.gradients[v] = t.operation().expandLike(g, v)
		delete(t.unexpanded, v)
	}
	return t.gradients[v]
}

// gradientOrZero is the gradient of v, zero where none has flowed to it.
func (t *tape) gradientOrZero(v onnx.Value) onnx.Value {
	if g := t.gradientOf(v); g != "" {
		return g
	}
	return t.operation().filled(0, v)
}

// walk applies the rules of nodes with gradients, last to first.
func (t *tape) walk(nodes []*pb.NodeProto) {
	for i := len(nodes) - 1; i >= 0 && t.err == nil; i-- {
		n := nodes[i]
		hasGradient := slices.ContainsFunc(n.Output, func(out string) bool { return t.compactGradientOf(onnx.Value(out)) != "" })
		if !hasGradient || !t.readsActive(n) || piecewiseConstant[n.GetOpType()] {
			continue
		}
		r := t.ruleOf(n)
		if r == nil {
			return
		}
		op := &operation{Builder: t.b.Scope(scopeOf(n)).Sharing(), tape: t, node: n, index: i}
		op.apply(r)
	}
}

// ruleOf returns the rule of a node. If there is none, it records an error.
func (t *tape) ruleOf(n *pb.NodeProto) rule {
	r := rules[n.GetOpType()]
	if r == nil || !onnx.IsStandard(n) {
		t.err = fmt.Errorf("%s: a gradient would have to flow through this operator, which has no rule", onnx.Label(n))
		return nil
	}
	return r
}
