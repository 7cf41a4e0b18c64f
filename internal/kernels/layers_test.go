package kernels_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/kernels"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// filled is a tensor of normal numbers.
func filled(seed uint64, shape ...int) tensor.Tensor {
	return tensor.Tensor{Shape: shape, Data: random(seed, 2, tensor.Size(shape))[0]}
}

func TestMirror(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		out, in := rapid.IntRange(1, 40).Draw(r, "out"), rapid.IntRange(1, 40).Draw(r, "in")
		kernel := rapid.SliceOfN(rapid.IntRange(1, 4), 1, 3).Draw(r, "kernel")
		w := filled(1, append([]int{out, in}, kernel...)...)
		taps := tensor.Size(kernel)
		got, err := run(t, kernels.Mirror, nil, 2, 1, w)
		if err != nil {
			r.Fatal(err)
		}
		if !slices.Equal(got[0].Shape, []int{in, out, taps}) {
			r.Fatalf("the shape is %v", got[0].Shape)
		}
		for o := range out {
			for i := range in {
				for k := range taps {
					if want := w.Data[(o*in+i)*taps+k]; got[0].Data[(i*out+o)*taps+taps-1-k] != want {
						r.Fatalf("w[%d, %d, %d] is not where it should be", o, i, k)
					}
				}
			}
		}
	})
}

// The gradient is that of the formula, in float64, with as many channels and places as one likes.
func TestBatchNormalizationGradient(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, c, s := rapid.IntRange(1, 5).Draw(r, "samples"), rapid.IntRange(1, 9).Draw(r, "channels"), rapid.IntRange(1, 70).Draw(r, "places")
		x, dy, scale, mean, variance := filled(1, n, c, s), filled(2, n, c, s), filled(3, c), filled(4, c), filled(5, c)
		for i, v := range variance.Data {
			variance.Data[i] = v*v + 0.1
		}
		const epsilon = 1.0 / 1024
		got, err := run(t, kernels.BatchNormalizationGradient, onnx.Attrs{"epsilon": epsilon}, 2, 3, x, dy, scale, mean, variance)
		if err != nil {
			r.Fatal(err)
		}
		for k := range c {
			var sum, along, count float64
			each := func(f func(at int, d, centred float64)) {
				for b := range n {
					for p := range s {
						at := (b*c+k)*s + p
						f(at, float64(dy.Data[at]), float64(x.Data[at]-mean.Data[k]))
					}
				}
			}
			each(func(_ int, d, centred float64) { sum, along, count = sum+d, along+d*centred, count+1 })
			inverse := 1 / math.Sqrt(float64(variance.Data[k])+epsilon)
			tight(r, "dscale", got[1].Data[k], along*inverse)
			tight(r, "dbias", got[2].Data[k], sum)
			each(func(at int, d, centred float64) {
				tight(r, "dx", got[0].Data[at], float64(scale.Data[k])*inverse*(d-sum/count-centred*inverse*inverse*along/count))
			})
		}
	})
}

func tight(t *rapid.T, what string, got float32, want float64) {
	if d := math.Abs(float64(got) - want); !(d <= 1e-4*max(1, math.Abs(want))) {
		t.Fatalf("%s is %g, not %g", what, got, want)
	}
}

func TestWrongLayers(t *testing.T) {
	if _, err := run(t, kernels.Mirror, nil, 1, 1, filled(1, 5)); err == nil || !strings.Contains(err.Error(), "fewer than two axes") {
		t.Errorf("weights with one axis: %v", err)
	}
	for _, channels := range []int{2, 4} {
		v := filled(1, channels)
		if _, err := run(t, kernels.BatchNormalizationGradient, nil, 1, 3, filled(1, 2, 3, 4), filled(1, 2, 3, 4), v, v, v); err == nil || !strings.Contains(err.Error(), "does not fit") {
			t.Errorf("statistics of %d channels where there are 3: %v", channels, err)
		}
	}
}

// A normalisation by the batch is that of the formula, in float64.
func TestBatchNormalization(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, c, s := rapid.IntRange(1, 5).Draw(r, "samples"), rapid.IntRange(1, 9).Draw(r, "channels"), rapid.IntRange(1, 70).Draw(r, "places")
		x, scale, bias := filled(1, n, c, s), filled(2, c), filled(3, c)
		shift := rapid.SampledFrom([]float32{0, 100}).Draw(r, "shift")
		for i := range x.Data {
			x.Data[i] += shift
		}
		const epsilon = 1.0 / 1024
		got, err := run(t, kernels.BatchNormalization, onnx.Attrs{"epsilon": epsilon}, 2, 3, x, scale, bias)
		if err != nil {
			r.Fatal(err)
		}
		for k := range c {
			var sum, squares float64
			each := func(f func(at int, v float64)) {
				for b := range n {
					for p := range s {
						f((b*c+k)*s+p, float64(x.Data[(b*c+k)*s+p]))
					}
				}
			}
			each(func(_ int, v float64) { sum += v })
			mean := sum / float64(n*s)
			each(func(_ int, v float64) { squares += (v - mean) * (v - mean) })
			variance := squares / float64(n*s)
			tight(r, "mean", got[1].Data[k], mean)
			tight(r, "variance", got[2].Data[k], variance)
			each(func(at int, v float64) {
				want := float64(scale.Data[k])*(v-mean)/math.Sqrt(variance+epsilon) + float64(bias.Data[k])
				if d := math.Abs(float64(got[0].Data[at]) - want); !(d < 1e-4*(1+float64(shift))) {
					r.Fatalf("y is %g, not %g", got[0].Data[at], want)
				}
			})
		}
	})
}

func TestReluGradient(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := lengths.Draw(r, "n")
		y, dy := filled(1, n), filled(2, n)
		y.Data[n/2] = 0
		got, err := run(t, kernels.ReluGradient, nil, 2, 1, y, dy)
		if err != nil {
			r.Fatal(err)
		}
		for i, v := range dy.Data {
			if y.Data[i] <= 0 {
				v = 0
			}
			if got[0].Data[i] != v {
				r.Fatalf("dx %d is %g, not %g", i, got[0].Data[i], v)
			}
		}
	})
	if _, err := run(t, kernels.ReluGradient, nil, 1, 1, filled(1, 5), filled(2, 4)); err == nil || !strings.Contains(err.Error(), "not as large") {
		t.Error(err)
	}
}
