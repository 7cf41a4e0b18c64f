package rewrite_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
)

// text returns a pointer to s, for an optional field of a message.
func text(s string) *string { return &s }

func node(op, domain string, in, out []string, attributes ...*pb.AttributeProto) *pb.NodeProto {
	return &pb.NodeProto{OpType: &op, Domain: &domain, Input: in, Output: out, Attribute: attributes}
}

func float(name string, v float32) *pb.AttributeProto {
	return &pb.AttributeProto{Name: &name, Type: pb.AttributeProto_FLOAT.Enum(), F: &v}
}

// opsets returns the imports of operator sets, from versions by domain.
func opsets(versions map[string]int64) []*pb.OperatorSetIdProto {
	var list []*pb.OperatorSetIdProto
	for _, domain := range []string{"", "local"} {
		if v, ok := versions[domain]; ok {
			list = append(list, &pb.OperatorSetIdProto{Domain: text(domain), Version: &v})
		}
	}
	return list
}

// withFunctions returns a model from x to y, vectors of 4 numbers, with two calls of its function
// "twice". This calls the function "leaky", a LeakyRelu, with slope 0.5 and then with the default
// slope, 0.25. version is the operator set that leaky imports. ONNX stores the default in
// field 11 of FunctionProto, attribute_proto, which the package pb does not know.
func withFunctions(t *testing.T, version int64) *pb.ModelProto {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, 4)
	b.Output("y", b.Identity(x))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	p := proto.Clone(m.Proto()).(*pb.ModelProto)
	p.OpsetImport = opsets(map[string]int64{"": 17, "local": 1})
	slope := float("alpha", 0)
	slope.RefAttrName, slope.F = text("slope"), nil
	leaky := &pb.FunctionProto{
		Name: text("leaky"), Domain: text("local"), Input: []string{"a"}, Output: []string{"b"}, Attribute: []string{"slope"},
		Node:        []*pb.NodeProto{node("LeakyRelu", "", []string{"a"}, []string{"b"}, slope)},
		OpsetImport: opsets(map[string]int64{"": version}),
	}
	twice := &pb.FunctionProto{
		Name: text("twice"), Domain: text("local"), Input: []string{"a"}, Output: []string{"c"},
		Node: []*pb.NodeProto{
			node("leaky", "local", []string{"a"}, []string{"b"}, float("slope", 0.5)),
			node("leaky", "local", []string{"b"}, []string{"c"}),
		},
		OpsetImport: opsets(map[string]int64{"": 17, "local": 1}),
	}
	defaultSlope, err := proto.Marshal(float("slope", 0.25))
	if err != nil {
		t.Fatal(err)
	}
	raw := protowire.AppendBytes(protowire.AppendTag(nil, 11, protowire.BytesType), defaultSlope)
	leaky.ProtoReflect().SetUnknown(raw)
	p.Functions = []*pb.FunctionProto{leaky, twice}
	p.Graph.Node = []*pb.NodeProto{
		node("twice", "local", []string{"x"}, []string{"h"}),
		node("twice", "local", []string{"h"}, []string{"y"}),
	}
	return p
}

