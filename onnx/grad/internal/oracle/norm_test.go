//go:build cgo

package oracle_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
)

// standardise subtracts the mean and divides by the deviation, whose square is made larger by
// epsilon.
func standardise(z []float64, epsilon float32) {
	var sum, squares float64
	for _, v := range z {
		sum += v / float64(len(z))
	}
	for _, v := range z {
		squares += (v - sum) * (v - sum) / float64(len(z))
	}
	for i, v := range z {
		z[i] = (v - sum) / math.Sqrt(squares+float64(epsilon))
	}
}

func TestInstanceNormalization(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(3), 2, 3, 4, 5)
	scale, shift := normal(seed.Rand(4), 3), normal(seed.Rand(5), 3)
	want := widened(x.Data)
	for m := range 6 {
		z := want[m*20 : m*20+20]
		standardise(z, 0.01)
		for i := range z {
			z[i] = float64(scale.Data[m%3])*z[i] + float64(shift.Data[m%3])
		}
	}
	checkExact(t, 11, x, true, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Op("InstanceNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Const("s", scale), b.Const("b", shift))
	}, want, x.Shape...)
}

// Scale and shift of a group, and since opset 21 of a channel.
func TestGroupNormalization(t *testing.T) {
	t.Parallel()
	const channels, groups, area = 6, 2, 20
	x := normal(seed.Rand(3), 2, channels, 4, 5)
	for opset, count := range map[int]int{18: groups, 21: channels} {
		t.Run(fmt.Sprint(opset), func(t *testing.T) {
			scale, shift := normal(seed.Rand(4), count), normal(seed.Rand(5), count)
			want := widened(x.Data)
			for g := range 2 * groups {
				standardise(want[g*channels/groups*area:][:channels/groups*area], 0.01)
			}
			for i := range want {
				k := i / area % channels * count / channels
				want[i] = float64(scale.Data[k])*want[i] + float64(shift.Data[k])
			}
			checkExact(t, opset, x, true, func(b *onnx.Builder, x onnx.Value) onnx.Value {
				return b.Op("GroupNormalization", onnx.Attrs{"epsilon": 0.01, "num_groups": groups}, x, b.Const("s", scale), b.Const("b", shift))
			}, want, x.Shape...)
		})
	}
}

func TestLRN(t *testing.T) {
	t.Parallel()
	const channels, area = 5, 12
	x := normal(seed.Rand(3), 2, channels, 3, 4)
	for _, size := range []int{1, 3, 4, 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			alpha, beta, bias := float32(0.3), float32(0.6), float32(1.5)
			want := widened(x.Data)
			for i, v := range want {
				c, sum := i/area%channels, 0.0
				for k := max(0, c-(size-1)/2); k <= min(channels-1, c+size/2); k++ {
					z := float64(x.Data[i+(k-c)*area])
					sum += z * z
				}
				want[i] = v / math.Pow(float64(bias)+float64(alpha)/float64(size)*sum, float64(beta))
			}
			checkExact(t, 13, x, true, func(b *onnx.Builder, x onnx.Value) onnx.Value {
				return b.Op("LRN", onnx.Attrs{"size": size, "alpha": alpha, "beta": beta, "bias": bias}, x)
			}, want, x.Shape...)
		})
	}
}

// What the engine has in float64 is computed in float64 inside, too.
func TestNativeNormalizations(t *testing.T) {
	t.Parallel()
	x := normal(seed.Rand(3), 4, 6)
	vector := func(b *onnx.Builder, v ...float32) onnx.Value { return b.Const("", vectorOf(v...)) }
	for name, c := range map[string]struct {
		write func(b *onnx.Builder, x onnx.Value) onnx.Value
		want  func(z []float64)
	}{
		"LayerNormalization": {func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("LayerNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Full(1, 6))
		}, func(z []float64) { standardise(z, 0.01) }},
		"BatchNormalization": {func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("BatchNormalization", onnx.Attrs{"epsilon": 0.01}, x, b.Full(1.1, 6), b.Full(0.3, 6), b.Full(0.7, 6), b.Full(2, 6))
		}, func(z []float64) {
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
			for m := range 4 {
				c.want(want[m*6 : m*6+6])
			}
			checkExact(t, 17, x, false, c.write, want, x.Shape...)
		})
	}
}
