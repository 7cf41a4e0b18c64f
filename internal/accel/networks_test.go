package accel_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// resnet returns a small ResNet with its BatchNormalizations folded into the convolutions.
// normal(seed, deviation, shape...), of layout_test.go, returns normally distributed values.
func resnet(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(16)
	conv := func(x onnx.Value, in, out, size, stride int) onnx.Value {
		w := normal(uint64(in*out+size), 1.4/math.Sqrt(float64(in*size*size)), out, in, size, size)
		pad := size / 2
		return b.Conv(x, b.Const("", w), b.Const("", normal(9, 0.25, out)), onnx.Attrs{"pads": []int{pad, pad, pad, pad}, "strides": []int{stride, stride}})
	}
	x := b.Relu(conv(b.Input("x", onnx.Float, 3, 3, 20, 14), 3, 24, 3, 1))
	x = b.Relu(b.Add(conv(b.Relu(conv(x, 24, 24, 3, 1)), 24, 24, 3, 1), x))
	x = b.Relu(b.Add(conv(b.Relu(conv(x, 24, 32, 3, 2)), 32, 32, 3, 1), conv(x, 24, 32, 1, 2)))
	b.Output("y", b.Exp(b.Op("GlobalAveragePool", nil, x)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestResNet checks that all convolutions of a ResNet and of its gradient become native operators
// (those of package accel, in C), and that the results agree with those of standard operators.
// Convolutions ChannelsLast are in NHWC; ChannelsFirst converts NHWC to NCHW. Of layout_test.go,
// rewritten returns the graph with native operators, and run runs a graph as it is.
func TestResNet(t *testing.T) {
	skipWithoutOperators(t)
	m := resnet(t)
	layers := []string{"y"}
	for _, l := range m.Layers() {
		if l.Name != "y" {
			layers = append(layers, l.Name)
		}
	}
	withLayers, err := rewrite.WithOutputs(m, layers)
	if err != nil {
		t.Fatal(err)
	}
	gradient, err := grad.Add(m, grad.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		graph *onnx.Model
		want  map[string]int // number of nodes by operator, after the rewrite
	}{
		"output": {m, map[string]int{"ConvChannelsLast": 6, "Conv": 0, "Relu": 0, "Add": 0}},
		"layers": {withLayers, map[string]int{"ConvChannelsLast": 6, "ChannelsFirst": 0, "Conv": 0, "Relu": 0, "Add": 0}},
		// In the gradient a HardSigmoid that is steep enough to be a step computes the derivative
		// of a Relu.
		"gradient": {gradient, map[string]int{"ConvChannelsLast": 10, "ConvTransposeChannelsLast": 2, "Conv": 0, "ConvTranspose": 0, "Add": 0, "HardSigmoid": 1}},
	} {
		native := rewritten(t, c.graph)
		for op, want := range c.want {
			if n := count(native, op); n != want {
				t.Errorf("%s: %d nodes of operator %s, want %d", name, n, op, want)
			}
		}
		x := normal(5, 1, 3, 3, 20, 14)
		got, want := run(t, native, x), run(t, c.graph, x)
		for i, o := range c.graph.Outputs() {
			assertClose(t, name+" "+o.Name, got[i], want[i])
		}
	}
}

// TestTraining checks that the weights after two training steps with native operators agree with
// those of standard operators. Engine holds the options of ONNX Runtime.
func TestTraining(t *testing.T) {
	skipWithoutOperators(t)
	batch := train.Batch{Inputs: []tensor.Tensor{normal(1, 1, 4, 3, 9, 12)}, Targets: train.Targets{Classes: []int{0, 1, 2, 1}}}
	for _, o := range []train.Optimiser{train.SGD{Rate: 0.1, Momentum: 0.9, WeightDecay: 1e-3}, train.Adam{Rate: 1e-3, WeightDecay: 1e-3}, train.AdamW{Rate: 1e-3, WeightDecay: 1e-3}} {
		t.Run(fmt.Sprintf("%T", o), func(t *testing.T) {
			var weights []map[string]tensor.Tensor
			for _, standard := range []bool{false, true} {
				m, err := train.ResNet{Shape: []int{3, 9, 12}, Classes: 3, Widths: []int{16, 24}, Blocks: []int{1}, Seed: 1}.Build()
				if err != nil {
					t.Fatal(err)
				}
				tr, err := train.New(orttest.Load(t), train.Spec{Model: m, Loss: train.CrossEntropy, TrainingMode: true, Optimiser: o, Engine: ort.Options{NoAcceleration: standard}})
				if err != nil {
					t.Fatal(err)
				}
				defer tr.Close()
				for range 2 {
					if _, err := tr.Step(t.Context(), batch); err != nil {
						t.Fatal(err)
					}
				}
				weights = append(weights, tr.Weights())
			}
			for name, want := range weights[1] {
				var worst float64
				for i, v := range want.Data {
					worst = max(worst, math.Abs(float64(weights[0][name].Data[i]-v)))
				}
				if !(worst < 1e-4) {
					t.Errorf("%s differs by %.2g", name, worst)
				}
			}
		})
	}
}
