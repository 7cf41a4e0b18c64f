//go:build cgo

package grad_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/grad/internal/oracle"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// doubled is a trial in float64: all numbers but those that say how, not what.
func (tr trial) doubled() trial {
	tr.operands = slices.Clone(tr.operands)
	for i := range tr.operands {
		o := &tr.operands[i]
		o.double = o.floats != nil && !o.given
	}
	return tr
}

// gradients builds the graph of the first output that the loss reads and of its gradients; all
// results are float32.
func (tr trial) gradients(t *testing.T, op string, opset int, dy []tensor.Tensor) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	in, out := tr.node(b, op, tr.plain(opset))
	y := out[tr.read()[0]]
	observe(b, "y", b.Cast(y, onnx.Float))
	if dy == nil {
		return build(t, b)
	}
	r := b.Input("r0", onnx.Float, dy[0].Shape...)
	var by []onnx.Value
	for i, o := range tr.operands {
		if o.differentiable() {
			by = append(by, in[i])
			if o.double && len(by) == 1 {
				r = b.Cast(r, onnx.Double)
			}
		}
	}
	dx, err := grad.Of(b, y, r, by...)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range dx {
		observe(b, fmt.Sprintf("grad%d", i), b.Cast(g, onnx.Float))
	}
	return build(t, b)
}

// In float64, where a runtime has the operator, gradients are what they are in float32.
func TestDouble(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			if c.op == "LSTM" || c.op == "GRU" {
				t.Skip("the engine has it in float32 only, and says so when it runs")
			}
			for _, opset := range c.opsets {
				if c.op == "MaxPool" && opset < 16 {
					continue // it is refused
				}
				for i := range trials() {
					g := &gen{Rand: seed.Rand(12, c.op, opset, i), opset: opset, trial: i}
					checkDouble(t, rt, c.op, g, c.draw(g))
				}
			}
		})
	}
}

// checkDouble compares the gradients of a trial in float64 with those in float32, where the engine
// has the operator in float64.
func checkDouble(t *testing.T, rt *ort.Runtime, op string, g *gen, tr trial) {
	t.Helper()
	wide := tr.doubled()
	s, err := rt.NewSession(wide.gradients(t, op, g.opset, nil), ort.Options{Threads: 1})
	if err != nil {
		return
	}
	s.Close()
	feed, feedWide := tr.feed(), wide.feed()
	y := compile(t, tr.gradients(t, op, g.opset, nil)).run(t, feed)[0]
	dy := tensor.New(y.Shape...)
	for i := range dy.Data {
		dy.Data[i] = float32(g.NormFloat64())
	}
	feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
	feedWide["r0"] = feed["r0"]
	want := compile(t, tr.gradients(t, op, g.opset, []tensor.Tensor{dy})).run(t, feed)
	got := compile(t, wide.gradients(t, op, g.opset, []tensor.Tensor{dy})).run(t, feedWide)
	for i := range want {
		if d := distance(got[i].Data, want[i].Data); !(d <= 1e-5*max(1, largest(want[i].Data))) || math.IsNaN(d) {
			t.Errorf("opset %d, result %d: %v in float64, %v in float32: %v", g.opset, i, got[i], want[i], tr)
		}
	}
}

// Where the model is computed in float64 and its gradients are not, they are what they are.
func TestDoubleForward(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			for _, opset := range c.opsets {
				if opset < oracle.MinOpset {
					continue
				}
				for i := range trials() {
					g := &gen{Rand: seed.Rand(13, c.op, opset, i), opset: opset, trial: i}
					tr := c.draw(g)
					feed := tr.feed()
					y := tr.forward(t, c.op, opset).run(t, feed)[0]
					dy := tensor.New(y.Shape...)
					for k := range dy.Data {
						dy.Data[k] = float32(g.NormFloat64())
					}
					feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
					m := tr.gradients(t, c.op, opset, []tensor.Tensor{dy})
					wide, err := oracle.InFloat64(m, "y")
					if err != nil {
						t.Fatal(err)
					}
					got := compile(t, wide).run(t, feed)
					for k, want := range compile(t, m).run(t, feed) {
						if !slices.Equal(got[k].Shape, want.Shape) {
							t.Errorf("opset %d, result %d: shape %v, in float32 %v: %v", opset, k, got[k].Shape, want.Shape, tr)
						} else if d := distance(got[k].Data, want.Data); !(d <= 1e-5*max(1, largest(want.Data))) {
							t.Errorf("opset %d, result %d: %v, in float32 %v: %v", opset, k, got[k], want, tr)
						}
					}
				}
			}
		})
	}
}
