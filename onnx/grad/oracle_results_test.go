//go:build cgo

package grad_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// normal returns values from the normal distribution with the standard deviation 2.
func normal(r *rand.Rand, shape ...int) tensor.Tensor {
	x := tensor.New(shape...)
	for i := range x.Data {
		x.Data[i] = float32(2 * r.NormFloat64())
	}
	return x
}

func vectorOf(v ...float32) tensor.Tensor { return tensor.Tensor{Shape: []int{len(v)}, Data: v} }

// widened returns the values as float64.
func widened(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// run returns the output of a model that has one output.
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

// checkExact checks that the model that inFloat64 makes of an operator computes its value in
// float64, to 3e-14 of the largest. Outputs are float32, so the graph subtracts the expected value,
// as the sum of two float32, and returns the difference times 2^40. With freeSizes the graph
// declares the size of no axis but axis 1, the channels.
func checkExact(t *testing.T, opset int, x tensor.Tensor, freeSizes bool, write func(b *onnx.Builder, x onnx.Value) onnx.Value, want []float64, shape ...int) {
	t.Helper()
	b := onnx.NewBuilder(opset)
	declared := slices.Clone(x.Shape)
	for i := range declared {
		if freeSizes && i != 1 {
			declared[i] = -1
		}
	}
	y := write(b, b.Input("x", onnx.Float, declared...))
	high, low := b.Input("high", onnx.Float, shape...), b.Input("low", onnx.Float, shape...)
	b.Output("y", b.Mul(b.Sub(b.Sub(y, high), low), b.Scalar(1<<40)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := inFloat64(m, "y")
	if err != nil {
		t.Fatal(err)
	}
	highs, lows, largest := tensor.New(shape...), tensor.New(shape...), 0.0
	if len(want) != len(highs.Data) {
		t.Fatalf("%d values of shape %v", len(want), shape)
	}
	for i, v := range want {
		highs.Data[i] = float32(v)
		lows.Data[i] = float32(v - float64(highs.Data[i]))
		largest = max(largest, math.Abs(v))
	}
	got := run(t, d, x, highs, lows)
	if !slices.Equal(got.Shape, shape) {
		t.Fatalf("shape %v, want %v", got.Shape, shape)
	}
	for i, v := range want {
		remainder := v - float64(highs.Data[i]) - float64(lows.Data[i])
		if e := float64(got.Data[i])/(1<<40) - remainder; !(math.Abs(e) <= 3e-14*largest) {
			t.Fatalf("element %d differs by %g from %g", i, e, v)
		}
	}
}

// TestActivations checks activations, some of which ONNX Runtime lacks in float64 and inFloat64
// writes by other operators, also at kinks (where the derivative jumps) and in the tails.
func TestActivations(t *testing.T) {
	t.Parallel()
	clampToUnit := func(x float64) float64 { return max(0, min(1, x)) }
	attribute := func(v float32) float64 { return float64(v) } // attributes are float32
	for _, c := range []struct {
		op    string
		opset int
		attrs onnx.Attrs
		want  func(x float64) float64
	}{
		{"Relu", 14, nil, func(x float64) float64 { return max(x, 0) }},
		{"Sigmoid", 13, nil, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"HardSigmoid", 11, nil, func(x float64) float64 { return clampToUnit(attribute(0.2)*x + 0.5) }},
		{"HardSigmoid", 17, onnx.Attrs{"alpha": 1.0 / 6, "beta": 0.25}, func(x float64) float64 { return clampToUnit(attribute(1.0/6)*x + 0.25) }},
		{"HardSwish", 14, nil, func(x float64) float64 { return x * clampToUnit(x/6+0.5) }},
		{"Erf", 13, nil, math.Erf},
	} {
		t.Run(fmt.Sprint(c.op, c.opset), func(t *testing.T) {
			x := normal(seed.Rand(1, c.op), 100)
			for _, v := range []float32{0, 1e-20, 1e-4, 0.46875, 1 - 1e-4, 1, 2.5, 3, 5.9, 6, 6.1} {
				x.Data = append(x.Data, v, -v)
			}
			x.Shape = []int{len(x.Data)}
			want := make([]float64, len(x.Data))
			for i, v := range x.Data {
				want[i] = c.want(float64(v))
			}
			checkExact(t, c.opset, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(c.op, c.attrs, x) }, want, x.Shape...)
		})
	}
}

// TestClip checks Clip with and without each of its bounds.
func TestClip(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(2), 2, 3, 4)
	const low, high = float32(-0.3), float32(1.1)
	for _, c := range []struct{ hasLow, hasHigh bool }{{true, true}, {false, true}, {true, false}, {false, false}} {
		want := widened(x.Data)
		for i, v := range want {
			if c.hasLow {
				v = max(v, float64(low))
			}
			if c.hasHigh {
				v = min(v, float64(high))
			}
			want[i] = v
		}
		checkExact(t, 11, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			var min, max onnx.Value
			if c.hasLow {
				min = b.Scalar(low)
			}
			if c.hasHigh {
				max = b.Scalar(high)
			}
			return b.Clip(x, min, max)
		}, want, x.Shape...)
	}
}

