//go:build cgo

package grad_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// inFloat64 returns the case, a random node with operands (its inputs with their values), with
// float64 in place of float32, except for operands by which no gradient is taken.
func (tc testCase) inFloat64(op string, opset int) testCase {
	tc.operands = slices.Clone(tc.operands)
	// All floats must have the type of the first.
	oneType := op == "Pow" && opset < 12 || op == "Scatter"
	for i := range tc.operands {
		o := &tc.operands[i]
		o.isFloat64 = o.floats != nil && (!o.noGradient || oneType)
	}
	return tc
}

// gradients builds a graph of the first output y that the loss reads, and of the gradients of y by
// the operands, all cast to float32. The cotangent, which weights the elements of y, is the input
// r0, of the shape of dy[0]. If dy is nil, the graph has only the output. The plain form of a case
// is the graph that declares every size.
func (tc testCase) gradients(t *testing.T, op string, opset int, dy []tensor.Tensor) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	in, out := tc.node(b, op, tc.plainForm(opset))
	y := out[tc.lossOutputs()[0]]
	addOutputWithShape(b, "y", b.Cast(y, onnx.Float))
	if dy == nil {
		return build(t, b)
	}
	r := b.Input("r0", onnx.Float, dy[0].Shape...)
	var by []onnx.Value
	for i, o := range tc.operands {
		if o.differentiable() {
			by = append(by, in[i])
			if o.isFloat64 && len(by) == 1 {
				r = b.Cast(r, onnx.Double)
			}
		}
	}
	dx, err := grad.Of(b, y, r, by...)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range dx {
		addOutputWithShape(b, fmt.Sprintf("grad%d", i), b.Cast(g, onnx.Float))
	}
	return build(t, b)
}

// Gradients in float64 equal those in float32 up to rounding, where ONNX Runtime has the operator
// in float64. cases holds all operators; draw makes a random case of one, by a generator.
func TestFloat64Gradients(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			if c.op == "LSTM" || c.op == "GRU" {
				t.Skip("ONNX Runtime has this operator in float32 only, and reports that only when it runs")
			}
			for _, opset := range c.opsets {
				if c.op == "MaxPool" && opset < 16 {
					continue // its gradient in float64 needs operator set 16
				}
				for i := range trials() {
					g := &generator{Rand: seed.Rand(12, c.op, opset, i), opset: opset, trial: i}
					checkFloat64(t, rt, c.op, g, c.draw(g))
				}
			}
		})
	}
}

// checkFloat64 compares gradients in float64 with those in float32. It checks nothing if ONNX
// Runtime lacks the operator in float64.
func checkFloat64(t *testing.T, rt *ort.Runtime, op string, g *generator, tc testCase) {
	t.Helper()
	tc64 := tc.inFloat64(op, g.opset)
	s, err := rt.NewSession(tc64.gradients(t, op, g.opset, nil), ort.Options{Threads: 1})
	if err != nil {
		// The engine lacks the operator in float64, or ONNX does not define it, as Celu.
		if message := err.Error(); !strings.Contains(message, "Could not find an implementation") && !strings.Contains(message, "Type 'tensor(double)' of input parameter") {
			t.Errorf("opset %d: %v", g.opset, err)
		}
		return
	}
	s.Close()
	feed, feed64 := tc.feed(), tc64.feed()
	y := compile(t, tc.gradients(t, op, g.opset, nil)).run(t, feed)[0]
	dy := tensor.New(y.Shape...)
	for i := range dy.Data {
		dy.Data[i] = float32(g.NormFloat64())
	}
	feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
	feed64["r0"] = feed["r0"]
	want := compile(t, tc.gradients(t, op, g.opset, []tensor.Tensor{dy})).run(t, feed)
	got := compile(t, tc64.gradients(t, op, g.opset, []tensor.Tensor{dy})).run(t, feed64)
	for i := range want {
		if d := maxDifference(got[i].Data, want[i].Data); !(d <= 1e-5*max(1, maxAbs(want[i].Data))) || math.IsNaN(d) {
			t.Errorf("opset %d, result %d: %v in float64, %v in float32: %v", g.opset, i, got[i], want[i], tc)
		}
	}
}

// A graph that inFloat64 rewrites to compute y in float64 gives the same gradients up to
// rounding. The cases keep away from kinks such as ties of a maximum, where rounding can change a
// gradient.
func TestFloat64Oracle(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			for _, opset := range c.opsets {
				if opset < oracleMinOpset {
					continue
				}
				for i := range trials() {
					g := &generator{Rand: seed.Rand(13, c.op, opset, i), opset: opset, trial: i}
					tc := c.draw(g)
					feed := tc.feed()
					y := tc.forward(t, c.op, opset).run(t, feed)[0]
					dy := tensor.New(y.Shape...)
					for k := range dy.Data {
						dy.Data[k] = float32(g.NormFloat64())
					}
					feed["r0"] = operand{shape: dy.Shape, floats: dy.Data}
					m := tc.gradients(t, c.op, opset, []tensor.Tensor{dy})
					inFloat64, err := inFloat64(m, "y")
					if err != nil {
						t.Fatal(err)
					}
					got := compile(t, inFloat64).run(t, feed)
					for k, want := range compile(t, m).run(t, feed) {
						if !slices.Equal(got[k].Shape, want.Shape) {
							t.Errorf("opset %d, result %d: shape %v, in float32 %v: %v", opset, k, got[k].Shape, want.Shape, tc)
						} else if d := maxDifference(got[k].Data, want.Data); !(d <= 1e-5*max(1, maxAbs(want.Data))) {
							t.Errorf("opset %d, result %d: %v, in float32 %v: %v", opset, k, got[k], want, tc)
						}
					}
				}
			}
		})
	}
}
