package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// layers writes the layers of a network. The seed and a layer's name determine its random weights.
type layers struct {
	*onnx.Builder
	seed uint64
	axes int // number of spatial axes
}

// scope returns layers whose tensors are named "name/...".
func (l *layers) scope(format string, values ...any) *layers {
	return &layers{l.Scope(fmt.Sprintf(format, values...)), l.seed, l.axes}
}

// weights returns a constant whose values are drawn one by one.
func (l *layers) weights(name string, draw func() float64, shape ...int) onnx.Value {
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = float32(draw())
	}
	return l.Const(name, t)
}

func (l *layers) constant(name string, v float64, n int) onnx.Value {
	return l.weights(name, func() float64 { return v }, n)
}

// conv returns a convolution without bias, zero-padded, with k positions along each spatial axis.
// Its weights are normal with variance 2 / (in k^axes): He et al. 2015, equation 10.
func (l *layers) conv(x onnx.Value, name string, in, out, k, stride int) onnx.Value {
	shape := append([]int{out, in}, slices.Repeat([]int{k}, l.axes)...)
	r, deviation := seed.Rand(l.seed, "train: weights", name), math.Sqrt(2/float64(tensor.Size(shape[1:])))
	w := l.weights(name+".weight", func() float64 { return deviation * r.NormFloat64() }, shape...)
	return l.Conv(x, w, "", onnx.Attrs{
		"pads": slices.Repeat([]int{k / 2}, 2*l.axes), "strides": slices.Repeat([]int{stride}, l.axes), "kernel_shape": shape[2:],
	})
}

// norm returns a BatchNormalization in its initial state: scale 1, bias 0, running mean 0 and
// variance 1. Momentum and epsilon are PyTorch's defaults; ONNX's momentum is 1 minus PyTorch's.
func (l *layers) norm(x onnx.Value, name string, channels int) onnx.Value {
	return l.Op("BatchNormalization", onnx.Attrs{"epsilon": 1e-5, "momentum": 0.9}, x,
		l.constant(name+".scale", 1, channels), l.constant(name+".bias", 0, channels),
		l.constant(name+".mean", 0, channels), l.constant(name+".variance", 1, channels))
}

func (l *layers) dropout(x onnx.Value, ratio float64) onnx.Value {
	if ratio == 0 {
		return x
	}
	return l.Op("Dropout", nil, x, l.Scalar(float32(ratio)))
}

func (l *layers) pool(x onnx.Value) onnx.Value {
	return l.Flatten(l.Op("GlobalAveragePool", nil, x), 1)
}

// newLayers starts a network for samples of a shape, and returns its layers and its input. ratio is
// the dropout ratio.
func newLayers(seed uint64, shape []int, classes int, ratio float64) (*layers, onnx.Value, error) {
	switch {
	case len(shape) < 2 || len(shape) > 4 || slices.Min(shape) < 1:
		return nil, "", fmt.Errorf("samples have the shape %v: it must be channels and one to three spatial axes", shape)
	case classes < 1:
		return nil, "", fmt.Errorf("the number of outputs is %d: it must be at least 1", classes)
	case !(ratio >= 0 && ratio < 1):
		return nil, "", fmt.Errorf("dropout is %g: it must be at least 0 and below 1", ratio)
	}
	l := &layers{onnx.NewBuilder(onnx.DefaultOpset), seed, len(shape) - 1}
	return l, l.Input("x", onnx.Float, append([]int{-1}, shape...)...), nil
}

func (l *layers) finish(features onnx.Value, width, classes int) (*onnx.Model, error) {
	l.Output("y", linear(l.Builder, features, "linear", l.seed, width, classes))
	return l.Model()
}
