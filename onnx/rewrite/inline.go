package rewrite

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// maxNested is the largest depth of nested function calls and branches of If.
const maxNested = 64

// Inline replaces calls of functions in the main graph, and Ifs of known condition, by nodes.
// Remaining subgraphs, such as the body of a Loop, stay. Tensors of the main graph keep their
// names. Errors are calls that do not fit, other operator set versions, more than 64 levels, and
// more than onnx.MaxCalled (65536) nodes at one.
func Inline(m *onnx.Model) (*onnx.Model, error) {
	for depth := 0; ; depth++ {
		next, err := inlineOnce(m)
		if err != nil || next == nil {
			return m, err
		}
		if depth == maxNested {
			return nil, fmt.Errorf("inlining: functions and branches are nested deeper than %d levels", maxNested)
		}
		m = next
	}
}

// inlineOnce replaces the calls or, if there are none, the Ifs, and returns nil if there is nothing
// to replace.
func inlineOnce(m *onnx.Model) (*onnx.Model, error) {
	in := newInliner(m)
	changed, err := in.replace(in.functionBody)
	if err == nil && !changed && slices.ContainsFunc(m.Nodes(), isIf) {
		changed, err = in.replace(branchTaken(infer.Analyze(m)))
	}
	if err != nil {
		return nil, fmt.Errorf("inlining: %w", err)
	}
	if !changed {
		return nil, nil
	}
	return m.WithProto(in.proto), nil
}

func isIf(n *pb.NodeProto) bool { return n.GetOpType() == "If" && onnx.IsStandard(n) }

type inliner struct {
	proto     *pb.ModelProto
	functions map[pbutil.Function]*pb.FunctionProto
	tensors   nameSet // names of the tensors of the main graph
	nodes     nameSet // names of its nodes
}

func newInliner(m *onnx.Model) *inliner {
	p := pbutil.Shallow(m.Proto())
	p.Graph = pbutil.Shallow(p.Graph)
	p.Graph.Initializer, p.OpsetImport = slices.Clip(p.Graph.Initializer), slices.Clip(p.OpsetImport)
	in := &inliner{proto: p, functions: pbutil.Functions(p), tensors: nameSet{}, nodes: nameSet{}}
	for name := range m.ElementTypes() {
		in.tensors[name] = true
	}
	for _, n := range p.Graph.Node {
		in.nodes[n.GetName()] = true
	}
	return in
}

type nameSet map[string]bool

// free adds a name, with a number if it is in use, and returns it.
func (s nameSet) free(name string) string {
	free := name
	for i := 1; s[free]; i++ {
		free = fmt.Sprintf("%s_%d", name, i)
	}
	s[free] = true
	return free
}

// A body is the nodes that replace a node, before their tensors are renamed.
type body struct {
	nodes        []*pb.NodeProto
	initializers []*pb.TensorProto
	outputs      []string
	// inputs maps names of the body to names of the graph; others that it reads but does not
	// compute are the same.
	inputs     map[string]string
	attributes map[string]*pb.AttributeProto // values of the attributes that nodes refer to
}

// attribute returns an attribute, with the call's value if it refers to one of the call, or nil.
func (b *body) attribute(a *pb.AttributeProto) *pb.AttributeProto {
	ref := a.GetRefAttrName()
	if ref == "" {
		return a
	}
	value := b.attributes[ref]
	if value != nil {
		value = pbutil.Shallow(value)
		value.Name = a.Name
	}
	return value
}

func (in *inliner) replace(bodyOf func(*pb.NodeProto) (*body, error)) (changed bool, err error) {
	g := in.proto.Graph
	nodes := make([]*pb.NodeProto, 0, len(g.Node))
	added := 0
	for _, n := range g.Node {
		inner, err := bodyOf(n)
		if err != nil {
			return false, fmt.Errorf("%s: %w", onnx.Label(n), err)
		}
		if inner == nil {
			nodes = append(nodes, n)
			continue
		}
		changed = true
		unfolded := in.unfold(n, inner)
		nodes = append(nodes, unfolded...)
		if added += len(unfolded); added > onnx.MaxCalled {
			return false, fmt.Errorf("%s: nested functions expand to more than %d nodes", onnx.Label(n), onnx.MaxCalled)
		}
	}
	g.Node = nodes
	return changed, nil
}