// TestDiscontinuousOperators checks that inFloat64 gives discontinuous operators their inputs in
// float64: they tell apart values that are equal in float32.
func TestDiscontinuousOperators(t *testing.T) {
	t.Parallel()
	tiny := tensor.Tensor{Shape: []int{1, 1, 4}, Data: []float32{0, 1e-9, 3e-9, 2e-9}}
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, near onnx.Value) onnx.Value // near is 1 + tiny
		want  []float32
	}{
		"Greater": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("Greater", nil, v, b.Scalar(1)), onnx.Float)
		}, []float32{0, 1, 1, 1}},
		"Equal": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("Equal", nil, v, b.Scalar(1)), onnx.Float)
		}, []float32{1, 0, 0, 0}},
		"Sign": {func(b *onnx.Builder, v onnx.Value) onnx.Value { return b.Op("Sign", nil, b.Sub(v, b.Scalar(1))) }, []float32{0, 1, 1, 1}},
		"ArgMax": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			return b.Cast(b.Op("ArgMax", onnx.Attrs{"axis": 2}, v), onnx.Float)
		}, []float32{2}},
		"MaxPool": {func(b *onnx.Builder, v onnx.Value) onnx.Value {
			outputs := b.Ops("MaxPool", 2, onnx.Attrs{"kernel_shape": []int{2}, "strides": []int{2}}, v)
			return b.Mul(b.Cast(outputs[1], onnx.Float), b.Op("Sign", nil, outputs[0]))
		}, []float32{1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := onnx.NewBuilder(13)
			b.Output("y", c.write(b, b.Add(b.Input("x", onnx.Float, 1, 1, -1), b.Scalar(1))))
			m, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			if d, err := inFloat64(m); err != nil {
				t.Error(err)
			} else if got := run(t, d, tiny); !slices.Equal(got.Data, c.want) {
				t.Errorf("%v, want %v", got.Data, c.want)
			}
			if got := run(t, m, tiny); slices.Equal(got.Data, c.want) {
				t.Errorf("in float32 the result is %v too: the case does not depend on the precision", got.Data)
			}
		})
	}
}

// TestOtherNodesStayFloat32 checks that, without names of outputs, inFloat64 leaves nodes in
// float32 on which no discontinuous operator depends, and that inputs and outputs keep names and
// types.
func TestOtherNodesStayFloat32(t *testing.T) {
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
	d, err := inFloat64(m)
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
	if _, err := inFloat64(m); err == nil || !strings.Contains(err.Error(), "opset 11") {
		t.Errorf("inFloat64 of a model with opset 10: error %v, want one that names opset 11", err)
	}
}
