package double_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/double"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

func normal(r *rand.Rand, shape ...int) tensor.Tensor {
	x := tensor.New(shape...)
	for i := range x.Data {
		x.Data[i] = float32(2 * r.NormFloat64())
	}
	return x
}

func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// run feeds a model of one output.
func run(t *testing.T, m *onnx.Model, inputs ...tensor.Tensor) tensor.Tensor {
	t.Helper()
	rt := orttest.Load(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, out := make([]*ort.Value, len(inputs)), make([]*ort.Value, 1)
	for i, x := range inputs {
		if in[i], err = ort.Wrap(rt, x.Data, x.Shape...); err != nil {
			t.Fatal(err)
		}
		defer in[i].Close()
	}
	if err := s.Run(context.Background(), in, out); err != nil {
		t.Fatal(err)
	}
	defer out[0].Close()
	y := out[0].Tensor()
	return tensor.Tensor{Shape: slices.Clone(y.Shape), Data: slices.Clone(y.Data)}
}

// checkExact holds an operator against its value in float64. What the graph returns is the difference from that value rounded to float32, times 2^20:
// were the operator computed in float32, nothing of it would be right.
func checkExact(t *testing.T, opset int, x tensor.Tensor, free bool, write func(b *onnx.Builder, x onnx.Value) onnx.Value, want []float64, shape ...int) {
	t.Helper()
	b := onnx.NewBuilder(opset)
	declared := slices.Clone(x.Shape)
	if free {
		declared[0] = -1
		for i := 2; i < len(declared); i++ {
			declared[i] = -1
		}
	}
	in := b.Input("x", onnx.Float, declared...)
	y := write(b, in)
	r := b.Input("r", onnx.Float, shape...)
	b.Output("y", b.Mul(b.Sub(y, r), b.Scalar(1<<20)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := double.Decide(m, "y")
	if err != nil {
		t.Fatal(err)
	}
	rounded := tensor.New(shape...)
	if len(want) != len(rounded.Data) {
		t.Fatalf("%d values of shape %v", len(want), shape)
	}
	largest := 0.0
	for i, v := range want {
		rounded.Data[i] = float32(v)
		largest = max(largest, math.Abs(v))
	}
	got := run(t, d, x, rounded)
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("shape %v, want %v", got.Shape, shape)
	}
	for i, v := range want {
		rest := (v - float64(rounded.Data[i])) * (1 << 20)
		if e := math.Abs(float64(got.Data[i]) - rest); !(e <= 1e-13*largest*(1<<20)+2e-7*math.Abs(rest)) {
			t.Fatalf("at %d: %g is left of %g, want %g", i, got.Data[i], v, rest)
		}
	}
}

// Functions of one number.
func TestFunctions(t *testing.T) {
	t.Parallel()
	softplus := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	elu := func(x, alpha float64) float64 { return max(x, 0) + alpha*math.Expm1(min(x, 0)) }
	f := func(v float32) float64 { return float64(v) } // as an attribute holds it
	for _, c := range []struct {
		op    string
		opset int
		attrs onnx.Attrs
		want  func(x float64) float64
	}{
		{"Relu", 14, nil, func(x float64) float64 { return max(x, 0) }},
		{"Sigmoid", 13, nil, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"HardSigmoid", 11, nil, func(x float64) float64 { return max(0, min(1, f(0.2)*x+0.5)) }},
		{"HardSigmoid", 17, onnx.Attrs{"alpha": 1.0 / 6, "beta": 0.25}, func(x float64) float64 { return max(0, min(1, f(1.0/6)*x+0.25)) }},
		{"HardSwish", 14, nil, func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }},
		{"LeakyRelu", 11, nil, func(x float64) float64 { return max(x, f(0.01)*x) }},
		{"LeakyRelu", 16, onnx.Attrs{"alpha": 0.3}, func(x float64) float64 { return max(x, f(0.3)*x) }},
		{"ThresholdedRelu", 11, onnx.Attrs{"alpha": 0.7}, func(x float64) float64 {
			if x > f(0.7) {
				return x
			}
			return 0
		}},
		{"Elu", 11, onnx.Attrs{"alpha": 1.5}, func(x float64) float64 { return elu(x, 1.5) }},
		{"Selu", 11, nil, func(x float64) float64 { return f(1.0507010) * elu(x, f(1.6732632)) }},
		{"Celu", 12, onnx.Attrs{"alpha": 2.0}, func(x float64) float64 { return max(x, 0) + 2*math.Expm1(min(x, 0)/2) }},
		{"Softplus", 11, nil, softplus},
		{"Softsign", 11, nil, func(x float64) float64 { return x / (1 + math.Abs(x)) }},
		{"Mish", 18, nil, func(x float64) float64 { return x * math.Tanh(softplus(x)) }},
	} {
		t.Run(fmt.Sprint(c.op, c.opset), func(t *testing.T) {
			x := normal(keyed.Rand(1, c.op), 2, 50)
			want := make([]float64, len(x.Data))
			for i, v := range x.Data {
				want[i] = c.want(float64(v))
			}
			checkExact(t, c.opset, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(c.op, c.attrs, x) }, want, x.Shape...)
		})
	}
}

