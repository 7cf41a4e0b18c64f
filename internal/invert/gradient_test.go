package invert_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestGradient compares gradients of the losses with central differences of the losses, computed
// here from the scores, up to the positive factor that two of them have.
func TestGradient(t *testing.T) {
	t.Parallel()
	r := seed.Rand(1)
	weights := func(rows, columns int) tensor.Tensor {
		w := tensor.New(rows, columns)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64())
		}
		return w
	}
	first, second := weights(4, 8), weights(8, 6)
	smooth := func(probabilities bool) func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return func(b *onnx.Builder, x onnx.Value) onnx.Value {
			z := b.MatMul(b.Tanh(b.MatMul(b.Flatten(x, 1), b.Const("first", first))), b.Const("second", second))
			if probabilities {
				return b.Softmax(z, 1)
			}
			return z
		}
	}
	losses := map[invert.ClassLoss]func(z []float32, y, t int) float64{
		invert.CrossEntropy: func(z []float32, y, _ int) float64 {
			sum := 0.0
			for _, v := range z {
				sum += math.Exp(float64(v))
			}
			return math.Log(sum) - float64(z[y])
		},
		invert.TargetedDLR: func(z []float32, y, t int) float64 {
			s := slices.Sorted(slices.Values(z))
			n := len(s)
			return float64(z[t]-z[y]) / (float64(s[n-1]) - float64(s[n-3]+s[n-4])/2)
		},
		invert.Difference: func(z []float32, y, t int) float64 { return float64(z[t]) - float64(z[y]) },
	}
	for _, probabilities := range []bool{false, true} {
		for _, opset := range []int{9, 17} {
			m := buildOf(t, opset, -1, smooth(probabilities))
			for _, outputs := range [][]int{nil, {4, 1, 5, 0}} {
				classes := 6
				if outputs != nil {
					classes = len(outputs)
				}
				for loss, value := range losses {
					g, err := invert.NewGradient(invert.Misclassify(m, outputs), loss, 7, invert.Options{Batch: 3})
					if err != nil {
						t.Fatal(err)
					}
					row := func(x []float32, i int) invert.GradientRow {
						return invert.GradientRow{Image: x, Label: i % classes, Target: (i + 1) % classes, Scores: make([]float32, classes), Gradient: make([]float32, 4)}
					}
					var rows []invert.GradientRow
					for i := range 7 {
						rows = append(rows, row([]float32{r.Float32(), r.Float32(), r.Float32(), r.Float32()}, i))
					}
					if err := g.Run(t.Context(), rows); err != nil {
						t.Fatal(err)
					}
					for i, got := range rows {
						want, kink := make([]float64, 4), false // at a kink the order of the scores changes
						for k := range 4 {
							const h = 4e-3
							var ends []invert.GradientRow
							for _, step := range []float32{h, -h} {
								x := slices.Clone(got.Image)
								x[k] += step
								ends = append(ends, row(x, i))
							}
							if err := g.Run(t.Context(), ends); err != nil {
								t.Fatal(err)
							}
							kink = kink || !slices.Equal(order(ends[0].Scores), order(ends[1].Scores))
							want[k] = (value(ends[0].Scores, got.Label, got.Target) - value(ends[1].Scores, got.Label, got.Target)) / (2 * h)
						}
						if kink {
							continue
						}
						var gw, gg, ww float64
						for k, v := range got.Gradient {
							gw, gg, ww = gw+float64(v)*want[k], gg+float64(v)*float64(v), ww+want[k]*want[k]
						}
						cosine, ratio := gw/math.Sqrt(gg*ww), math.Sqrt(gg/ww)
						if cosine < 0.998 || loss == invert.Difference && math.Abs(ratio-1) > 0.02 {
							t.Errorf("opset %d, probabilities %v, outputs %v, loss %v, image %d: gradient %v, want %v up to a factor", opset, probabilities, outputs, loss, i, got.Gradient, want)
						}
					}
					if err := g.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

// order returns the indices of values, from the smallest to the largest.
func order(v []float32) []int {
	out := make([]int, len(v))
	for i := range out {
		out[i] = i
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	return out
}

// TestGradientErrors checks too few classes and cancelled contexts.
func TestGradientErrors(t *testing.T) {
	t.Parallel()
	m := build(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.MatMul(b.Flatten(x, 1), matrix(b, 3, make([]float32, 12)...))
	})
	if _, err := invert.NewGradient(invert.Misclassify(m, nil), invert.TargetedDLR, 1, invert.Options{}); err == nil || !strings.Contains(err.Error(), "at least 4 classes, and there are 3") {
		t.Errorf("three classes: error %v", err)
	}
	g, err := invert.NewGradient(invert.Misclassify(m, nil), invert.CrossEntropy, 1, invert.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	row := invert.GradientRow{Image: make([]float32, 4), Scores: make([]float32, 3), Gradient: make([]float32, 4)}
	if err := g.Run(ctx, []invert.GradientRow{row}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}
