package rewrite

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// matMulModel returns y = x w + b with the given weights w, 2 x len(w)/2, and biases 0.1, 0.2, ...
func matMulModel(t *testing.T, w []float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 2)
	y := b.Op("MatMul", nil, x, b.Const("w", tensor.Tensor{Shape: []int{2, len(w) / 2}, Data: w}))
	bias := make([]float32, len(w)/2)
	for i := range bias {
		bias[i] = 0.1 * float32(i+1)
	}
	b.Output("y", b.Op("Add", nil, y, b.Const("b", tensor.Tensor{Shape: []int{len(bias)}, Data: bias})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// perturbed returns the weights of matMulModel after a perturbation. It checks that the biases and
// the original model do not change.
func perturbed(t *testing.T, w []float32, v Perturbation) []float32 {
	t.Helper()
	m := matMulModel(t, slices.Clone(w))
	out, err := Perturb(m, v)
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.Tensor("w")
	if err != nil || !slices.Equal(before.Data, w) {
		t.Fatalf("the model itself has changed: %v, %v", before, err)
	}
	bias, _ := m.Tensor("b")
	if same, err := out.Tensor("b"); err != nil || !slices.Equal(same.Data, bias.Data) {
		t.Fatalf("the bias has changed: %v, %v", same, err)
	}
	got, err := out.Tensor("w")
	if err != nil {
		t.Fatal(err)
	}
	return got.Data
}

// TestPerturb checks pruning, which sets the fraction Prune of the weights to 0, the smallest
// first, and rounding of weights to Bits bits: to multiples of max |w| / (2^(Bits-1) - 1).
func TestPerturb(t *testing.T) {
	t.Parallel()
	w := []float32{0.5, -2, 0.1, 3, -0.4, 1}
	for _, c := range []struct {
		v    Perturbation
		want []float32
	}{
		{Perturbation{}, w},
		{Perturbation{Prune: 0.5}, []float32{0, -2, 0, 3, 0, 1}},
		{Perturbation{Prune: 1}, make([]float32, 6)},
		// 2 bits have the levels -3, 0 and 3.
		{Perturbation{Bits: 2}, []float32{0, -3, 0, 3, 0, 0}},
		// Levels 1 apart; 0.5 is rounded to the even level, 0.
		{Perturbation{Bits: 3}, []float32{0, -2, 0, 3, 0, 1}},
		// Levels 3/7 apart; four are pruned.
		{Perturbation{Prune: 0.7, Bits: 4}, []float32{0, -15. / 7, 0, 3, 0, 0}},
	} {
		if got := perturbed(t, w, c.v); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, want %v", c.v, got, c.want)
		}
	}
}

// Noise has the given standard deviation, relative to that of the tensor, and depends on the seed.
func TestPerturbNoise(t *testing.T) {
	t.Parallel()
	w := make([]float32, 20000)
	for i := range w {
		w[i] = 5 + float32(math.Sin(float64(i)))
	}
	got := perturbed(t, w, Perturbation{Noise: 0.3, Seed: 1})
	var sum, squares float64
	for i := range w {
		d := float64(got[i] - w[i])
		sum, squares = sum+d, squares+d*d
	}
	n := float64(len(w))
	// The standard deviation of a sine is sqrt(1/2). That of 20,000 draws is accurate to half a
	// percent, and their mean to 0.0015.
	if sd, want := math.Sqrt(squares/n), 0.3*math.Sqrt2/2; math.Abs(sd/want-1) > 0.02 || math.Abs(sum/n) > 0.006 {
		t.Errorf("the noise has the standard deviation %g, want %g, and the mean %g, want 0", sd, want, sum/n)
	}
	if !slices.Equal(got, perturbed(t, w, Perturbation{Noise: 0.3, Seed: 1})) || slices.Equal(got, perturbed(t, w, Perturbation{Noise: 0.3, Seed: 2})) {
		t.Error("the noise changes with the same seed, or not with another one")
	}
}

// TestPerturbProperties checks that the smallest weights are pruned, and that quantised weights are
// the nearest of the levels that the number of bits allows.
func TestPerturbProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		w := rapid.SliceOfN(rapid.Float32Range(-100, 100), 2, 60).Draw(r, "w")
		w = w[:len(w)/2*2]
		fraction, bits := rapid.Float64Range(0, 1).Draw(r, "fraction"), rapid.IntRange(2, 16).Draw(r, "bits")
		pruned := perturbed(t, w, Perturbation{Prune: fraction})
		smallestKept, largestPruned := math.Inf(1), 0.0
		zeros := 0
		for i := range w {
			if size := math.Abs(float64(w[i])); pruned[i] == 0 && w[i] != 0 {
				largestPruned = max(largestPruned, size)
			} else if pruned[i] != 0 {
				smallestKept = min(smallestKept, size)
			}
			if pruned[i] == 0 {
				zeros++
			}
		}
		if largestPruned > smallestKept || zeros < int(fraction*float64(len(w))) {
			r.Fatalf("pruning %g of %v leaves %v", fraction, w, pruned)
		}
		quantised := perturbed(t, w, Perturbation{Bits: bits})
		top := 0.0
		for _, x := range w {
			top = max(top, math.Abs(float64(x)))
		}
		most := math.Pow(2, float64(bits-1)) - 1 // levels on each side of 0
		step := top / most
		for i := range w {
			level := 0.0
			if step > 0 {
				level = math.Round(float64(quantised[i]) / step)
			}
			if d := math.Abs(float64(quantised[i]) - level*step); math.Abs(level) > most || !(d <= 1e-6*top+math.SmallestNonzeroFloat32) {
				r.Fatalf("%d bits make %g of %g, which is not one of %g levels %g apart", bits, quantised[i], w[i], 2*most+1, step)
			}
			if math.Abs(float64(quantised[i]-w[i])) > step/2*(1+1e-6)+1e-5*top {
				r.Fatalf("%d bits make %g of %g, further than half a step of %g", bits, quantised[i], w[i], step)
			}
		}
	})
}

