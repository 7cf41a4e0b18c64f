//go:build cgo

package oracle_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad/internal/oracle"
	"github.com/noether-ml/noether/onnx/infer"
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

func vectorOf(v ...float32) tensor.Tensor { return tensor.Tensor{Shape: []int{len(v)}, Data: v} }

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

// checkExact holds an operator against its value in float64, to 3e-14 of the largest.
func checkExact(t *testing.T, opset int, x tensor.Tensor, free bool, write func(b *onnx.Builder, x onnx.Value) onnx.Value, want []float64, shape ...int) {
	t.Helper()
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i, e := range errorsOf(t, opset, x, free, write, want, shape...) {
		if !(math.Abs(e) <= 3e-14*largest) {
			t.Fatalf("at %d: off by %g of %g", i, e, want[i])
		}
	}
}

// errorsOf are by how much an operator is off its value in float64. The graph returns it times
// 2^40, with what is taken off first as the sum of two float32.
func errorsOf(t *testing.T, opset int, x tensor.Tensor, free bool, write func(b *onnx.Builder, x onnx.Value) onnx.Value, want []float64, shape ...int) []float64 {
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
	high, low := b.Input("high", onnx.Float, shape...), b.Input("low", onnx.Float, shape...)
	b.Output("y", b.Mul(b.Sub(b.Sub(y, high), low), b.Scalar(1<<40)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := oracle.InFloat64(m, "y")
	if err != nil {
		t.Fatal(err)
	}
	highs, lows := tensor.New(shape...), tensor.New(shape...)
	if len(want) != len(highs.Data) {
		t.Fatalf("%d values of shape %v", len(want), shape)
	}
	for i, v := range want {
		highs.Data[i] = float32(v)
		lows.Data[i] = float32(v - float64(highs.Data[i]))
	}
	got := run(t, d, x, highs, lows)
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("shape %v, want %v", got.Shape, shape)
	}
	off := make([]float64, len(want))
	for i, v := range want {
		off[i] = float64(got.Data[i])/(1<<40) - (v - float64(highs.Data[i]) - float64(lows.Data[i]))
	}
	return off
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
			x := normal(seed.Rand(1, c.op), 2, 50)
			want := make([]float64, len(x.Data))
			for i, v := range x.Data {
				want[i] = c.want(float64(v))
			}
			checkExact(t, c.opset, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(c.op, c.attrs, x) }, want, x.Shape...)
		})
	}
}

// Functions that are approximated, or written as differences: where they are near 0, at their kinks
// and at the ends of their domains too.
func TestFunctionsAtTheEnds(t *testing.T) {
	t.Parallel()
	gelu := func(x float64) float64 { return x * math.Erfc(-x/math.Sqrt2) / 2 }
	tanhGelu := func(x float64) float64 {
		return x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) / 2
	}
	inf := math.Inf(1)
	for _, c := range []struct {
		op       string
		opset    int
		attrs    onnx.Attrs
		from, to float64
		want     func(x float64) float64
		flat     bool // the error is that of a sum with a number near 1, also where the value is small
	}{
		{"Erf", 13, nil, -inf, inf, math.Erf, true},
		{"Gelu", 20, nil, -inf, inf, gelu, true},
		{"Gelu", 20, onnx.Attrs{"approximate": "tanh"}, -inf, inf, tanhGelu, true},
		{"Tan", 11, nil, -1.5, 1.5, math.Tan, false},
		{"Asin", 11, nil, -1, 1, math.Asin, false},
		{"Acos", 11, nil, -1, 1, math.Acos, true},
		{"Atan", 11, nil, -inf, inf, math.Atan, false},
		{"Sinh", 11, nil, -40, 40, math.Sinh, false},
		{"Cosh", 11, nil, -40, 40, math.Cosh, false},
		{"Asinh", 11, nil, -inf, inf, math.Asinh, false},
		{"Acosh", 11, nil, 1, inf, math.Acosh, false},
		{"Atanh", 11, nil, -1 + 1e-8, 1 - 1e-8, math.Atanh, false},
	} {
		t.Run(c.op, func(t *testing.T) {
			x := normal(seed.Rand(1, c.op), 300)
			for _, v := range []float32{0, 1e-20, 1e-8, 1e-4, 0.46875, 1 - 1e-4, math.Nextafter32(1, 0), 1, math.Nextafter32(1, 2), 5.9, 6, 6.1, 30, 1e5, 1e20} {
				x.Data = append(x.Data, v, -v)
			}
			x.Data = slices.DeleteFunc(x.Data, func(v float32) bool { return float64(v) < c.from || float64(v) > c.to })
			x.Shape = []int{len(x.Data)}
			var want []float64
			for _, v := range x.Data {
				want = append(want, c.want(float64(v)))
			}
			for i, e := range errorsOf(t, c.opset, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(c.op, c.attrs, x) }, want, x.Shape...) {
				size := math.Abs(want[i])
				if c.flat {
					size = max(size, 1)
				}
				if !(math.Abs(e) <= 1e-15*size) {
					t.Errorf("of %g: off by %g of %g", x.Data[i], e, want[i])
				}
			}
		})
	}
}

// Functions with constants besides.
func TestOperands(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(2), 2, 3, 4)
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
			for _, opset := range []int{11, 13} {
				checkExact(t, opset, x, false, c.write, want, x.Shape...)
			}
		})
	}
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
			if d, err := oracle.InFloat64(m); err != nil {
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

// What decides nothing stays in float32, and types and names of inputs and outputs stay as they
// are.
func TestInFloat64LeavesTheRest(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 4)
	h := b.Relu(b.MatMul(x, b.Const("w", normal(seed.Rand(6), 4, 4))))
	b.Output("h", h)
	b.Output("mask", b.Cast(b.Op("Greater", nil, h, b.Scalar(0)), onnx.Float))
	b.Output("z", b.Exp(b.Tanh(h)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := oracle.InFloat64(m)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(d.Inputs(), d.Outputs()), fmt.Sprint(m.Inputs(), m.Outputs()); got != want {
		t.Errorf("inputs and outputs %s, want %s", got, want)
	}
	s := infer.Analyze(d)
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

func TestInFloat64Errors(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(10)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, 2)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := oracle.InFloat64(m); err == nil || !strings.Contains(err.Error(), "opset 11") {
		t.Errorf("an old model: %v", err)
	}
}
