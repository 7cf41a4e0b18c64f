//go:build !noaccel && amd64

package kernels_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestBatchNormalization compares BatchNormalization and its gradient with the formulas of the
// package comment, for any shape, and with and without the optional tensors: an addend, and a mask
// that is positive where ReLU passes a value on. Of other files here, filled(seed, shape...)
// returns normal values, run(t, operator, attributes, threads, outputs, inputs...) runs one node,
// and the last argument of assertSums, about the number of terms of each sum, sets the tolerance.
func TestBatchNormalization(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, c := rapid.IntRange(2, 4).Draw(r, "samples"), rapid.IntRange(1, 70).Draw(r, "channels")
		shape := append([]int{n, c}, rapid.SliceOfN(rapid.IntRange(1, 20), 1, 2).Draw(r, "space")...)
		pixels := tensor.Size(shape[2:])
		// optional is 0 without an addend and a mask, 1 with both, and 2 with a further output,
		// masked: dy where the mask is positive, else 0.
		count, relu, optional := float64(n*pixels), rapid.IntRange(0, 1).Draw(r, "relu"), rapid.IntRange(0, 2).Draw(r, "optional")
		const epsilon = 0.125
		attrs := onnx.Attrs{"epsilon": float32(epsilon), "relu": relu}
		x, addend, dy, mask, scale, bias := filled(1, shape...), filled(2, shape...), filled(3, shape...), filled(4, shape...), filled(5, c), filled(6, c)
		// sum and along are the sums of masked and of masked (x - mean) over a channel.
		mean, variance, sum, along := make([]float64, c), make([]float64, c), make([]float64, c), make([]float64, c)
		y, dx, masked := make([]float64, len(x.Data)), make([]float64, len(x.Data)), make([]float64, len(x.Data))
		forEach := func(f func(i, k int, v float64)) { // element i of x, in channel k, is v
			for i, v := range x.Data {
				f(i, i/pixels%c, float64(v))
			}
		}
		forEach(func(_, k int, v float64) { mean[k] += v / count })
		forEach(func(_, k int, v float64) { variance[k] += (v - mean[k]) * (v - mean[k]) / count })
		inverse := func(k int) float64 { return 1 / math.Sqrt(variance[k]+epsilon) }
		forEach(func(i, k int, v float64) {
			y[i] = (v-mean[k])*inverse(k)*float64(scale.Data[k]) + float64(bias.Data[k])
			if optional > 0 {
				y[i] += float64(addend.Data[i])
			}
			if relu == 1 {
				y[i] = max(0, y[i])
			}
			if optional == 0 || mask.Data[i] > 0 {
				masked[i] = float64(dy.Data[i])
			}
			sum[k] += masked[i]
			along[k] += masked[i] * (v - mean[k])
		})
		forEach(func(i, k int, v float64) {
			dx[i] = float64(scale.Data[k]) * inverse(k) * (masked[i] - sum[k]/count - (v-mean[k])*inverse(k)*inverse(k)*along[k]/count)
		})
		inputs := []tensor.Tensor{x, scale, bias}
		gradientInputs := []tensor.Tensor{dy, x, scale, toFloat32(mean), toFloat32(variance)}
		if optional > 0 {
			inputs, gradientInputs = append(inputs, addend), append(gradientInputs, mask)
		}
		got, err := run(t, "BatchNormalization", attrs, 2, 3, inputs...)
		if err != nil {
			r.Fatal(err)
		}
		assertSums(r, "y", got[0], shape, y, 20)
		assertSums(r, "mean", got[1], []int{c}, mean, 4)
		assertSums(r, "variance", got[2], []int{c}, variance, 4)
		if got, err = run(t, "BatchNormalizationGradient", attrs, 2, []int{3, 3, 4}[optional], gradientInputs...); err != nil {
			r.Fatal(err)
		}
		assertSums(r, "dx", got[0], shape, dx, 20)
		assertSums(r, "sum", got[1], []int{c}, sum, int(count))
		assertSums(r, "along", got[2], []int{c}, along, int(count))
		if optional == 2 {
			assertSums(r, "masked", got[3], shape, masked, 1)
		}
	})
}

// toFloat32 returns a vector in single precision.
func toFloat32(v []float64) tensor.Tensor {
	t := tensor.New(len(v))
	for i := range v {
		t.Data[i] = float32(v[i])
	}
	return t
}

// TestBatchNormalizationThreads checks that results do not depend on the number of threads, and
// that NaN stays in its channel.
func TestBatchNormalizationThreads(t *testing.T) {
	x := filled(1, 3, 150, 5, 7)
	x.Data[35*40] = float32(math.NaN()) // in channel 40, as a channel has 5 x 7 pixels
	scale, bias := filled(2, 150), filled(3, 150)
	one, err1 := run(t, "BatchNormalization", onnx.Attrs{"relu": 1}, 1, 3, x, scale, bias)
	two, err2 := run(t, "BatchNormalization", onnx.Attrs{"relu": 1}, 2, 3, x, scale, bias)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i, v := range one[0].Data {
		if isNaN := v != v; isNaN != (i/35%150 == 40) || !isNaN && v != two[0].Data[i] {
			t.Fatalf("element %d is %g with one thread and %g with two", i, v, two[0].Data[i])
		}
	}
	for _, in := range [][]tensor.Tensor{{x, filled(2, 149), bias}, {x, scale, bias, filled(3, 3, 150, 5, 6)}} {
		if _, err := run(t, "BatchNormalization", nil, 1, 3, in...); err == nil {
			t.Errorf("no error for inputs of shapes %v and %v", in[1].Shape, in[len(in)-1].Shape)
		}
	}
}
