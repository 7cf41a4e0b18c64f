package onnx

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// Bounds on what functions that call functions can make of a small file: nodes, and calls inside calls.
const (
	maxInlined = 1 << 16
	maxNested  = 64
)

// Inlined returns a model without calls of its own functions, and without an If whose condition is known before
// anything runs: their nodes stand in the main graph instead.
func (m *Model) Inlined() (*Model, error) {
	b := Extend(m)
	if b.Inline(); b.err != nil {
		return nil, fmt.Errorf("inlining: %w", b.err)
	}
	return b.Model()
}

// Inline replaces calls of the model's functions by their nodes, and each If whose condition is known before anything
// runs by the nodes of the branch that it takes. Tensors of the main graph keep their names.
func (b *Builder) Inline() {
	for depth := 0; b.err == nil && (b.inline(b.bodyOfFunction) || b.hasIf() && b.inline(b.takenBranch(b.Static()))); depth++ {
		if depth == maxNested {
			b.fail("its functions call one another more than %d times, or without end", maxNested)
		}
	}
}

func (b *Builder) hasIf() bool {
	return slices.ContainsFunc(b.model.proto.Graph.Node, func(n *pb.NodeProto) bool { return n.GetOpType() == "If" && standard(n) })
}

// A body is nodes that a node stands for, in names of their own.
type body struct {
	nodes        []*pb.NodeProto
	initializers []*pb.TensorProto
	outputs      []string
	inputs       map[string]string             // the tensors outside, by the names inside; others keep their names
	attributes   map[string]*pb.AttributeProto // what nodes refer to
}

// inline replaces, once, the nodes that have a body, and reports whether there were any.
func (b *Builder) inline(bodyOf func(*pb.NodeProto) (*body, error)) bool {
	g := b.model.proto.Graph
	nodes := make([]*pb.NodeProto, 0, len(g.Node))
	for _, n := range g.Node {
		inner, err := bodyOf(n)
		if err != nil {
			b.fail("%s: %w", label(n), err)
			return false
		}
		if inner == nil {
			nodes = append(nodes, n)
			continue
		}
		nodes = append(nodes, b.unfold(n, inner)...)
		if len(nodes) > maxInlined {
			b.fail("%s: functions that call functions make more than %d nodes", label(n), maxInlined)
			return false
		}
	}
	changed := len(nodes) != len(g.Node) || !slices.Equal(nodes, g.Node)
	g.Node = nodes
	return changed
}

// unfold is the nodes of a body under names that are free, with the outputs named as the node's.
func (b *Builder) unfold(n *pb.NodeProto, inner *body) []*pb.NodeProto {
	r := renamer{b: b, scope: n.GetName(), names: map[string]string{}, attributes: inner.attributes}
	if r.scope == "" {
		r.scope = n.GetOpType()
	}
	for name, outside := range inner.inputs {
		r.names[name] = outside
	}
	made := map[string]bool{}
	for _, m := range inner.nodes {
		for _, out := range m.Output {
			made[out] = true
		}
	}
	var copies []*pb.NodeProto
	for i, out := range n.Output {
		inside := inner.outputs[i]
		switch {
		case out == "":
		case made[inside] && r.names[inside] == "":
			r.names[inside] = out
		default: // an input, a constant, or an output that has a name already
			copies = append(copies, &pb.NodeProto{
				OpType: ptr("Identity"), Name: ptr(b.unique(b.nodes, out)), Input: []string{inside}, Output: []string{out},
			})
		}
	}
	for _, t := range inner.initializers {
		t = shallow(t)
		t.Name = ptr(r.own(t.GetName()))
		b.model.proto.Graph.Initializer = append(b.model.proto.Graph.Initializer, t)
	}
	var nodes []*pb.NodeProto
	for _, m := range inner.nodes {
		nodes = append(nodes, r.node(m))
	}
	for _, c := range copies {
		c.Input[0] = r.use(c.Input[0])
	}
	return append(nodes, copies...)
}

// bodyOfFunction is what a call of one of the model's functions stands for, nil for another node.
func (b *Builder) bodyOfFunction(n *pb.NodeProto) (*body, error) {
	f := b.function(n)
	if f == nil {
		return nil, nil
	}
	if len(n.Input) > len(f.Input) || len(n.Output) > len(f.Output) {
		return nil, fmt.Errorf("the function has %d inputs and %d outputs, and the call %d and %d", len(f.Input), len(f.Output), len(n.Input), len(n.Output))
	}
	if err := b.importOpsets(f.OpsetImport); err != nil {
		return nil, err
	}
	inner := &body{nodes: f.Node, outputs: f.Output, inputs: map[string]string{}, attributes: map[string]*pb.AttributeProto{}}
	for i, name := range f.Input {
		inner.inputs[name] = ""
		if i < len(n.Input) {
			inner.inputs[name] = n.Input[i]
		}
	}
	for _, raw := range newer(f, functionDefaults) {
		a := new(pb.AttributeProto)
		if err := proto.Unmarshal(raw, a); err != nil {
			return nil, errors.New("the function has a default that cannot be read")
		}
		inner.attributes[a.GetName()] = a
	}
	for _, a := range n.Attribute {
		inner.attributes[a.GetName()] = a
	}
	return inner, nil
}

func (b *Builder) function(n *pb.NodeProto) *pb.FunctionProto {
	for _, f := range b.model.proto.Functions {
		if f.GetName() == n.GetOpType() && f.GetDomain() == n.GetDomain() && overload(f, functionOverload) == overload(n, nodeOverload) {
			return f
		}
	}
	return nil
}

// Fields that came to the schema later than what is generated here.
const (
	functionDefaults = 11
	functionOverload = 13
	nodeOverload     = 8
)

