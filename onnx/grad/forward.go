package grad

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
)

// AddJVP adds to m's outputs "jvp/" + o.Of, the derivative of o.Of along a direction in o.By.
// Directions are new inputs "tangent/" + the name, of that shape. Cotangent and Names are not used.
func AddJVP(m *onnx.Model, o Options) (*onnx.Model, error) {
	o, err := o.Defaults(m)
	if err != nil {
		return nil, fmt.Errorf("adding derivatives: %w", err)
	}
	b := onnx.Extend(m)
	of := onnx.Value(o.Of)
	var by, tangents []onnx.Value
	for _, name := range o.By {
		by = append(by, onnx.Value(name))
		if _, ok := b.Find(onnx.Value(name)); !ok {
			return nil, fmt.Errorf("adding derivatives: %w", errNoTensor("by", name, infer.Analyze(m)))
		}
		tangents = append(tangents, infer.InputLike(b, TangentName(name), onnx.Value(name)))
	}
	d, err := JVP(b, []onnx.Value{of}, by, tangents)
	if err != nil {
		return nil, err
	}
	infer.OutputLike(b, JVPName(o.Of), d[0], of)
	g, err := b.Model()
	if err != nil {
		return nil, fmt.Errorf("adding derivatives: %w", err)
	}
	return g, nil
}

// TangentName returns the name of the input of AddJVP for the direction in a tensor.
func TangentName(by string) string { return "tangent/" + by }

// JVPName returns the name of the output of AddJVP for a tensor.
func JVPName(of string) string { return "jvp/" + of }

// JVP adds and returns the derivatives at t = 0 of y where t dx[i] is added to each x[i]. Both have
// the shapes of y and x. The cost of one direction is about that of computing y.
func JVP(b *onnx.Builder, y, x, dx []onnx.Value) ([]onnx.Value, error) {
	if len(x) != len(dx) {
		return nil, fmt.Errorf("differentiating: %d tensors have %d tangents", len(x), len(dx))
	}
	if err := b.Err(); err != nil {
		return nil, err
	}
	check := &tape{b: b, info: infer.Analyze(b.Snapshot())} // only for its checks
	at := map[onnx.Value]Tangent{}
	for i := range x {
		v, d := check.current(x[i]), check.current(dx[i])
		if _, twice := at[v]; twice {
			return nil, fmt.Errorf("differentiating: %q has two tangents", x[i])
		}
		if err := check.checkDifferentiable(v, "by"); err != nil {
			return nil, fmt.Errorf("differentiating: %w", err)
		}
		if err := check.checkVector("tangent", d, v); err != nil {
			return nil, fmt.Errorf("differentiating: %w", err)
		}
		at[v] = func(b *onnx.Builder, arriving onnx.Value) onnx.Value {
			if arriving == "" {
				return d
			}
			return b.Add(arriving, d)
		}
	}
	return Pushforward(b, y, at)
}

// A Tangent returns a tensor's tangent, given that from the tensors before. Both have its shape, or
// are empty for zero. Nodes that it adds stay.
type Tangent func(b *onnx.Builder, arriving onnx.Value) onnx.Value

// Pushforward is JVP with tangents at any tensors: at replaces what arrives. It returns those of y.
func Pushforward(b *onnx.Builder, y []onnx.Value, at map[onnx.Value]Tangent) ([]onnx.Value, error) {
	tangents, err := Pushforwards(b, y, []map[onnx.Value]Tangent{at})
	if err != nil {
		return nil, err
	}
	return tangents[0], nil
}

