package onnx_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// TestBuilderNames checks the names of nodes and tensors. A node has the name of its scopes and
// operator, and a number if that name is taken. A tensor has the name of its node, and after a
// colon the index of the output if that is not 0.
func TestBuilderNames(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 2, 4)
	block := b.Scope("net").Scope("block")
	y := block.Relu(block.Relu(x))
	parts := block.Ops("Split", 2, onnx.Attrs{"axis": 1, "num_outputs": 2}, y)
	b.Output("left", parts[0])
	b.Output("", parts[1])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range m.Nodes() {
		names = append(append(names, n.GetName()), n.Output...)
	}
	want := []string{"net/block/Relu", "net/block/Relu", "net/block/Relu_1", "net/block/Relu_1", "net/block/Split", "left", "net/block/Split:1"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for i, want := range []string{"left float", "net/block/Split:1 float"} {
		if got := m.Outputs()[i].String(); got != want {
			t.Errorf("output %q, want %q", got, want)
		}
	}
}

// TestBuilderSharesConstants checks that equal constants are one tensor, and that different ones
// are not.
func TestBuilderSharesConstants(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	ints, scalar, number := b.Ints(1, 2), b.Scalar(0.5), b.Int(3)
	if inner := b.Scope("s"); ints != inner.Ints(1, 2) || scalar != inner.Scalar(0.5) || number != inner.Int(3) {
		t.Error("equal constants are different tensors")
	}
	// Int has rank 0 and Ints rank 1.
	different := []onnx.Value{b.Ints(1, 2), b.Ints(12), b.Ints(3), b.Int(3), b.Scalar(3), b.Scalar(0), b.Scalar(float32(math.Copysign(0, -1)))}
	for i, v := range different {
		if slices.Contains(different[:i], v) {
			t.Errorf("constant %d shares its tensor %s with a different constant", i, v)
		}
	}
}