// newer are the values of a field, strings or messages, that the generated schema does not know.
func newer(m proto.Message, field protowire.Number) [][]byte {
	var values [][]byte
	for raw := []byte(m.ProtoReflect().GetUnknown()); len(raw) > 0; {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return values
		}
		raw = raw[n:]
		if number == field && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(raw)
			if n < 0 {
				return values
			}
			values = append(values, value)
		}
		n = protowire.ConsumeFieldValue(number, kind, raw)
		if n < 0 {
			return values
		}
		raw = raw[n:]
	}
	return values
}

func overload(m proto.Message, field protowire.Number) string {
	if values := newer(m, field); len(values) > 0 {
		return string(values[len(values)-1])
	}
	return ""
}

// importOpsets makes the operator sets of a function those of the model, too.
func (b *Builder) importOpsets(sets []*pb.OperatorSetIdProto) error {
	for _, s := range sets {
		b.NeedDomain(s.GetDomain(), int(s.GetVersion()))
		for _, have := range b.model.proto.OpsetImport {
			if have.GetDomain() == s.GetDomain() && have.GetVersion() != s.GetVersion() {
				return fmt.Errorf("the function uses version %d of operator set %q and the model version %d", s.GetVersion(), s.GetDomain(), have.GetVersion())
			}
		}
	}
	return nil
}

// takenBranch returns a function that finds what an If stands for whose condition is known.
func (b *Builder) takenBranch(s *Static) func(*pb.NodeProto) (*body, error) {
	return func(n *pb.NodeProto) (*body, error) {
		if n.GetOpType() != "If" || !standard(n) || len(n.Input) != 1 {
			return nil, nil
		}
		condition, ok := s.Values(n.Input[0])
		if !ok || len(condition) != 1 {
			return nil, nil
		}
		branch := find(n, "else_branch").GetG()
		if condition[0] != 0 {
			branch = find(n, "then_branch").GetG()
		}
		if branch == nil || len(branch.Output) != len(n.Output) {
			return nil, errors.New("its branches are missing, or have another number of outputs than it has")
		}
		inner := &body{nodes: branch.Node, initializers: branch.Initializer}
		for _, out := range branch.Output {
			inner.outputs = append(inner.outputs, out.GetName())
		}
		return inner, nil
	}
}

// A renamer gives what a body defines names that are free in the graph.
type renamer struct {
	b          *Builder
	scope      string
	names      map[string]string
	attributes map[string]*pb.AttributeProto
}

// own is the new name of something that the body defines.
func (r *renamer) own(name string) string {
	if name == "" {
		return ""
	}
	if now, ok := r.names[name]; ok {
		return now
	}
	r.names[name] = r.b.unique(r.b.tensors, r.scope+"/"+name)
	return r.names[name]
}

// use is the name of a tensor that the body reads.
func (r *renamer) use(name string) string {
	if now, ok := r.names[name]; ok {
		return now
	}
	return name
}

func (r *renamer) node(n *pb.NodeProto) *pb.NodeProto {
	n = shallow(n)
	n.Name = ptr(r.b.unique(r.b.nodes, r.scope+"/"+n.GetOpType()))
	n.Input, n.Output = slices.Clone(n.Input), slices.Clone(n.Output)
	for i, in := range n.Input {
		n.Input[i] = r.use(in)
	}
	for i, out := range n.Output {
		n.Output[i] = r.own(out)
	}
	var attributes []*pb.AttributeProto
	for _, a := range n.Attribute {
		if a = r.attribute(a); a != nil {
			attributes = append(attributes, a)
		}
	}
	n.Attribute = attributes
	return n
}

// attribute puts the value that a function is called with in place of a reference; nil where there is none.
func (r *renamer) attribute(a *pb.AttributeProto) *pb.AttributeProto {
	if ref := a.GetRefAttrName(); ref != "" {
		value := r.attributes[ref]
		if value == nil {
			return nil
		}
		value = shallow(value)
		value.Name = a.Name
		return value
	}
	if a.G == nil && len(a.Graphs) == 0 {
		return a
	}
	a = shallow(a)
	if a.G != nil {
		a.G = r.graph(a.G)
	}
	a.Graphs = slices.Clone(a.Graphs)
	for i := range a.Graphs {
		a.Graphs[i] = r.graph(a.Graphs[i])
	}
	return a
}

// graph renames a graph inside the body. What it defines hides what is outside, and is renamed with the rest.
func (r *renamer) graph(g *pb.GraphProto) *pb.GraphProto {
	inner := &renamer{b: r.b, scope: r.scope, attributes: r.attributes, names: map[string]string{}}
	for name, now := range r.names {
		inner.names[name] = now
	}
	g = shallow(g)
	hide := func(name string) string {
		delete(inner.names, name)
		return inner.own(name)
	}
	g.Input, g.Initializer, g.Output = slices.Clone(g.Input), slices.Clone(g.Initializer), slices.Clone(g.Output)
	for i, v := range g.Input {
		g.Input[i] = shallow(v)
		g.Input[i].Name = ptr(hide(v.GetName()))
	}
	for i, t := range g.Initializer {
		g.Initializer[i] = shallow(t)
		g.Initializer[i].Name = ptr(hide(t.GetName()))
	}
	nodes := make([]*pb.NodeProto, len(g.Node))
	for i, n := range g.Node {
		for _, out := range n.Output {
			delete(inner.names, out)
		}
		nodes[i] = inner.node(n)
	}
	g.Node, g.ValueInfo = nodes, nil
	for i, v := range g.Output {
		g.Output[i] = shallow(v)
		g.Output[i].Name = ptr(inner.use(v.GetName()))
	}
	return g
}