// Pushforwards is Pushforward for several directions, which share what does not depend on them.
func Pushforwards(b *onnx.Builder, y []onnx.Value, directions []map[onnx.Value]Tangent) ([][]onnx.Value, error) {
	if err := b.Err(); err != nil {
		return nil, err
	}
	// The graph is copied, since parts of what is written to it are not needed in the end.
	written := onnx.Extend(b.Snapshot())
	f := &forward{plain: written.Scope("jvp"), kept: map[string]bool{}}
	changed := map[onnx.Value]bool{}
	current := make([]map[onnx.Value]Tangent, len(directions))
	for i, at := range directions {
		current[i] = map[onnx.Value]Tangent{}
		for v, tangent := range at {
			v, _ = b.Find(v)
			current[i][v], changed[v] = tangent, true
		}
	}
	y = slices.Clone(y)
	for i := range y {
		y[i], _ = b.Find(y[i]) // its present name
	}
	var err error
	f.tape, err = newTape(written, y, slices.Sorted(maps.Keys(changed)))
	if err != nil {
		return nil, fmt.Errorf("differentiating: %w", err)
	}
	// Without concats, a Concat's gradient is not added to an earlier one's. Rules that replace
	// nodes, as for an LSTM, call pullback.
	f.b, f.concats, f.pullback = f.plain.Sharing(), nil, Pullback
	f.weights = len(written.Snapshot().Proto().Graph.Initializer)
	f.needed = f.leadingTo(y)
	f.writeProducts()
	info := infer.Analyze(written.Snapshot())
	tangents := make([][]onnx.Value, len(directions))
	for i, at := range current {
		if f.err == nil {
			tangents[i] = f.push(at, info, y)
		}
	}
	if f.err != nil {
		return nil, fmt.Errorf("differentiating: %w", f.err)
	}
	if err := f.b.Err(); err != nil {
		return nil, err
	}
	b.Apply(func(*onnx.Model) (*onnx.Model, error) { return f.pruned(), nil })
	return tangents, b.Err()
}

// A forward is the state of forward-mode differentiation, from the first node to the last. Each y =
// f(x) gets
//
//	dy = (dy/dx) dx
//
// Linear operators apply to tangents. Others are differentiated twice in reverse: g = (dy/dx)^T u
// is linear in u, so the gradient of <g, dx> by u is the Jacobian-vector product. All g are written
// first; unread ones are removed.
type forward struct {
	*tape                    // the state of reverse mode, which writes the products g
	plain    *onnx.Builder   // adds nodes even if they equal earlier ones
	weights  int             // number of initializers of the graph itself
	needed   map[string]bool // tensors that results are computed from
	steps    []step
	at       map[onnx.Value]Tangent    // of the present direction
	tangents map[onnx.Value]onnx.Value // of the present direction; empty: zero
	kept     map[string]bool           // tensors that must not be removed
}

// A step is a node through which tangents flow, if not linear with its vector-Jacobian products.
type step struct {
	op      *operation
	outputs []int // indices of the outputs whose tangents are needed
	// By output: the u of its vector-Jacobian product; nil for a linear node.
	cotangent map[int]onnx.Value
	products  map[onnx.Value]onnx.Value // vector-Jacobian products by input; nil for a linear node
	nodes     []*pb.NodeProto           // that compute the products
}

func (f *forward) leadingTo(y []onnx.Value) map[string]bool {
	needed := map[string]bool{}
	for _, v := range y {
		needed[string(v)] = true
	}
	ancestors(f.nodes, needed)
	return needed
}

func ancestors(nodes []*pb.NodeProto, needed map[string]bool) {
	for _, n := range slices.Backward(nodes) {
		if computes(n, needed) {
			for _, in := range onnx.Reads(n) {
				needed[in] = true
			}
		}
	}
}

// writeProducts makes the steps and the vector-Jacobian products that are not linear.
func (f *forward) writeProducts() {
	for _, n := range f.nodes {
		if !f.readsActive(n) || piecewiseConstant[n.GetOpType()] {
			continue
		}
		s := step{op: &operation{Builder: f.b.Scope(scopeOf(n)).Sharing(), tape: f.tape, node: n}}
		for i, out := range n.Output {
			if out != "" && f.needed[out] && f.active[onnx.Value(out)] {
				s.outputs = append(s.outputs, i)
			}
		}
		if len(s.outputs) == 0 {
			continue
		}
		if !s.op.isLinear() {
			f.writeProduct(&s)
		}
		if f.err != nil {
			return
		}
		f.steps = append(f.steps, s)
	}
}

