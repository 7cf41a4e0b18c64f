//go:build cgo

package grad_test

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// standardise computes (z - mean) / sqrt(variance + epsilon) in place.
func standardise(z []float64, epsilon float32) {
	var mean, variance float64
	for _, v := range z {
		mean += v / float64(len(z))
	}
	for _, v := range z {
		variance += (v - mean) * (v - mean) / float64(len(z))
	}
	for i, v := range z {
		z[i] = (v - mean) / math.Sqrt(variance+float64(epsilon))
	}
}

// TestNativeOperators checks operators that inFloat64 leaves to ONNX Runtime's float64 kernels:
// they compute in float64 throughout, and do not round to float32 in between.
func TestNativeOperators(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(3), 4, 6)
	vector := func(b *onnx.Builder, v ...float32) onnx.Value { return b.Const("", vectorOf(v...)) }
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, x onnx.Value) onnx.Value
		want  func(z []float64) // replaces a row of six values by the result
	}{
		"LayerNormalization": {func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("LayerNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Full(1, 6))
		}, func(z []float64) { standardise(z, 0.01) }},
		"BatchNormalization": {func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("BatchNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Full(1.1, 6), b.Full(0.3, 6), b.Full(0.7, 6), b.Full(2, 6))
		}, func(z []float64) {
			// The graph has the constants in float32.
			f := func(v float32) float64 { return float64(v) }
			for i, v := range z {
				z[i] = (v-f(0.7))/math.Sqrt(2+f(0.01))*f(1.1) + f(0.3)
			}
		}},
		"LpNormalization": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("LpNormalization", nil, x) }, func(z []float64) {
			sum := 0.0
			for _, v := range z {
				sum += v * v
			}
			for i, v := range z {
				z[i] = v / math.Sqrt(sum)
			}
		}},
		"Softmax": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Softmax(x, 1) }, func(z []float64) {
			sum := 0.0
			for _, v := range z {
				sum += math.Exp(v)
			}
			for i, v := range z {
				z[i] = math.Exp(v) / sum
			}
		}},
		"LogSoftmax": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.LogSoftmax(x, 1) }, func(z []float64) {
			sum := 0.0
			for _, v := range z {
				sum += math.Exp(v)
			}
			for i, v := range z {
				z[i] = v - math.Log(sum)
			}
		}},
		"Pow": {func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Pow(b.Abs(x), vector(b, 1.7)) }, func(z []float64) {
			for i, v := range z {
				z[i] = math.Pow(math.Abs(v), float64(float32(1.7)))
			}
		}},
		"ReduceLogSumExp": {func(b *onnx.Builder, x onnx.Value) onnx.Value {
			// In the shape of x.
			return b.Add(b.Op("ReduceLogSumExp", onnx.Attrs{"axes": []int{1}}, x), b.Mul(x, b.Scalar(0)))
		}, func(z []float64) {
			sum := 0.0
			for _, v := range z {
				sum += math.Exp(v)
			}
			for i := range z {
				z[i] = math.Log(sum)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := widened(x.Data)
			for row := range 4 {
				c.want(want[row*6 : row*6+6])
			}
			// checkExact compares with want in float64; here in opset 17, with declared sizes.
			checkExact(t, 17, x, false, c.write, want, x.Shape...)
		})
	}
}
