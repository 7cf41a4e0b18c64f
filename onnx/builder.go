package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A Value is the name of a tensor of a graph that is being built; empty: an absent optional input.
// A tensor of an extended model is the Value of its name.
type Value string

// A Builder builds a graph node by node, in topological order. After the first error, which Model
// and Err return, calls add nothing more.
//
// Automatic names are "scope/Op", with a number added if that name is in use.
type Builder struct {
	*build
	scope string // ends with a slash, or is empty
	share bool   // do not add a node that equals an earlier one; see Sharing
}

// build is what Scope and Sharing share.
type build struct {
	model   *Model
	opset   int             // version of the standard operator set
	tensors map[string]bool // names of tensors in use
	nodes   map[string]bool // names of nodes in use
	local   map[string]bool // tensors that nodes of this builder compute
	// constants that are added only once, by a string of their type and values.
	constants map[string]Value
	// New names of tensors that Output or Replace has renamed, possibly several times.
	renamed    map[Value]Value
	outputs    map[string]bool // names of the outputs
	lastNumber map[string]int  // number of the last name with a number appended, by name
	// Outputs of nodes that sharing builders have added, by signature.
	sharedNodes map[string][]Value
	err         error
}

// NewBuilder returns a builder of an empty graph with the given version of the standard operator
// set.
func NewBuilder(opset int) *Builder {
	p := &pb.ModelProto{
		IrVersion:    new(irVersion(opset)),
		ProducerName: new("noether"),
		OpsetImport:  []*pb.OperatorSetIdProto{{Domain: new(""), Version: new(int64(opset))}},
		Graph:        &pb.GraphProto{Name: new("noether")},
	}
	b := newBuilder(&Model{proto: p}, opset)
	if opset < MinOpset {
		b.err = fmt.Errorf("opset %d is older than %d, the oldest that ONNX Runtime supports", opset, MinOpset)
	}
	return b
}

// Extend returns a builder that adds nodes to a copy of the graph of a model. New nodes may read
// its tensors. Its inputs and outputs are kept; rewrite.WithOutputs removes those that are not
// needed.
func Extend(m *Model) *Builder {
	b := newBuilder(m.copy(), m.Opset())
	g := b.model.proto.Graph
	g.Node, g.Initializer = slices.Clip(g.Node), slices.Clip(g.Initializer)
	g.Input, g.Output = slices.Clip(g.Input), slices.Clip(g.Output)
	b.reserveNames()
	return b
}

func (b *Builder) reserveNames() {
	for name := range b.model.ElementTypes() {
		b.tensors[name] = true
	}
	for _, n := range b.model.Nodes() {
		b.nodes[n.GetName()] = true
	}
	clear(b.outputs)
	for _, o := range b.model.proto.Graph.Output {
		b.outputs[o.GetName()] = true
	}
}

func newBuilder(m *Model, opset int) *Builder {
	return &Builder{build: &build{
		model: m, opset: opset, tensors: map[string]bool{}, nodes: map[string]bool{}, local: map[string]bool{},
		constants: map[string]Value{}, renamed: map[Value]Value{}, lastNumber: map[string]int{},
		sharedNodes: map[string][]Value{}, outputs: map[string]bool{},
	}}
}

// irVersion returns the IR version released with an operator set, within 8 to 11.
func irVersion(opset int) int64 {
	switch {
	case opset <= 18:
		return 8
	case opset <= 20:
		return 9
	case opset <= 22:
		return 10
	}
	return 11
}

// Scope returns a builder of the same graph whose automatic names begin with "name/".
func (b *Builder) Scope(name string) *Builder {
	return &Builder{b.build, b.scope + name + "/", b.share}
}

// Sharing returns a builder of the same graph that adds equal nodes once.
func (b *Builder) Sharing() *Builder { return &Builder{b.build, b.scope, true} }

// Opset returns the version of the standard operator set of the graph.
func (b *Builder) Opset() int { return b.opset }

