package grad_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// residual is a small residual network with a shortcut of one tap, and the gradient of what it ends in by its input.
func residual(t *testing.T, differentiate func(b *onnx.Builder, y, dy []onnx.Value, by ...onnx.Value) ([]onnx.Value, error)) *onnx.Model {
	t.Helper()
	r := seed.Rand(3, "residual")
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, in, out, size, stride int) onnx.Value {
		w, bias := tensor.New(out, in, size, size), tensor.New(out)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64() * 1.4 / math.Sqrt(float64(in*size*size)))
		}
		for i := range bias.Data {
			bias.Data[i] = float32(r.NormFloat64() / 4)
		}
		pad := size / 2
		return b.Conv(x, b.Const("", w), b.Const("", bias), onnx.Attrs{"pads": []int{pad, pad, pad, pad}, "strides": []int{stride, stride}})
	}
	x := b.Relu(conv(b.Input("x", onnx.Float, 3, 3, 20, 14), 3, 24, 3, 1))
	x = b.Relu(b.Add(conv(b.Relu(conv(x, 24, 24, 3, 1)), 24, 24, 3, 1), x))
	x = b.Relu(b.Add(conv(b.Relu(conv(x, 24, 32, 3, 2)), 32, 32, 3, 1), conv(x, 24, 32, 1, 2)))
	y := b.Op("GlobalAveragePool", nil, x)
	loss := b.ReduceSum(b.Exp(y), false)
	g, err := differentiate(b, []onnx.Value{loss}, []onnx.Value{""}, "x")
	if err != nil {
		t.Fatal(err)
	}
	b.Output("y", y)
	b.Output("dx", g[0])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = rewrite.WithOutputs(m, []string{"y", "dx"}); err != nil {
		t.Fatal(err)
	}
	return m
}

// A residual network and its gradient are one node for each convolution, with the channels last in between, and come to the same.
func TestResidualIsFused(t *testing.T) {
	if !kernels.Convolves() {
		t.Skip("convolutions of our own are slow on this processor")
	}
	ours := residual(t, grad.Convolved)
	count := map[string]int{}
	for _, n := range ours.Nodes() {
		count[n.GetOpType()]++
	}
	for op, want := range map[string]int{
		kernels.ConvolutionLast: 6, kernels.ConvolutionInputGradientLast: 6, kernels.ChannelsLast: 2, kernels.ChannelsFirst: 2, kernels.ReluGradient: 1, "Relu": 0, "Add": 0, "Conv": 0,
	} {
		if count[op] != want {
			t.Errorf("there are %d nodes %s, want %d", count[op], op, want)
		}
	}
	x := seed.Rand(4)
	data := make([]float32, 3*3*20*14)
	for i := range data {
		data[i] = float32(x.NormFloat64())
	}
	got, want := outputs(t, ours, data), outputs(t, residual(t, grad.Pullback), data)
	for i, name := range []string{"y", "dx"} {
		if e := relative(got[i], want[i]); !(e < 1e-5) {
			t.Errorf("%s is off by %.2g of its largest value", name, e)
		}
	}
}

// outputs runs a model on its input x.
func outputs(t *testing.T, m *onnx.Model, x []float32) [][]float32 {
	t.Helper()
	rt := engine(t)
	s, err := rt.NewSession(m, ort.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	in, err := ort.Wrap(rt, x, 3, 3, 20, 14)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out := make([]*ort.Value, 2)
	if err := s.Run(t.Context(), []*ort.Value{in}, out); err != nil {
		t.Fatal(err)
	}
	var list [][]float32
	for _, v := range out {
		list = append(list, slices.Clone(ort.Data[float32](v)))
		v.Close()
	}
	return list
}

// Random networks of feature maps have the same gradient with nodes of our own, whichever of them are chosen.
func TestConvolvedMaps(t *testing.T) {
	chosen := 0
	for i := range 8 * trials() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			m, feed := drawMaps(t, i, true, grad.Convolved)
			if slices.ContainsFunc(m.Nodes(), func(n *pb.NodeProto) bool { return n.GetOpType() == kernels.ConvolutionLast }) {
				chosen++
			}
			got := compile(t, m).run(t, feed)[0]
			m, feed = drawMaps(t, i, true, grad.Pullback)
			alikeMostly(t, got, compile(t, m).run(t, feed)[0])
		})
	}
	if chosen == 0 && kernels.Convolves() {
		t.Error("nothing was computed with its channels last")
	}
}
