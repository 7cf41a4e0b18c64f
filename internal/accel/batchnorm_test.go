package accel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/accel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// residual returns a graph and the values of its inputs, in order. The graph has a ReLU after a
// BatchNormalization, a ReLU after the sum of two BatchNormalizations (the main branch and the
// shortcut of a residual block), and the gradients of all three. readShortcut adds an output that
// is computed from the shortcut, so that another node than the sum reads it. normal(seed,
// deviation, shape...), run and rewritten are in layout_test.go.
func residual(t *testing.T, momentum float64, readShortcut bool) (*onnx.Model, []tensor.Tensor) {
	t.Helper()
	b := onnx.NewBuilder(16).Sharing()
	in := []tensor.Tensor{normal(1, 1, 4, 24, 5, 6)} // the value of x, the first input
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
		// The running mean and variance are zeros that nodes compute, since ONNX Runtime overwrites
		// them in training mode.
		mean, variance := b.Sub(scale, scale), b.Sub(bias, bias)
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

// BatchNormalization in training mode, the ReLUs and sums after it, and the gradients become native
// operators (written in C, in the ONNX domain "noether"), and results agree. A result that another
// node reads is not merged with the sum after it. A BatchNormalization that updates running
// statistics (momentum above 0) stays a standard operator.
func TestRewriteBatchNorm(t *testing.T) {
	skipWithoutOperators(t)
	for _, c := range []struct {
		momentum        float64
		readShortcut    bool
		native, withSum int // native BatchNormalizations, and those that include a sum
		relus, masks    int // standard ReLUs, and the Greater nodes of their gradients
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
				if len(n.Input) == 4 { // x, scale, bias and the other summand
					withSum++
				}
			}
		}
		if forward != c.native || gradients != c.native || withSum != c.withSum || count(r, "Relu") != c.relus || count(r, "Greater") != c.masks {
			t.Errorf("%+v: %d native BatchNormalizations, %d with a sum, %d native gradients, %d Relu and %d Greater nodes", c, forward, withSum, gradients, count(r, "Relu"), count(r, "Greater"))
		}
		got, want := run(t, r, in...), run(t, m, in...)
		for i, o := range m.Outputs() {
			assertClose(t, o.Name, got[i], want[i])
		}
	}
}

// Nodes with too few inputs, which ONNX Runtime refuses, are no errors of Rewrite and stay as they
// are.
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
		r, err := accel.Rewrite(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		op, _, _ := strings.Cut(name, " ")
		if !slices.ContainsFunc(r.Nodes(), func(n *pb.NodeProto) bool { return n.GetOpType() == op && onnx.IsStandard(n) && len(n.Input) == 1 }) {
			t.Errorf("%s: the node has changed: %v", name, r.Nodes())
		}
	}
}