// TestBuilderErrors checks that Model returns the first error, and that nothing is added after it.
func TestBuilderErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		build func(b *onnx.Builder, x onnx.Value)
		want  string
	}{
		{"no such tensor", func(b *onnx.Builder, x onnx.Value) { b.Scope("s").Add(x, "z") }, `input 1 of node "s/Add" is "z", which does not exist`},
		{"attribute type", func(b *onnx.Builder, x onnx.Value) { b.Op("Foo", onnx.Attrs{"a": 'c'}, x) }, `node "Foo": attribute a cannot hold a int32`},
		{"name taken", func(b *onnx.Builder, _ onnx.Value) { b.Input("x", onnx.Float, 1) }, `tensor "x" exists already`},
		{"too large", func(b *onnx.Builder, _ onnx.Value) { b.Full(1, 1<<20, 1<<20) }, "[1048576 1048576] is too large"},
		{"no name", func(b *onnx.Builder, _ onnx.Value) { b.Input("", onnx.Float, 1) }, "needs a name"},
		{"values missing", func(b *onnx.Builder, _ onnx.Value) { b.Const("w", tensor.Tensor{Shape: []int{2}}) }, `constant "w" has shape [2] but 0 values`},
		{"no such output", func(b *onnx.Builder, _ onnx.Value) { b.Output("y", "z") }, `output "y" is "z", which does not exist`},
		{"output name taken", func(b *onnx.Builder, x onnx.Value) { b.Output("w", b.Relu(b.Const("w", tensor.New(1)))) }, `tensor "w" exists already`},
		{"output twice", func(b *onnx.Builder, x onnx.Value) { b.Output("", x); b.Output("", x) }, `output "x" exists already`},
		{"no output", func(b *onnx.Builder, x onnx.Value) { b.Relu(x) }, "has no output"},
	} {
		b := onnx.NewBuilder(onnx.DefaultOpset)
		c.build(b, b.Input("x", onnx.Float, 1))
		if b.Err() != nil {
			b.Add("none", "none") // another error, which is not reported
			if v := b.Relu("x"); v != "" {
				t.Errorf("%s: a node is added after the error: %s", c.name, v)
			}
		}
		if _, err := b.Model(); err == nil || !strings.Contains(err.Error(), "building a graph: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// Output renames the tensor that becomes an output. Models that were returned before do not change,
// and the Value with the old name can still be used. An input, or a tensor that is an output
// already, keeps its name and is copied by an Identity.
func TestOutputRenames(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 1)
	h := b.Relu(x)
	b.Output("first", b.Exp(h))
	before, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	original := proto.Clone(before.Proto())
	b.Output("hidden", h)
	b.Output("again", h)
	b.Output("input", x)
	b.Output("last", b.Neg(h))
	after, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(original, proto.Message(before.Proto()), protocmp.Transform()); d != "" {
		t.Errorf("a model that was returned has changed: %s", d)
	}
	var graph []string
	for _, n := range after.Nodes() {
		graph = append(graph, n.GetOpType()+" "+n.Input[0]+" "+n.Output[0])
	}
	want := []string{"Relu x hidden", "Exp hidden first", "Identity hidden again", "Identity x input", "Neg hidden last"}
	if !slices.Equal(graph, want) {
		t.Errorf("%q, want %q", graph, want)
	}
}

// Extending a model by further outputs does not change it, and two extensions are independent. The
// model, small in model_test.go, computes y = ReLU(Add), where the tensor Add is x w + 1.
func TestExtend(t *testing.T) {
	t.Parallel()
	m := small(t)
	original := proto.Clone(m.Proto())
	var extended []*onnx.Model
	for range 2 {
		b := onnx.Extend(m)
		b.Output("norm", b.ReduceSum(b.Mul("Add", "Add"), false, 1))
		b.Output("weights", b.Neg("w"))
		e, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		extended = append(extended, e)
	}
	if d := cmp.Diff(original, proto.Message(m.Proto()), protocmp.Transform()); d != "" {
		t.Errorf("the model has changed: %s", d)
	}
	if d := cmp.Diff(extended[0].Proto(), extended[1].Proto(), protocmp.Transform()); d != "" {
		t.Errorf("two equal extensions differ: %s", d)
	}
	var names []string
	for _, p := range extended[0].Outputs() {
		names = append(names, p.Name)
	}
	if want := []string{"y", "norm", "weights"}; !slices.Equal(names, want) {
		t.Errorf("the outputs are %q, want %q", names, want)
	}
}

// TestOldOperatorSets checks that operators whose axes changed from an attribute to an input are
// written as the graph's operator set (opset) defines them. y has the axes N (batch) and C
// (channels).
func TestOldOperatorSets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opset  int
		inputs map[string]int // number of inputs by operator
	}{
		{9, map[string]int{"Unsqueeze": 1, "Squeeze": 1, "ReduceSum": 1, "ReduceMean": 1, "Slice": 1}},
		{12, map[string]int{"Unsqueeze": 1, "Squeeze": 1, "ReduceSum": 1, "ReduceMean": 1, "Slice": 5}},
		{13, map[string]int{"Unsqueeze": 2, "Squeeze": 2, "ReduceSum": 2, "ReduceMean": 1, "Slice": 5}},
		{18, map[string]int{"Unsqueeze": 2, "Squeeze": 2, "ReduceSum": 2, "ReduceMean": 2, "Slice": 5}},
	} {
		b := onnx.NewBuilder(c.opset)
		x := b.Input("x", onnx.Float, -1, 3, 4)
		x = b.Squeeze(b.Unsqueeze(x, 1), 1)
		x = b.ReduceSum(b.ReduceMean(b.Slice(x, 2, 0, 2, 1), true, 2), false, 2)
		b.Output("y", x)
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range m.Nodes() {
			if len(n.Input) != c.inputs[n.GetOpType()] {
				t.Errorf("opset %d: %s has %d inputs, want %d", c.opset, n.GetOpType(), len(n.Input), c.inputs[n.GetOpType()])
			}
		}
		if axes, err := infer.Axes(m, nil); err != nil || axes["y"] != "NC" {
			t.Errorf("opset %d: y has the axes %q, error %v; want NC", c.opset, axes["y"], err)
		}
	}
}

// randomModel returns a graph of random elementwise nodes, whose inputs are earlier tensors.
func randomModel(t *rapid.T) *onnx.Model {
	b := onnx.NewBuilder(rapid.IntRange(onnx.MinOpset, 21).Draw(t, "opset"))
	values := []onnx.Value{b.Input("x", onnx.Float, -1, 4), b.Const("w", tensor.New(4)), b.Scalar(2)}
	earlier := rapid.Custom(func(t *rapid.T) onnx.Value { return rapid.SampledFrom(values).Draw(t, "value") })
	for range rapid.IntRange(1, 20).Draw(t, "nodes") {
		s := b.Scope(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "scope"))
		switch rapid.IntRange(0, 2).Draw(t, "op") {
		case 0:
			values = append(values, s.Add(earlier.Draw(t, "x"), earlier.Draw(t, "y")))
		case 1:
			values = append(values, s.Relu(earlier.Draw(t, "x")))
		case 2:
			values = append(values, s.Mul(earlier.Draw(t, "x"), s.Scalar(float32(rapid.IntRange(0, 3).Draw(t, "factor")))))
		}
	}
	b.Output("y", values[len(values)-1])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBuildSerialiseParse checks that a model is equal after it is written and parsed.
func TestBuildSerialiseParse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := randomModel(t)
		data, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := onnx.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(m.Proto(), parsed.Proto(), protocmp.Transform()); d != "" {
			t.Fatal(d)
		}
	})
}
