package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// MLP returns a fully connected network with sizes[0] inputs and sizes[len-1] outputs.
// sizes[1:len-1] are the hidden layers, each followed by ReLU; with two sizes the network is one
// linear layer. Weights and biases are drawn from the seed, uniformly in ±1/sqrt(inputs) as in
// PyTorch's Linear. The input is "x", batch x sizes[0], and the output is "y". The weights are
// "layer1.weight", "layer1.bias" and so on.
func MLP(seed uint64, sizes ...int) (*onnx.Model, error) {
	if len(sizes) < 2 {
		return nil, fmt.Errorf("building a network of sizes %v: at least two are needed, of the input and of the output", sizes)
	}
	for _, n := range sizes {
		if n < 1 {
			return nil, fmt.Errorf("building a network of sizes %v: each must be at least 1", sizes)
		}
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	y := b.Input("x", onnx.Float, -1, sizes[0])
	for i := 1; i < len(sizes); i++ {
		if i > 1 {
			y = b.Relu(y)
		}
		y = linear(b, y, fmt.Sprintf("layer%d", i), seed, sizes[i-1], sizes[i])
	}
	b.Output("y", y)
	return b.Model()
}

// linear returns x W + c, with W and c drawn from the seed base. W is inputs x outputs, the layout
// that a matrix product reads fastest.
func linear(b *onnx.Builder, x onnx.Value, name string, base uint64, in, out int) onnx.Value {
	bound := 1 / math.Sqrt(float64(in))
	uniform := func(part string, shape ...int) onnx.Value {
		r, t := seed.Rand(base, "train: weights", name, part), tensor.New(shape...)
		for i := range t.Data {
			t.Data[i] = float32(bound * (2*r.Float64() - 1))
		}
		return b.Const(name+"."+part, t)
	}
	return b.Gemm(x, uniform("weight", in, out), uniform("bias", out), nil)
}

// A FlattenedMLP is an MLP for samples of any shape, which it flattens.
type FlattenedMLP struct {
	Shape   []int // of a sample
	Outputs int
	Hidden  []int  // sizes of the hidden layers
	Seed    uint64 // of the weights
}

// Build returns the network with random weights. Input, output and names are those of MLP, except
// that the input is batch x Shape.
func (n FlattenedMLP) Build() (*onnx.Model, error) {
	plain, err := MLP(n.Seed, slices.Concat([]int{tensor.Size(n.Shape)}, n.Hidden, []int{n.Outputs})...)
	if err != nil {
		return nil, err
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, append([]int{-1}, n.Shape...)...)
	b.Output("y", b.Include(plain, map[string]onnx.Value{"x": b.Flatten(x, 1)})[0])
	return b.Model()
}