// Functions with constants besides.
func TestOperands(t *testing.T) {
	t.Parallel()
	x := normal(keyed.Rand(2), 2, 3, 4)
	slope := tensor.Tensor{Shape: []int{3, 1}, Data: []float32{0.1, 0.2, 0.3}}
	low, high := float32(-0.3), float32(1.1)
	number := func(b *onnx.Builder, v float32) onnx.Value { return b.Scalar(v) }
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, x onnx.Value) onnx.Value
		want  func(i int, x float64) float64
	}{
		"Clip":                      {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Clip(x, number(b, low), number(b, high)) }, func(_ int, x float64) float64 { return min(max(x, float64(low)), float64(high)) }},
		"Clip below":                {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Clip(x, "", number(b, high)) }, func(_ int, x float64) float64 { return min(x, float64(high)) }},
		"Clip that changes nothing": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Clip(x, "", "") }, func(_ int, x float64) float64 { return x }},
		"PRelu": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("PRelu", nil, x, b.Const("slope", slope)) }, func(i int, x float64) float64 {
			return max(x, 0) + min(x, 0)*float64(slope.Data[i/4%3])
		}},
		"Mean": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Mean", nil, x, b.Exp(x), number(b, high)) }, func(_ int, x float64) float64 {
			return (x + math.Exp(x) + float64(high)) / 3
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := make([]float64, len(x.Data))
			for i, v := range x.Data {
				want[i] = c.want(i, float64(v))
			}
			checkExact(t, 13, x, false, c.write, want, x.Shape...)
		})
	}
}

func TestInstanceNormalization(t *testing.T) {
	t.Parallel()
	x := normal(keyed.Rand(3), 2, 3, 4, 5)
	scale, shift := normal(keyed.Rand(4), 3), normal(keyed.Rand(5), 3)
	want := widened(x.Data)
	for m := range 6 {
		z := want[m*20 : m*20+20]
		var sum, squares float64
		for _, v := range z {
			sum, squares = sum+v/20, squares+v*v/20
		}
		for i, v := range z {
			z[i] = float64(scale.Data[m%3])*(v-sum)/math.Sqrt(squares-sum*sum+float64(float32(0.01))) + float64(shift.Data[m%3])
		}
	}
	checkExact(t, 11, x, true, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Op("InstanceNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Const("s", scale), b.Const("b", shift))
	}, want, x.Shape...)
}

// The first of two maxima that float32 cannot tell apart is not the larger one.
func TestDecisions(t *testing.T) {
	t.Parallel()
	tiny := tensor.Tensor{Shape: []int{1, 1, 4}, Data: []float32{0, 1e-9, 3e-9, 2e-9}}
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, near onnx.Value) onnx.Value // near: 1 + tiny
		want  []float32
	}{
		"Greater": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("Greater", nil, v, b.Scalar(1)), onnx.Float)
		}, []float32{0, 1, 1, 1}},
		"Equal": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("Equal", nil, v, b.Scalar(1)), onnx.Float)
		}, []float32{1, 0, 0, 0}},
		"Sign":         {func(b *onnx.Builder, v onnx.Value) onnx.Value { return b.Op("Sign", nil, b.Sub(v, b.Scalar(1))) }, []float32{0, 1, 1, 1}},
		"Hardmax":      {func(b *onnx.Builder, v onnx.Value) onnx.Value { return b.Op("Hardmax", onnx.Attrs{"axis": 2}, v) }, []float32{0, 0, 1, 0}},
		"last Hardmax": {func(b *onnx.Builder, v onnx.Value) onnx.Value { return b.Op("Hardmax", nil, v) }, []float32{0, 0, 1, 0}},
		"ArgMax": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 2}, v), onnx.Float)
		}, []float32{2}},
		"MaxPool": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			made := b.Ops("MaxPool", 2, onnx.Attrs{"kernel_shape": []int{2}, "strides": []int{2}}, v)
			return b.Mul(b.Cast(made[1], onnx.Float), b.Op("Sign", nil, made[0]))
		}, []float32{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := onnx.NewBuilder(13)
			b.Output("y", c.write(b, b.Add(b.Input("x", onnx.Float, 1, 1, -1), b.Scalar(1))))
			m, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			if d, err := double.Decide(m); err != nil {
				t.Error(err)
			} else if got := run(t, d, tiny); !slices.Equal(got.Data, c.want) {
				t.Errorf("%v, want %v", got.Data, c.want)
			}
			if got := run(t, m, tiny); slices.Equal(got.Data, c.want) {
				t.Errorf("in float32 it is %v too", got.Data)
			}
		})
	}
}

// What decides nothing stays in float32, and types and names of inputs and outputs stay as they are.
func TestDecideLeavesTheRest(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 4)
	h := b.Relu(b.MatMul(x, b.Const("w", normal(keyed.Rand(6), 4, 4))))
	b.Output("h", h)
	b.Output("mask", b.Cast(b.Op("Greater", nil, h, b.Scalar(0)), onnx.Float))
	b.Output("z", b.Exp(b.Tanh(h)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := double.Decide(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(d.Inputs(), d.Outputs()), fmt.Sprint(m.Inputs(), m.Outputs()); got != want {
		t.Errorf("inputs and outputs %s, want %s", got, want)
	}
	s := d.Static()
	for _, n := range d.Nodes() {
		want := onnx.Double
		if op := n.GetOpType(); op == "Exp" || op == "Tanh" {
			want = onnx.Float
		} else if op == "Cast" {
			continue
		}
		if got := s.Type(n.Input[0]); got != want {
			t.Errorf("%s reads %v, want %v", onnx.Label(n), got, want)
		}
	}
}

func TestDecideErrors(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(10)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, 2)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := double.Decide(m); err == nil || !strings.Contains(err.Error(), "opset 11") {
		t.Errorf("an old model: %v", err)
	}
}
