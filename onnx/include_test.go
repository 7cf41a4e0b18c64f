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

// scaled is y = w relu(x) in a graph of its own.
func scaled(t *testing.T, opset int, w float32) *onnx.Model {
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

// softmax is a model of opset 12 whose node has another meaning since opset 13: its axis is another
// by default.
func softmax(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(12)
	b.Output("y", b.Scope("even").Op("Softmax", nil, b.Input("x", onnx.Float, -1, 2)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A model is compatible with a later operator set if no node has another meaning there.
func TestCompatibleWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		from, to int
		add      func(b *onnx.Builder, x onnx.Value) onnx.Value
		fits     bool // CompatibleWith(to) returns no error
	}{
		{"the same set", 12, 12, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Softmax", nil, x) }, true},
		{"softmax over the last axis", 12, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Softmax", onnx.Attrs{"axis": -1}, x)
		}, true},
		{"softmax over the second", 12, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Softmax", onnx.Attrs{"axis": 1}, x)
		}, false},
		{"softmax that is new already", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Softmax", nil, x) }, true},
		{"mean before its axes became an input", 11, 17, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceMean(x, true, 1) }, true},
		{"mean", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceMean(x, true, 1) }, false},
		{"sum", 12, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceSum(x, true, 1) }, false},
		{"sum since", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.ReduceSum(x, true, 1) }, true},
		{"equal parts", 13, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Ops("Split", 2, onnx.Attrs{"axis": 1}, x)[0] }, false},
		{"too old", 10, 13, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
		{"too new", 17, 21, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
		{"backwards", 17, 16, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Relu(x) }, false},
	} {
		b := onnx.NewBuilder(c.from)
		b.Output("y", c.add(b, b.Input("x", onnx.Float, -1, 2)))
		m, err := b.Model()
		if err != nil {
			t.Fatal(c.name, err)
		}
		if err := m.CompatibleWith(c.to); (err == nil) != c.fits {
			t.Errorf("%s from %d to %d: %v", c.name, c.from, c.to, err)
		}
	}
}

func TestIncludeNames(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 2)
	first := b.Include(scaled(t, 17, 2), map[string]onnx.Value{"x": x})
	second := b.Scope("again").Include(scaled(t, 13, 3), map[string]onnx.Value{"x": first[0]})
	third := b.Include(scaled(t, 17, 5), map[string]onnx.Value{"x": second[0]})
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

// TestIncludeStandardByItsLongName includes a model in one that calls the standard operator set
// "ai.onnx": the graph imports one set, and all nodes are standard operators.
func TestIncludeStandardByItsLongName(t *testing.T) {
	t.Parallel()
	long := proto.CloneOf(scaled(t, 17, 3).Proto())
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
	b.Output("z", b.Include(scaled(t, 17, 2), map[string]onnx.Value{"x": b.Relu("x")})[0])
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
		"opset":   {scaled(t, 18, 2), map[string]onnx.Value{"x": "x"}, "uses opset 18, which is later than 17"},
		"meaning": {softmax(t), map[string]onnx.Value{"x": "x"}, `uses opset 12, and node "even/Softmax" (Softmax) has another meaning in 17: convert it`},
		"missing": {scaled(t, 17, 2), nil, `no tensor of the graph is given for its input "x"`},
		"unknown": {scaled(t, 17, 2), map[string]onnx.Value{"x": "nothing"}, `no tensor of the graph is given for its input "x"`},
	} {
		b := onnx.NewBuilder(17)
		b.Input("x", onnx.Float, -1, 2)
		b.Include(c.model, c.inputs)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// External weights of an included model stay in their file if the graph itself has none, whatever
// folder the graph was read from.
func TestIncludeExternalWeights(t *testing.T) {
	t.Parallel()
	weightless, weighted := t.TempDir(), t.TempDir()
	external := changed(t, func(p *pb.ModelProto) { externalData(p.Graph.Initializer[0], "location", "weights") })
	for path, data := range map[string][]byte{
		filepath.Join(weightless, "m.onnx"): changed(t, func(*pb.ModelProto) {}),
		filepath.Join(weighted, "m.onnx"):   external,
		filepath.Join(weighted, "weights"):  make([]byte, 24),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	base, err := onnx.Read(filepath.Join(weightless, "m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	part, err := onnx.Read(filepath.Join(weighted, "m.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	b := onnx.Extend(base)
	b.Output("z", b.Scope("part").Include(part, map[string]onnx.Value{"x": "x"})[0])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m.ExternalDir() != weighted || !slices.Equal(m.ExternalFiles(), []string{"weights"}) {
		t.Errorf("the external files are %v in %q, want weights in %q", m.ExternalFiles(), m.ExternalDir(), weighted)
	}
}