// unfold returns the body's nodes under unused names; its outputs get the names of n's.
func (in *inliner) unfold(n *pb.NodeProto, inner *body) []*pb.NodeProto {
	scope := cmp.Or(n.GetName(), n.GetOpType()) + "/"
	r := pbutil.Renaming{
		Names:     maps.Clone(inner.inputs),
		Tensor:    func(name string) string { return in.tensors.free(scope + name) },
		NodeName:  func(n *pb.NodeProto) *string { return new(in.nodes.free(scope + n.GetOpType())) },
		Attribute: inner.attribute,
	}
	computed := map[string]bool{}
	for _, m := range inner.nodes {
		for _, out := range m.Output {
			computed[out] = true
		}
	}
	var copies []*pb.NodeProto
	for i, out := range n.Output {
		inside := inner.outputs[i]
		switch {
		case out == "":
		case computed[inside] && r.Names[inside] == "":
			r.Names[inside] = out
		default: // an input, a constant, or an output that has a name already
			copies = append(copies, &pb.NodeProto{
				OpType: new("Identity"), Name: new(in.nodes.free(out)), Input: []string{inside}, Output: []string{out},
			})
		}
	}
	for _, t := range inner.initializers {
		in.proto.Graph.Initializer = append(in.proto.Graph.Initializer, r.Initializer(t))
	}
	var nodes []*pb.NodeProto
	for _, m := range inner.nodes {
		nodes = append(nodes, r.Node(m))
	}
	for _, c := range copies {
		c.Input[0] = r.Use(c.Input[0])
	}
	return append(nodes, copies...)
}

// functionBody returns the body of a call of one of the model's functions, or nil for another node.
func (in *inliner) functionBody(n *pb.NodeProto) (*body, error) {
	f := in.function(n)
	if f == nil {
		return nil, nil
	}
	if len(n.Input) > len(f.Input) || len(n.Output) > len(f.Output) {
		return nil, fmt.Errorf("the function has %d inputs and %d outputs, and the call %d and %d", len(f.Input), len(f.Output), len(n.Input), len(n.Output))
	}
	if err := in.importOpsets(f.OpsetImport); err != nil {
		return nil, err
	}
	inner := &body{nodes: f.Node, outputs: f.Output, inputs: map[string]string{}, attributes: map[string]*pb.AttributeProto{}}
	for i, name := range f.Input {
		inner.inputs[name] = ""
		if i < len(n.Input) {
			inner.inputs[name] = n.Input[i]
		}
	}
	for _, raw := range pbutil.Unknown(f, functionDefaults) {
		a := new(pb.AttributeProto)
		if err := proto.Unmarshal(raw, a); err != nil {
			return nil, errors.New("a default attribute of the function cannot be decoded")
		}
		inner.attributes[a.GetName()] = a
	}
	for _, a := range n.Attribute {
		inner.attributes[a.GetName()] = a
	}
	return inner, nil
}

func (in *inliner) function(n *pb.NodeProto) *pb.FunctionProto { return in.functions[pbutil.Called(n)] }

// functionDefaults is the field number of default attributes, which package pb lacks.
const functionDefaults = 11

func (in *inliner) importOpsets(sets []*pb.OperatorSetIdProto) error {
	for _, s := range sets {
		i := slices.IndexFunc(in.proto.OpsetImport, func(o *pb.OperatorSetIdProto) bool { return o.GetDomain() == s.GetDomain() })
		if i < 0 {
			in.proto.OpsetImport = append(in.proto.OpsetImport, s)
			continue
		}
		if imported := in.proto.OpsetImport[i]; imported.GetVersion() != s.GetVersion() {
			return fmt.Errorf("the function uses version %d of operator set %q and the model version %d", s.GetVersion(), s.GetDomain(), imported.GetVersion())
		}
	}
	return nil
}

// branchTaken returns a function that returns the body of an If whose condition is known, or nil.
func branchTaken(info *infer.Info) func(*pb.NodeProto) (*body, error) {
	return func(n *pb.NodeProto) (*body, error) {
		if !isIf(n) || len(n.Input) != 1 {
			return nil, nil
		}
		condition, ok := info.Values(n.Input[0])
		if !ok || len(condition) != 1 {
			return nil, nil
		}
		branch := onnx.AttrGraph(n, "else_branch")
		if condition[0] != 0 {
			branch = onnx.AttrGraph(n, "then_branch")
		}
		if branch == nil || len(branch.Output) != len(n.Output) {
			return nil, errors.New("a branch is missing or has a different number of outputs")
		}
		inner := &body{nodes: branch.Node, inputs: map[string]string{}, initializers: branch.Initializer}
		for _, out := range branch.Output {
			inner.outputs = append(inner.outputs, out.GetName())
		}
		return inner, nil
	}
}