// Err returns the first error, or nil.
func (b *Builder) Err() error {
	if b.err == nil {
		return nil
	}
	return fmt.Errorf("building a graph: %w", b.err)
}

// Model checks and returns the graph; later nodes are not in it.
func (b *Builder) Model() (*Model, error) {
	if b.err != nil {
		return nil, b.Err()
	}
	m := b.Snapshot()
	if len(m.proto.Graph.Output) == 0 {
		return nil, errors.New("building a graph: it has no output")
	}
	if err := check(m); err != nil {
		return nil, fmt.Errorf("building a graph: it %w", err)
	}
	m.typeOutputs()
	return m, nil
}

// typeOutputs declares inferred element types of outputs without one.
func (m *Model) typeOutputs() {
	types := m.ElementTypes()
	for i, out := range m.proto.Graph.Output {
		if t := types[out.GetName()]; out.Type == nil && t != Undefined {
			m.proto.Graph.Output[i] = ValueInfo{Name: out.GetName(), Type: t}.Proto()
		}
	}
}

// Input declares an input. A negative dimension is free, the first one then named "batch".
func (b *Builder) Input(name string, t Type, shape ...int) Value {
	dims := make([]Dim, len(shape))
	for i, d := range shape {
		dims[i].Size = max(d, -1)
		if i == 0 && d < 0 {
			dims[i].Symbol = "batch"
		}
	}
	return b.InputInfo(ValueInfo{Name: name, Type: t, Shape: dims})
}

// InputInfo declares an input with the name, type and shape of info.
func (b *Builder) InputInfo(info ValueInfo) Value {
	if !b.reserve(info.Name) {
		return ""
	}
	g := b.model.proto.Graph
	g.Input = append(g.Input, info.Proto())
	return Value(info.Name)
}

// Const adds a float32 initializer. If name is empty, a name is chosen.
func (b *Builder) Const(name string, t tensor.Tensor) Value {
	if tensor.Size(t.Shape) != len(t.Data) {
		b.Fail("constant %q has shape %v but %d values", name, t.Shape, len(t.Data))
		return ""
	}
	return b.Initializer(TensorProto(name, t))
}

// Initializer adds t, of any type, which the caller must not use afterwards. If it has no name, a
// name is chosen.
func (b *Builder) Initializer(t *pb.TensorProto) Value {
	if b.err != nil {
		return ""
	}
	if t.GetName() == "" {
		t.Name = new(b.unique(b.tensors, b.scope+"const"))
	} else if !b.reserve(t.GetName()) {
		return ""
	}
	g := b.model.proto.Graph
	g.Initializer = append(g.Initializer, t)
	return Value(t.GetName())
}

// Scalar returns a float32 constant of rank 0. Equal constants are one tensor.
func (b *Builder) Scalar(v float32) Value {
	return b.shared(fmt.Sprintf("float %b", v), TensorProto("", tensor.Tensor{Shape: []int{}, Data: []float32{v}}))
}

// Int returns an int64 constant of rank 0. Equal constants are one tensor.
func (b *Builder) Int(v int) Value {
	return b.shared(fmt.Sprintf("int %d", v), intProto("", nil, []int{v}))
}

// maxFull is the largest number of elements of a constant that Full returns.
const maxFull = 1 << 26

// Full returns a shared float32 constant of at most 2^26 elements v.
func (b *Builder) Full(v float32, shape ...int) Value {
	if n, err := pbutil.Elements(pbutil.Int64s(shape)); err != nil || n > maxFull {
		b.Fail("a constant of shape %v is too large", shape)
		return ""
	}
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = v
	}
	return b.shared(fmt.Sprintf("full %b %d", v, shape), TensorProto("", t))
}

// Ints returns a shared int64 constant of rank 1, such as a shape, axes or indices.
func (b *Builder) Ints(v ...int) Value {
	return b.shared(fmt.Sprintf("ints %d", v), intProto("", []int{len(v)}, v))
}