func TestPerturbErrors(t *testing.T) {
	t.Parallel()
	m := matMulModel(t, []float32{1, 2})
	for want, v := range map[string]Perturbation{"noise of": {Noise: math.NaN()}, "a fraction of 1.5": {Prune: 1.5}, "1 bits": {Bits: 1}, "17 bits": {Bits: 17}, "noise of -1": {Noise: -1}, `makes weight "w" overflow`: {Noise: 1e40}} {
		if _, err := Perturb(m, v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if _, err := Perturb(matMulModel(t, []float32{1, float32(math.Inf(1))}), Perturbation{Prune: 0.1}); err == nil || !strings.Contains(err.Error(), `weight "w" is not finite`) {
		t.Errorf("an infinite weight: %v", err)
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.Output("y", b.Relu(b.Input("x", onnx.Float, 1)))
	if plain, err := b.Model(); err != nil {
		t.Fatal(err)
	} else if _, err := Perturb(plain, Perturbation{Bits: 4}); err == nil || !strings.Contains(err.Error(), "no float weights") {
		t.Errorf("no weights: %v", err)
	}
}

// TestPerturbWeightsAlone checks that biases and initial states are not perturbed, although those
// of a recurrent layer have rank 2 and 3, and the addend C of a Gemm may have rank 2. The names are
// those of the ONNX operators: weights W, recurrent weights R, peephole weights P, biases B,
// initial states h and c of LSTM; weights A of Gemm.
func TestPerturbWeightsAlone(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	last := float32(0) // so that all values differ
	constant := func(name string, shape ...int) onnx.Value {
		c := tensor.New(shape...)
		for i := range c.Data {
			last++
			c.Data[i] = last
		}
		return b.Const(name, c)
	}
	x := b.Input("x", onnx.Float, 5, -1, 2)
	h := b.Ops("LSTM", 2, onnx.Attrs{"hidden_size": 3}, x, constant("W", 1, 12, 2), constant("R", 1, 12, 3),
		constant("B", 1, 24), "", constant("h", 1, 1, 3), constant("c", 1, 1, 3), constant("P", 1, 9))[1]
	b.Output("y", b.Gemm(b.Squeeze(h, 0), constant("A", 3, 4), constant("C", 1, 4), nil))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Perturb(m, Perturbation{Noise: 0.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, isWeight := range map[string]bool{"W": true, "R": true, "P": true, "A": true, "B": false, "h": false, "c": false, "C": false} {
		before, _ := m.Tensor(name)
		after, err := out.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		if changed := !slices.Equal(before.Data, after.Data); changed != isWeight {
			t.Errorf("%s has changed: %t, want %t", name, changed, isWeight)
		}
	}
}