// The cotangents of writeProduct are copies of n's outputs, which nothing else reads.
func (f *forward) writeProduct(s *step) {
	f.gradients, f.unexpanded = map[onnx.Value]onnx.Value{}, map[onnx.Value]onnx.Value{}
	s.cotangent, s.products = map[int]onnx.Value{}, map[onnx.Value]onnx.Value{}
	for _, i := range s.outputs {
		y := s.op.y(i)
		u := f.plain.Identity(y)
		s.cotangent[i], f.gradients[y] = u, u
		f.blocked[u] = f.blockable(y) // whether ONNX Runtime keeps it in blocks of channels
	}
	start := len(f.b.Nodes())
	r := f.ruleOf(s.op.node)
	if r == nil {
		return
	}
	s.op.apply(r)
	for _, i := range s.op.inputs() {
		if x := s.op.x(i); f.active[x] && f.err == nil {
			s.products[x] = f.gradientOf(x)
		}
	}
	s.nodes = f.b.Nodes()[start:]
}

// push returns the tangents of y for one direction. info describes the graph with the products.
func (f *forward) push(at map[onnx.Value]Tangent, info *infer.Info, y []onnx.Value) []onnx.Value {
	f.at, f.tangents = at, map[onnx.Value]onnx.Value{}
	t := &tape{
		b: f.b, info: info, producers: f.producers, targets: map[onnx.Value]bool{}, active: map[onnx.Value]bool{},
		gradients: map[onnx.Value]onnx.Value{}, unexpanded: map[onnx.Value]onnx.Value{}, blocked: map[onnx.Value]bool{},
	}
	arrives := map[onnx.Value]bool{} // tensors that a step computes a tangent of
	for _, s := range f.steps {
		for _, i := range s.outputs {
			arrives[s.op.y(i)] = true
		}
	}
	for _, v := range slices.Sorted(maps.Keys(at)) {
		if !arrives[v] && f.needed[string(v)] {
			f.set(v, "") // an input of the differentiation: no tangent arrives
		}
	}
	for _, s := range f.steps {
		if s.products == nil {
			f.pushLinear(s.op)
		} else {
			f.pushTransposed(t, s)
		}
		if f.err != nil {
			return nil
		}
	}
	tangents := make([]onnx.Value, len(y))
	for i, v := range y {
		if tangents[i] = f.tangents[v]; tangents[i] == "" {
			tangents[i] = f.operation().filled(0, v)
		}
		f.kept[string(tangents[i])] = true
	}
	return tangents
}

// set sets the arriving tangent, or what the direction's Tangent makes of it.
func (f *forward) set(v, tangent onnx.Value) {
	if change := f.at[v]; change != nil {
		start := len(f.b.Nodes())
		f.kept[string(tangent)] = true
		tangent = change(f.b, tangent)
		for _, n := range f.b.Nodes()[start:] {
			for _, out := range n.Output {
				f.kept[out] = true
			}
		}
	}
	if tangent != "" {
		f.tangents[v] = tangent
	}
}

// pushTransposed computes the tangents of the outputs of a node from its vector-Jacobian products.
func (f *forward) pushTransposed(t *tape, s step) {
	for _, u := range s.cotangent {
		t.active[u] = true
	}
	for _, n := range s.nodes {
		t.activate(n)
	}
	for _, x := range slices.Sorted(maps.Keys(s.products)) {
		if g, dx := s.products[x], f.tangents[x]; g != "" && dx != "" {
			t.seed(g, dx)
		}
	}
	t.walk(s.nodes)
	if f.err = t.err; f.err != nil {
		return
	}
	for _, i := range s.outputs {
		f.set(s.op.y(i), t.gradientOf(s.cotangent[i]))
	}
}

func (f *forward) pruned() *onnx.Model {
	m := f.b.Snapshot()
	g := m.Proto().Graph
	own, added := g.Node[:len(f.nodes)], g.Node[len(f.nodes):]
	for _, n := range own {
		for _, name := range onnx.Reads(n) {
			f.kept[name] = true
		}
	}
	ancestors(added, f.kept)
	g.Node = slices.Clip(own)
	for _, n := range added {
		if computes(n, f.kept) {
			g.Node = append(g.Node, n)
		}
	}
	weights := g.Initializer
	g.Initializer = slices.Clip(weights[:f.weights])
	for _, w := range weights[f.weights:] {
		if f.kept[w.GetName()] {
			g.Initializer = append(g.Initializer, w)
		}
	}
	return m
}

func computes(n *pb.NodeProto, tensors map[string]bool) bool {
	return slices.ContainsFunc(n.Output, func(out string) bool { return out != "" && tensors[out] })
}
