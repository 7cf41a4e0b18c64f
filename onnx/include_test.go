package onnx_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// scaledReLU returns the model y = w relu(x).
func scaledReLU(t *testing.T, opset int, w float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	x := b.Input("x", onnx.Float, -1, 2)
	b.Output("y", b.Mul(b.Const("w", tensor.Tensor{Shape: []int{1}, Data: []float32{w}}), b.Relu(x)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// softmax returns a model of opset 12. In opset 13 its node has another meaning, since the default
// of the attribute axis changed from 1 to -1.
func softmax(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(12)
	b.Output("y", b.Scope("scope").Op("Softmax", nil, b.Input("x", onnx.Float, -1, 2)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A model is compatible with a later version of the operator set (opset) if no node has another
// meaning there. Comparisons are limited to opsets 11 to 18.
func TestCompatibleWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		from, to   int
		add        func(b *onnx.Builder, x onnx.Value) onnx.Value
		compatible bool // CompatibleWith(to) returns no error
	}{
		{"the same opset", 12, 12, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Softmax", nil, x) }, true},
		{"softmax over the last axis", 12, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Softmax", onnx.Attrs{"axis": -1}, x)
		}, true},
		{"softmax over the second axis", 12, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Softmax", onnx.Attrs{"axis": 1}, x)
		}, false},
		{"softmax of opset 13", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Softmax", nil, x) }, true},
		{"mean, whose axes became an input in opset 18, up to 17", 11, 17, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceMean(x, true, 1) }, true},
		{"mean up to 18", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceMean(x, true, 1) }, false},
		{"sum, whose axes became an input in opset 13", 12, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceSum(x, true, 1) }, false},
		{"sum from 13 on", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceSum(x, true, 1) }, true},
		{"split into equal parts", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Ops("Split", 2, onnx.Attrs{"axis": 1}, x)[0] }, false},
		{"from below 11", 10, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
		{"to above 18", 17, 21, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
		{"to an earlier opset", 17, 16, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
	} {
		b := onnx.NewBuilder(c.from)
		b.Output("y", c.add(b, b.Input("x", onnx.Float, -1, 2)))
		m, err := b.Model()
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := m.CompatibleWith(c.to); (err == nil) != c.compatible {
			t.Errorf("%s from %d to %d: %v", c.name, c.from, c.to, err)
		}
	}
}

// TestIncludeNames checks that included tensors get the prefix of a scope, or a number if their
// name exists.
func TestIncludeNames(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 2)
	first := b.Include(scaledReLU(t, 17, 2), map[string]onnx.Value{"x": x})
	second := b.Scope("again").Include(scaledReLU(t, 13, 3), map[string]onnx.Value{"x": first[0]})
	third := b.Include(scaledReLU(t, 17, 5), map[string]onnx.Value{"x": second[0]})
	b.Output("z", third[0])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if first[0] != "y" || second[0] != "again/y" || third[0] != "y_1" {
		t.Errorf("the outputs are called %q, %q and %q", first[0], second[0], third[0])
	}
	for name, want := range map[string]float32{"w": 2, "again/w": 3, "w_1": 5} {
		w, err := m.Tensor(name)
		if err != nil || w.Data[0] != want {
			t.Errorf("weight %q is %v (%v), want %v", name, w.Data, err, want)
		}
	}
}

// TestIncludeIntoDomainAIONNX includes a model in one whose nodes have the domain "ai.onnx", the
// long form of "". The result imports one operator set, and all nodes are standard operators.
func TestIncludeIntoDomainAIONNX(t *testing.T) {
	t.Parallel()
	long := proto.CloneOf(scaledReLU(t, 17, 3).Proto())
	for _, o := range long.OpsetImport {
		o.Domain = proto.String("ai.onnx")
	}
	for _, n := range long.Graph.Node {
		n.Domain = proto.String("ai.onnx")
	}
	data, err := proto.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	b := onnx.Extend(m)
	b.Output("z", b.Include(scaledReLU(t, 17, 2), map[string]onnx.Value{"x": b.Relu("x")})[0])
	both, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if sets := both.Proto().OpsetImport; len(sets) != 1 || sets[0].GetDomain() != "" {
		t.Errorf("the graph imports %v, want one set of operators", sets)
	}
	for _, n := range both.Nodes() {
		if !onnx.IsStandard(n) {
			t.Errorf("%s has the domain %q", onnx.Label(n), n.GetDomain())
		}
	}
}

func TestIncludeErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model  *onnx.Model
		inputs map[string]onnx.Value
		want   string
	}{
		"later opset":      {scaledReLU(t, 18, 2), map[string]onnx.Value{"x": "x"}, "uses opset 18, which is later than 17"},
		"changed operator": {softmax(t), map[string]onnx.Value{"x": "x"}, `uses opset 12, and node "scope/Softmax" (Softmax) has another meaning in 17: convert it`},
		"no tensor":        {scaledReLU(t, 17, 2), nil, `no tensor of the graph is given for its input "x"`},
		"unknown tensor":   {scaledReLU(t, 17, 2), map[string]onnx.Value{"x": "nothing"}, `no tensor of the graph is given for its input "x"`},
	} {
		b := onnx.NewBuilder(17)
		b.Input("x", onnx.Float, -1, 2)
		b.Include(c.model, c.inputs)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// An included model may have weights in an external file. They stay there if the graph that
// includes it has no external weights. The two models are in different folders. changed returns the
// file of a small model, with a 3 x 2 weight, after a change; externalData moves that weight to a
// file.
func TestIncludeExternalWeights(t *testing.T) {
	t.Parallel()
	baseDir, partDir := t.TempDir(), t.TempDir()
	external := changed(t, func(p *pb.ModelProto) { externalData(p.Graph.Initializer[0], "location", "weights") })
	for path, data := range map[string][]byte{
		filepath.Join(baseDir, "m.onnx"):  changed(t, func(*pb.ModelProto) {}),
		filepath.Join(partDir, "m.onnx"):  external,
		filepath.Join(partDir, "weights"): make([]byte, 24), // 6 float32
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, err := onnx.Read(filepath.Join(baseDir, "m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := onnx.Read(filepath.Join(partDir, "m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	b := onnx.Extend(base)
	b.Output("z", b.Scope("part").Include(part, map[string]onnx.Value{"x": "x"})[0])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m.ExternalDir() != partDir || !slices.Equal(m.ExternalFiles(), []string{"weights"}) {
		t.Errorf("the external files are %v in %q, want weights in %q", m.ExternalFiles(), m.ExternalDir(), partDir)
	}
}
