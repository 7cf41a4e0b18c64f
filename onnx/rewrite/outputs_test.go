package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
	"pgregory.net/rapid"
)

// randomModel returns a graph of random elementwise nodes, each of which reads earlier tensors.
// Scopes are prefixes of the nodes' names.
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

// WithOutputs keeps exactly the nodes, weights and inputs on which the outputs depend.
func TestWithOutputsKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := randomModel(t)
		nodes := m.Nodes()
		out := rapid.SampledFrom(nodes).Draw(t, "output").Output[0]
		cut, err := rewrite.WithOutputs(m, []string{out})
		if err != nil {
			t.Fatal(err)
		}
		needed := map[string]bool{out: true}
		for _, n := range slices.Backward(nodes) {
			for _, in := range n.Input {
				needed[in] = needed[in] || needed[n.Output[0]]
			}
		}
		var want, got []string
		for _, n := range nodes {
			if needed[n.Output[0]] {
				want = append(want, n.Output[0])
			}
		}
		for _, n := range cut.Nodes() {
			got = append(got, n.Output[0])
		}
		if !slices.Equal(got, want) {
			t.Fatalf("nodes %q, want %q", got, want)
		}
		for _, w := range cut.Proto().Graph.Initializer {
			if !needed[w.GetName()] {
				t.Fatalf("weight %q is kept", w.GetName())
			}
		}
		if len(cut.Outputs()) != 1 || cut.Outputs()[0].Name != out || cut.Outputs()[0].Type != onnx.Float {
			t.Fatalf("the outputs are %v", cut.Outputs())
		}
		if wantInput := needed["x"]; (len(cut.Inputs()) == 1) != wantInput {
			t.Fatalf("the inputs are %v", cut.Inputs())
		}
		if len(m.Nodes()) != len(nodes) || m.Outputs()[0].Name != "y" {
			t.Fatal("the model has changed")
		}
	})
}

// TestWithOutputsErrors requests outputs, separated by spaces, that give errors. Add is the tensor
// that the Add node computes.
func TestWithOutputsErrors(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.Output("y", b.Relu(b.Add(b.Input("x", onnx.Float, -1, 3), b.Scalar(1))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for names, want := range map[string]string{"": "no outputs", "nothing": `no tensor "nothing"`, "y Add y": `"y" is requested twice`} {
		if _, err := rewrite.WithOutputs(m, strings.Fields(names)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("outputs %q: error %v, want %q", names, err, want)
		}
	}
}

// TestTensorAsInput checks that nodes that read a tensor no longer need the nodes that compute it,
// and that a tensor which no node computes is an error.
func TestTensorAsInput(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	b.Output("first", b.Relu(b.Input("x", onnx.Float, -1, 4)))
	b.Output("second", b.Neg("first"))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	info := onnx.ValueInfo{Name: "first", Type: onnx.Float, Shape: onnx.Dims([]int64{-1, 4})}
	whole, err := rewrite.TensorAsInput(m, info)
	if err != nil {
		t.Fatal(err)
	}
	part, err := rewrite.WithOutputs(whole, []string{"second"})
	if err != nil {
		t.Fatal(err)
	}
	if inputs := part.Inputs(); len(inputs) != 1 || inputs[0].Name != "first" || len(part.Proto().Graph.Node) != 1 {
		t.Errorf("inputs %v and %d nodes, want the input first and one node", inputs, len(part.Proto().Graph.Node))
	}
	if len(m.Inputs()) != 1 || len(m.Outputs()) != 2 {
		t.Error("the model itself has changed")
	}
	if _, err := rewrite.TensorAsInput(m, onnx.ValueInfo{Name: "x"}); err == nil {
		t.Error("no error for a tensor that no node computes")
	}
}
