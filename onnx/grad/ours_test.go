package grad_test

import (
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// Gradients through convolutions of our own are those through the engine's: wide ones, and between them one with strides and one of one tap.
func TestConvolvedAgreesWithStandardOperators(t *testing.T) {
	r := seed.Rand(1, "convolved")
	normal := func(scale float64, shape ...int) tensor.Tensor {
		v := tensor.New(shape...)
		for i := range v.Data {
			v.Data[i] = float32(scale * r.NormFloat64())
		}
		return v
	}
	x, first, second, down, one := normal(1, 2, 128, 11, 9), normal(0.03, 128, 128, 3, 3), normal(0.03, 136, 128, 3, 3), normal(0.03, 64, 136, 3, 3), normal(0.1, 64, 64, 1, 1)
	bias := normal(1, 128)
	gradient := func(ours bool) []float32 {
		b := onnx.NewBuilder(16)
		in := b.Input("x", onnx.Float, x.Shape...)
		pads := []int{1, 1, 1, 1}
		y := b.Relu(b.Conv(in, b.Const("", first), b.Const("", bias), onnx.Attrs{"pads": pads}))
		y = b.Relu(b.Conv(b.Add(y, in), b.Const("", second), "", onnx.Attrs{"pads": pads}))
		y = b.Relu(b.Conv(y, b.Const("", down), "", onnx.Attrs{"pads": pads, "strides": []int{2, 2}}))
		y = b.Conv(y, b.Const("", one), "", nil)
		loss := b.ReduceSum(b.Mul(y, y), false)
		differentiate := grad.Pullback
		if ours {
			differentiate = grad.Convolved
		}
		g, err := differentiate(b, []onnx.Value{loss}, []onnx.Value{""}, in)
		if err != nil {
			t.Fatal(err)
		}
		if ours {
			grad.Convolve(b)
		}
		b.Output("g", g[0])
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		rt := engine(t)
		session, err := rt.NewSession(m, ort.Options{Threads: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		fed, err := ort.Wrap(rt, x.Data, x.Shape...)
		if err != nil {
			t.Fatal(err)
		}
		defer fed.Close()
		out := make([]*ort.Value, 1)
		if err := session.Run(t.Context(), []*ort.Value{fed}, out); err != nil {
			t.Fatal(err)
		}
		defer out[0].Close()
		return out[0].Tensor().Clone().Data
	}
	if d := relative(gradient(true), gradient(false)); !(d < 1e-4) {
		t.Errorf("gradients differ by %v of the largest", d)
	} else {
		t.Logf("gradients differ by %.2g of the largest", d)
	}
}