// parsed returns the model that is read from the bytes of p.
func parsed(t *testing.T, p *pb.ModelProto) *onnx.Model {
	t.Helper()
	raw, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Functions that call functions become nodes, with the attributes of the calls and the functions'
// defaults.
func TestInlineFunctions(t *testing.T) {
	t.Parallel()
	m, err := rewrite.Inline(parsed(t, withFunctions(t, 17)))
	if err != nil {
		t.Fatal(err)
	}
	var slopes []float32
	names := map[string]bool{}
	for _, n := range m.Nodes() {
		if n.GetOpType() != "LeakyRelu" {
			t.Errorf("%s is left", n.GetOpType())
		}
		slopes = append(slopes, onnx.AttrFloat(n, "alpha", -1))
		if names[n.Output[0]] {
			t.Errorf("%q is made twice", n.Output[0])
		}
		names[n.Output[0]] = true
	}
	if want := []float32{0.5, 0.25, 0.5, 0.25}; !slices.Equal(slopes, want) {
		t.Errorf("slopes are %v, want %v", slopes, want)
	}
	if !names["h"] || !names["y"] {
		t.Errorf("tensors of the main graph lost their names: %v", names)
	}
}

// TestInlineInLargeGraph checks that MaxCalled, the largest number of nodes that function calls may
// expand to, does not count the nodes of the graph itself.
func TestInlineInLargeGraph(t *testing.T) {
	t.Parallel()
	p := withFunctions(t, 17)
	for i := range onnx.MaxCalled {
		p.Graph.Node = append(p.Graph.Node, node("Identity", "", []string{"x"}, []string{fmt.Sprint("copy", i)}))
	}
	m, err := rewrite.Inline(parsed(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Nodes()); n != onnx.MaxCalled+4 { // the two calls expand to four nodes
		t.Errorf("%d nodes, want %d", n, onnx.MaxCalled+4)
	}
}

// TestInlineErrors checks errors, by the text wanted in them: a function imports another opset than
// the model's (17), calls are nested too deeply, and a call has more inputs than its function.
func TestInlineErrors(t *testing.T) {
	t.Parallel()
	deep := withFunctions(t, 17)
	for i := range 70 { // each calls the one before it
		f := proto.Clone(deep.Functions[1]).(*pb.FunctionProto)
		f.Name = new(fmt.Sprint("deep", i))
		callee := "twice"
		if i > 0 {
			callee = fmt.Sprint("deep", i-1)
		}
		f.Node = []*pb.NodeProto{node(callee, "local", f.Input, f.Output)}
		deep.Functions = append(deep.Functions, f)
	}
	deep.Graph.Node[0].OpType = new("deep69")
	tooManyInputs := withFunctions(t, 17)
	tooManyInputs.Graph.Node[1].Input = []string{"h", "h"}
	for want, p := range map[string]*pb.ModelProto{
		"version 15":            withFunctions(t, 15),
		"deeper than 64 levels": deep,
		"1 inputs":              tooManyInputs,
	} {
		if _, err := rewrite.Inline(parsed(t, p)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error is %v, want one line with %q", err, want)
		}
	}
}

// An If whose condition is arithmetic on a shape becomes the branch that it takes; one that depends
// on data stays.
func TestInlineIf(t *testing.T) {
	t.Parallel()
	branch := func(nodes []*pb.NodeProto, out string) *pb.GraphProto {
		return &pb.GraphProto{Name: text("branch"), Node: nodes, Output: []*pb.ValueInfoProto{{Name: &out}}}
	}
	build := func(dependsOnData bool) *onnx.Model {
		b := onnx.NewBuilder(17)
		x := b.Input("x", onnx.Float, -1, 4)
		width := b.Slice(b.Shape(x), 0, 1, 2, 1)
		condition := b.Squeeze(b.Op("Equal", nil, width, b.Ints(4)), 0)
		if dependsOnData {
			condition = b.Op("Greater", nil, b.ReduceSum(x, false), b.Scalar(0))
		}
		y := b.Op("If", onnx.Attrs{
			"then_branch": branch([]*pb.NodeProto{node("Relu", "", []string{"x"}, []string{"t"})}, "t"),
			"else_branch": branch(nil, "x"),
		}, condition)
		b.Output("y", y)
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		inlined, err := rewrite.Inline(m)
		if err != nil {
			t.Fatal(err)
		}
		return inlined
	}
	ops := func(m *onnx.Model) (list []string) {
		for _, n := range m.Nodes() {
			list = append(list, n.GetOpType())
		}
		return list
	}
	if got := ops(build(false)); slices.Contains(got, "If") || !slices.Contains(got, "Relu") {
		t.Errorf("nodes are %v", got)
	}
	if got := ops(build(true)); !slices.Contains(got, "If") {
		t.Errorf("nodes are %v", got)
	}
}
