package rewrite

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
)

// A Perturbation degrades a model's weights by a known amount. It changes float32 weights of
// convolutions, matrix products and recurrent layers, tensor by tensor. Noise is added first, then
// weights are pruned, then rounded.
type Perturbation struct {
	// Noise is relative: w becomes w + Noise sd(w) N(0, 1).
	Noise float64
	// Prune is the fraction of each tensor, its smallest magnitudes, that becomes 0.
	Prune float64
	// Bits is the number of bits, 2 to 16, to which elements are rounded: multiples of max |w| /
	// (2^(Bits-1) - 1). 0: none.
	Bits int
	// Seed is the seed of the noise.
	Seed uint64
}

// Check returns an error if a field is out of range.
func (v Perturbation) Check() error {
	switch {
	case !(v.Noise >= 0) || math.IsInf(v.Noise, 0):
		return fmt.Errorf("noise of %g standard deviations: it must be a number from 0 on", v.Noise)
	case !(v.Prune >= 0 && v.Prune <= 1):
		return fmt.Errorf("pruning a fraction of %g: it must be 0 to 1", v.Prune)
	case v.Bits != 0 && (v.Bits < 2 || v.Bits > 16):
		return fmt.Errorf("%d bits: it must be 2 to 16, or 0 for no rounding", v.Bits)
	}
	return nil
}

// Perturb returns the model with perturbed weights. It is an error if v is out of range, or if
// there are no such weights or some that are not finite, also after the noise.
func Perturb(m *onnx.Model, v Perturbation) (*onnx.Model, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	names := weightMatrices(m)
	if len(names) == 0 {
		return nil, errors.New("the model has no float weights of convolutions or matrix products")
	}
	g := pbutil.Shallow(m.Proto().Graph)
	g.Initializer = slices.Clone(g.Initializer)
	for i, t := range g.Initializer {
		if !names[t.GetName()] {
			continue
		}
		w, err := m.Tensor(t.GetName())
		if err != nil {
			return nil, err
		}
		w.Data = slices.Clone(w.Data)
		if err := v.apply(t.GetName(), w.Data); err != nil {
			return nil, err
		}
		g.Initializer[i] = onnx.TensorProto(t.GetName(), w)
	}
	return m.WithGraph(g), nil
}

// weightInputs has the indices of the inputs that are weights, by operator. A product may have them
// on either side, recurrent layers for input, state and peepholes.
var weightInputs = map[string][]int{
	"Conv": {1}, "ConvTranspose": {1}, "MatMul": {0, 1}, "Gemm": {0, 1}, "LSTM": {1, 2, 7}, "GRU": {1, 2}, "RNN": {1, 2},
}

// weightMatrices returns the float32 initializers of rank 2 or more that are such weights.
func weightMatrices(m *onnx.Model) map[string]bool {
	read := map[string]bool{}
	for _, n := range m.Nodes() {
		for _, i := range weightInputs[n.GetOpType()] {
			if i < len(n.Input) {
				read[n.Input[i]] = true
			}
		}
	}
	names := map[string]bool{}
	for _, t := range m.Proto().Graph.Initializer {
		if read[t.GetName()] && onnx.Type(t.GetDataType()) == onnx.Float && len(t.Dims) >= 2 && !slices.Contains(t.Dims, 0) {
			names[t.GetName()] = true
		}
	}
	return names
}

// The noise depends on the seed and the tensor's name.
func (v Perturbation) apply(name string, w []float32) error {
	if slices.ContainsFunc(w, notFinite) {
		return fmt.Errorf("weight %q is not finite", name)
	}
	if v.Noise > 0 {
		addNoise(w, v.Noise, seed.Rand(v.Seed, "vary", name).NormFloat64)
		if slices.ContainsFunc(w, notFinite) {
			return fmt.Errorf("noise of %g standard deviations makes weight %q overflow float32", v.Noise, name)
		}
	}
	if v.Prune > 0 {
		zeroSmallest(w, v.Prune)
	}
	if v.Bits > 0 {
		quantize(w, v.Bits)
	}
	return nil
}

func notFinite(x float32) bool { return x-x != 0 }

// addNoise adds normal noise, with a standard deviation relative to that of w.
func addNoise(w []float32, relative float64, normal func() float64) {
	var sum, squares float64
	for _, x := range w {
		sum, squares = sum+float64(x), squares+float64(x)*float64(x)
	}
	n := float64(len(w))
	deviation := math.Sqrt(max(0, squares/n-sum/n*sum/n))
	for i := range w {
		w[i] += float32(relative * deviation * normal())
	}
}

// zeroSmallest sets a fraction of w, the elements of the smallest magnitude, to 0.
func zeroSmallest(w []float32, fraction float64) {
	order := make([]int, len(w))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(float64(w[a])), math.Abs(float64(w[b])))
	})
	for _, i := range order[:int(fraction*float64(len(w)))] {
		w[i] = 0
	}
}

// quantize rounds w to multiples of a step, of signed bits; the largest stands for the largest |w|.
func quantize(w []float32, bits int) {
	largest := 0.0
	for _, x := range w {
		largest = max(largest, math.Abs(float64(x)))
	}
	step := largest / (math.Pow(2, float64(bits-1)) - 1)
	if step == 0 {
		return
	}
	for i, x := range w {
		w[i] = float32(math.RoundToEven(float64(x)/step) * step)
	}
}
