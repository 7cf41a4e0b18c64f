package accel_test

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/ort/accel"
	"github.com/noether-ml/noether/tensor"
)

// residual returns a graph of normalised feature maps and its gradients: a ReLU after a
// BatchNormalization, then one after the sum of two, as at the start of a stage of a ResNet.
// readShortcut lets another node read the second summand. The tensors are inputs, in order.
func residual(t *testing.T, momentum float64, readShortcut bool) (*onnx.Model, []tensor.Tensor) {
	t.Helper()
	b := onnx.NewBuilder(16).Sharing()
	in := []tensor.Tensor{normal(1, 1, 4, 24, 5, 6)} // x, which is declared first
	x := b.Input("x", onnx.Float, -1, 24, 5, 6)
	var weights []onnx.Value
	weight := func(name string, shape ...int) onnx.Value {
		in = append(in, normal(uint64(len(in)+1), 1, shape...))
		v := b.Input(name, onnx.Float, shape...)
		weights = append(weights, v)
		return v
	}
	norm := func(x onnx.Value, name string) onnx.Value {
		scale, bias := weight(name+" scale", 24), weight(name+" bias", 24)
		mean, variance := b.Sub(scale, scale), b.Sub(bias, bias) // which ONNX Runtime overwrites
		return b.Ops("BatchNormalization", 3, onnx.Attrs{"training_mode": 1, "momentum": momentum}, x, scale, bias, mean, variance)[0]
	}
	y := b.Relu(norm(x, "first"))
	y = norm(b.Mul(y, y), "second")
	shortcut := norm(b.Exp(b.Neg(b.Mul(x, x))), "shortcut")
	z := b.Relu(b.Add(shortcut, y))
	if readShortcut {
		b.Output("shortcut", b.Neg(shortcut))
	}
	b.Output("z", z)
	d, err := grad.Of(b, b.ReduceSum(b.Mul(z, z), false), "", append(weights, x)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range d {
		b.Output("gradient "+string(append(weights, x)[i]), v)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m, in
}

// BatchNormalization in training mode, ReLUs, sums and their gradients become native, and results
// agree. What another node reads is not merged, and a BatchNormalization with running statistics
// stays standard.
func TestRewriteBatchNorm(t *testing.T) {
	skipWithoutOperators(t)
	for _, c := range []struct {
		momentum        float64
		readShortcut    bool
		native, withSum int // native BatchNormalizations, and those with a sum
		relus, masks    int // standard ReLUs, and masks of their gradients
	}{{0, false, 3, 1, 0, 0}, {0, true, 3, 0, 1, 0}, {0.5, false, 0, 0, 2, 2}} {
		m, in := residual(t, c.momentum, c.readShortcut)
		r := rewritten(t, m)
		forward, gradients, withSum := 0, 0, 0
		for _, n := range r.Nodes() {
			switch {
			case n.GetDomain() != "noether":
			case n.GetOpType() == "BatchNormalizationGradient":
				gradients++
			default:
				forward++
				if len(n.Input) == 4 {
					withSum++
				}
			}
		}
		if forward != c.native || gradients != c.native || withSum != c.withSum || count(r, "Relu") != c.relus || count(r, "Greater") != c.masks {
			t.Errorf("%+v: %d native BatchNormalizations, %d with a sum, %d gradients, %d ReLUs and %d masks", c, forward, withSum, gradients, count(r, "Relu"), count(r, "Greater"))
		}
		got, want := run(t, r, in...), run(t, m, in...)
		for i, o := range m.Outputs() {
			assertClose(t, o.Name, got[i], want[i])
		}
	}
}

// Nodes with too few inputs, which ONNX Runtime refuses, are left as they are.
func TestRewriteLeavesMalformedNodes(t *testing.T) {
	t.Parallel()
	training := onnx.Attrs{"training_mode": 1, "momentum": 0.0}
	for name, add := range map[string]func(b *onnx.Builder, x, scale onnx.Value) onnx.Value{
		"BatchNormalization of one input": func(b *onnx.Builder, x, _ onnx.Value) onnx.Value {
			return b.Ops("BatchNormalization", 3, training, x)[0]
		},
		"Add of one input": func(b *onnx.Builder, x, scale onnx.Value) onnx.Value {
			return b.Op("Add", nil, b.Ops("BatchNormalization", 3, training, x, scale, scale, scale, scale)[0])
		},
	} {
		b := onnx.NewBuilder(16)
		x, scale := b.Input("x", onnx.Float, 2, 3, 4, 4), b.Input("scale", onnx.Float, 3)
		b.Output("y", add(b, b.Op("Sqrt", nil, x), scale))
		m, err := b.Model()
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := accel.Rewrite(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