func (b *Builder) shared(key string, t *pb.TensorProto) Value {
	if v, ok := b.constants[key]; ok {
		return v
	}
	t.Name = nil
	top := Builder{build: b.build} // shared constants have no scope in their names
	v := top.Initializer(t)
	if b.err == nil {
		b.constants[key] = v
	}
	return v
}

// Op adds a node of the standard operator set with one output. attrs may be nil.
func (b *Builder) Op(op string, attrs Attrs, inputs ...Value) Value {
	return b.Ops(op, 1, attrs, inputs...)[0]
}

// Ops is Op for a node with the given number of outputs.
func (b *Builder) Ops(op string, outputs int, attrs Attrs, inputs ...Value) []Value {
	return b.Node("", op, outputs, attrs, inputs...)
}

// Node adds a node of any domain; those other than "" need NeedDomain.
func (b *Builder) Node(domain, op string, outputs int, attrs Attrs, inputs ...Value) []Value {
	values := make([]Value, outputs)
	if b.err != nil {
		return values
	}
	n := &pb.NodeProto{OpType: &op}
	if domain != "" {
		n.Domain = &domain
	}
	for i, in := range inputs {
		in = b.current(in)
		if in != "" && !b.tensors[string(in)] {
			b.Fail("input %d of node %q is %q, which does not exist", i, b.scope+op, in)
			return values
		}
		n.Input = append(n.Input, string(in))
	}
	var err error
	if n.Attribute, err = attrs.protos(); err != nil {
		b.Fail("node %q: %w", b.scope+op, err)
		return values
	}
	key := ""
	if b.share {
		key = signature(n, outputs)
		if outputs, ok := b.sharedNodes[key]; ok {
			return slices.Clone(outputs)
		}
	}
	n.Name = new(b.unique(b.nodes, b.scope+op))
	for i := range values {
		name := n.GetName()
		if outputs > 1 {
			name = fmt.Sprintf("%s:%d", name, i)
		}
		name = b.unique(b.tensors, name)
		b.local[name] = true
		n.Output = append(n.Output, name)
		values[i] = Value(name)
	}
	b.model.proto.Graph.Node = append(b.model.proto.Graph.Node, n)
	if key != "" {
		b.sharedNodes[key] = slices.Clone(values)
	}
	return values
}

// signature is equal for nodes that compute the same from the same inputs, and empty where copies
// may differ, as with random numbers.
func signature(n *pb.NodeProto, outputs int) string {
	if strings.HasPrefix(n.GetOpType(), "Random") || slices.Contains([]string{"Bernoulli", "Multinomial", "Dropout"}, n.GetOpType()) {
		return ""
	}
	key := fmt.Appendf(nil, "%q %q %d %q", n.GetDomain(), n.GetOpType(), outputs, n.Input)
	for _, a := range n.Attribute {
		raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
		if err != nil {
			return ""
		}
		key = append(key, raw...)
	}
	return string(key)
}

// NeedDomain declares another operator domain, such as "com.microsoft".
func (b *Builder) NeedDomain(domain string, version int) {
	p := b.model.proto
	for _, o := range p.OpsetImport {
		if o.GetDomain() == domain {
			return
		}
	}
	p.OpsetImport = append(slices.Clip(p.OpsetImport), &pb.OperatorSetIdProto{Domain: &domain, Version: new(int64(version))})
}

// Fail records an error, unless there is one already.
func (b *Builder) Fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

// reserve reserves a caller's name, or leaves an error and returns false.
func (b *Builder) reserve(name string) bool {
	switch {
	case b.err != nil:
		return false
	case name == "":
		b.Fail("a tensor needs a name")
		return false
	case b.tensors[name]:
		b.Fail("tensor %q exists already", name)
		return false
	}
	b.tensors[name] = true
	return true
}

// unique adds name or, if it is taken, name_1, name_2 and so on, and returns it.
func (b *Builder) unique(taken map[string]bool, name string) string {
	free := name
	for taken[free] {
		b.lastNumber[name]++
		free = fmt.Sprintf("%s_%d", name, b.lastNumber[name])
	}
	taken[free] = true
	return free
}
