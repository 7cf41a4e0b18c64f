package onnx

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// TestGlobEqualsRegularExpression compares patterns with * (any characters, also /) and ? (any one
// character) with the same regular expressions.
func TestGlobEqualsRegularExpression(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringOfN(rapid.RuneFrom([]rune("ab/*?")), 0, 8, -1).Draw(t, "pattern")
		name := rapid.StringOfN(rapid.RuneFrom([]rune("ab/")), 0, 10, -1).Draw(t, "name")
		expression := strings.NewReplacer("*", ".*", "?", ".").Replace(pattern)
		want := regexp.MustCompile("^" + expression + "$").MatchString(name)
		if got := glob(pattern, name); got != want {
			t.Fatalf("glob(%q, %q) = %v", pattern, name, got)
		}
	})
}

// twoBlocks returns the model input, Conv, Relu, Conv, Relu, pooling, flatten, Gemm, Softmax.
// Tensors are named after their operators, with the scope as a prefix, such as block1/Relu.
func twoBlocks(t testing.TB) *Model {
	t.Helper()
	b := NewBuilder(DefaultOpset)
	x := b.Input("x", Float, -1, 3, 8, 8)
	for _, name := range []string{"block1", "block2"} {
		s := b.Scope(name)
		x = s.Relu(s.Conv(x, s.Const("", tensor.New(3, 3, 1, 1)), "", nil))
	}
	x = b.Flatten(b.Op("GlobalAveragePool", nil, x), 1)
	b.Output("y", b.Softmax(b.Gemm(x, b.Const("w", tensor.New(3, 4)), "", nil), 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestResidual checks that "residual" selects the sums of branches with different layers: those of
// residual blocks and of a final sum of three branches. It must not select sums with the model's
// input or with a bias, nor the sum in the tanh approximation of GELU, whose terms come from one
// layer.
func TestResidual(t *testing.T) {
	t.Parallel()
	b := NewBuilder(DefaultOpset)
	linear := func(s *Builder, x Value) Value { return s.MatMul(x, s.Full(0.1, 3, 3)) }
	bias := func(s *Builder, x Value) Value { return s.Add(x, s.Full(1, 3)) }
	input := b.Input("x", Float, -1, 3)
	// No layer with weights precedes input.
	x := b.Scope("raw").Add(input, linear(b.Scope("raw"), input))
	x = bias(b.Scope("stem"), linear(b.Scope("stem"), x))
	for _, name := range []string{"block1", "block2"} {
		s := b.Scope(name)
		y := bias(s.Scope("mlp"), linear(s.Scope("mlp"), s.Relu(x)))
		g := s.Scope("gelu")
		y = g.Mul(y, g.Op("Tanh", nil, g.Add(y, g.Pow(y, g.Scalar(3)))))
		x = s.Add(x, y)
	}
	x = b.Scope("end").Op("Sum", nil, x, linear(b.Scope("left"), x), linear(b.Scope("right"), x))
	b.Output("y", b.Relu(x))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := m.Select("residual")
	if got, want := strings.Join(Names(layers), " "), "block1/Add block2/Add end/Sum"; err != nil || got != want {
		t.Errorf("residual sums %s, %v; want %s", got, err, want)
	}
	if _, err := twoBlocks(t).Select("residual"); err == nil || !strings.Contains(err.Error(), "sum of two branches") {
		t.Errorf("a model without residual blocks: error %v", err)
	}
}

// TestSelect checks the choice of layers (tensors whose values can be measured): all, by operator
// (op:), by name, the model's outputs, or the penultimate one (the input of the final classifier).
func TestSelect(t *testing.T) {
	t.Parallel()
	m := twoBlocks(t)
	for _, c := range []struct{ patterns, want string }{
		{"op:relu", "block1/Relu block2/Relu"},
		{"op:CONV block2*", "block1/Conv block2/Conv block2/Relu"},
		{"y block1/Relu y", "block1/Relu y"},
		{"*lu", "block1/Relu block2/Relu"},
		{"block?/Conv", "block1/Conv block2/Conv"},
		{"output", "y"},
		{"penultimate", "Flatten"},
		{"all", "block1/Conv block1/Relu block2/Conv block2/Relu GlobalAveragePool Flatten Gemm y"},
		{"output penultimate", "Flatten y"},
		{"", ""},
	} {
		layers, err := m.Select(strings.Fields(c.patterns)...)
		if got := strings.Join(Names(layers), " "); err != nil || got != c.want {
			t.Errorf("%s: %s (%v), want %s", c.patterns, got, err, c.want)
		}
	}
}

func TestSelectSuggestsNames(t *testing.T) {
	t.Parallel()
	m := twoBlocks(t)
	for _, c := range []struct{ pattern, want string }{
		{"op:Relo", `choosing layers: no layer matches "op:Relo"; similar names: "op:Relu", `},
		{"blokc1*", `choosing layers: no layer matches "blokc1*"; similar names: "block1/`},
		{"block1/relu", `similar names: "block1/Relu", `},
		{"penultimat", `no layer matches "penultimat": did you mean "penultimate"?`},
		{"ouput", `did you mean "output"?`},
		{"x", "no layer matches"}, // an input is not a layer
	} {
		if _, err := m.Select(c.pattern); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.pattern, err)
		}
	}
}

// TestSelectIntegerOutput checks that the error for an output of classes does not suggest that output.
func TestSelectIntegerOutput(t *testing.T) {
	t.Parallel()
	b := NewBuilder(17)
	b.Output("output", b.Op("ArgMax", Attrs{"axis": 1}, b.Relu(b.Input("x", Float, -1, 3))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Select("output*"); err == nil || !strings.HasSuffix(err.Error(), `no layer matches "output*": output "output" is no float32 tensor that depends on the input, as layers are`) {
		t.Errorf("error %v", err)
	}
}

// TestNoPenultimate checks that a model without a classifier (a product with weights at an output)
// has no penultimate layer.
func TestNoPenultimate(t *testing.T) {
	t.Parallel()
	b := NewBuilder(DefaultOpset)
	x := b.Input("x", Float, -1, 3)
	b.Output("y", b.Mul(x, b.Sigmoid(x)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Select("penultimate"); err == nil || !strings.Contains(err.Error(), "has no classifier") {
		t.Error(err)
	}
}

// TestPenultimateOfSeveralOutputs checks that the penultimate layer is the input of the classifier
// of the first output that has one, or of the output that WithClassifier names. Output embedding, x
// divided by its root mean square, has none.
func TestPenultimateOfSeveralOutputs(t *testing.T) {
	t.Parallel()
	b := NewBuilder(DefaultOpset)
	x := b.Input("x", Float, -1, 3)
	weights := func(name string) Value { return b.Const(name, tensor.New(3, 3)) }
	first, second := b.Relu(x), b.Tanh(x)
	b.Output("embedding", b.Div(x, b.Sqrt(b.ReduceMean(b.Mul(x, x), true, 1))))
	b.Output("a", b.MatMul(first, weights("v")))
	b.Output("b", b.MatMul(second, weights("w")))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for output, want := range map[string]Value{"": first, "a": first, "b": second} {
		model := m
		if output != "" {
			if model, err = m.WithClassifier(output); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := model.Select("penultimate"); err != nil || len(got) != 1 || got[0].Name != string(want) {
			t.Errorf("penultimate layer of output %q: %v, %v; want %s", output, got, err, want)
		}
	}
	model, err := m.WithClassifier("embedding")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := model.Select("penultimate"); err == nil || !strings.Contains(err.Error(), `output "embedding" has no classifier`) {
		t.Errorf("an embedding has the error %v", err)
	}
	if _, err := m.WithClassifier("none"); err == nil {
		t.Error("WithClassifier of an unknown output: no error")
	}
}
