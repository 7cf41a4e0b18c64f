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
	"github.com/noether-ml/noether/onnx/pb"
)

// A Perturbation worsens the weights of a model by a known amount, for studies that need many
// models over a wide range of accuracy. What varies are the weights of convolutions, matrix
// products and recurrent layers, each tensor by itself; biases and normalisation stay. Noise comes
// first, then pruning, then rounding.
type Perturbation struct {
	// Noise is the deviation of normal noise that is added, relative to that of the tensor: w +
	// Noise sd(w) N(0, 1).
	Noise float64
	// Prune is the share of each tensor's elements, those of the smallest magnitude, that become 0.
	Prune float64
	// Bits is how many bits an element has left, 2 to 16: it is rounded to a multiple of max |w| /
	// (2^(Bits-1) - 1). 0: all.
	Bits int
	// Seed is that of the noise.
	Seed uint64
}

// Check reports what is wrong with a variation.
func (v Perturbation) Check() error {
	switch {
	case !(v.Noise >= 0) || math.IsInf(v.Noise, 0):
		return fmt.Errorf("noise of %g deviations: it is 0 or more", v.Noise)
	case !(v.Prune >= 0 && v.Prune <= 1):
		return fmt.Errorf("pruning a share of %g: it is 0 to 1", v.Prune)
	case v.Bits != 0 && (v.Bits < 2 || v.Bits > 16):
		return fmt.Errorf("%d bits: there are 2 to 16, or 0 for all", v.Bits)
	}
	return nil
}

// Perturb returns the model with varied weights.
func Perturb(m *onnx.Model, v Perturbation) (*onnx.Model, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	names := products(m)
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

// products are the float initializers of rank 2 or more that convolutions, matrix products and
// recurrent layers read.
func products(m *onnx.Model) map[string]bool {
	read := map[string]bool{}
	for _, n := range m.Nodes() {
		switch n.GetOpType() {
		case "Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN":
			for _, name := range n.Input {
				read[name] = true
			}
		}
	}
	names := map[string]bool{}
	for _, t := range m.Proto().Graph.Initializer {
		if read[t.GetName()] && onnx.Type(t.GetDataType()) == onnx.Float && len(t.Dims) >= 2 && !isEmpty(t) {
			names[t.GetName()] = true
		}
	}
	return names
}

func isEmpty(t *pb.TensorProto) bool { return slices.Contains(t.Dims, 0) }

func (v Perturbation) apply(name string, w []float32) error {
	if slices.ContainsFunc(w, infinite) {
		return fmt.Errorf("weight %q is not finite", name)
	}
	if v.Noise > 0 {
		addNoise(w, v.Noise, seed.Rand(v.Seed, "vary", name).NormFloat64)
		if slices.ContainsFunc(w, infinite) {
			return fmt.Errorf("noise of %g deviations takes weight %q beyond what float32 can hold", v.Noise, name)
		}
	}
	if v.Prune > 0 {
		zeroSmallest(w, v.Prune)
	}
	if v.Bits > 0 {
		coarsen(w, v.Bits)
	}
	return nil
}

// infinite reports NaN too.
func infinite(x float32) bool { return x-x != 0 }

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

// zeroSmallest sets the share of w with the smallest magnitudes to 0; of equal ones the first.
func zeroSmallest(w []float32, share float64) {
	order := make([]int, len(w))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(math.Abs(float64(w[a])), math.Abs(float64(w[b])))
	})
	for _, i := range order[:int(share*float64(len(w)))] {
		w[i] = 0
	}
}

// coarsen keeps so many bits: multiples of a step that reaches the largest magnitude with the
// sign's bit spared.
func coarsen(w []float32, bits int) {
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
