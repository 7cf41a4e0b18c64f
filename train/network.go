package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// MLP is a fully connected network: sizes[0] inputs, hidden layers of the sizes between with ReLU after each, and
// sizes[len-1] outputs; with two sizes it is one linear layer. Weights and biases start uniform in +-1/sqrt(inputs), as PyTorch's
// Linear does, drawn by the seed. The input is "x", batch x sizes[0], the output "y", the weights "layer1.weight", "layer1.bias", ...
func MLP(seed uint64, sizes ...int) (*onnx.Model, error) {
	if len(sizes) < 2 {
		return nil, fmt.Errorf("building a network of sizes %v: it wants an input and an output", sizes)
	}
	for _, n := range sizes {
		if n < 1 {
			return nil, fmt.Errorf("building a network of sizes %v: each is at least 1", sizes)
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

// linear is x W + c. The weight lies as inputs x outputs, the way a product reads it fastest.
func linear(b *onnx.Builder, x onnx.Value, name string, base uint64, in, out int) onnx.Value {
	bound := 1 / math.Sqrt(float64(in))
	uniform := func(what string, shape ...int) onnx.Value {
		r, t := seed.Rand(base, "train: weights", name, what), tensor.New(shape...)
		for i := range t.Data {
			t.Data[i] = float32(bound * (2*r.Float64() - 1))
		}
		return b.Const(name+"."+what, t)
	}
	return b.Gemm(x, uniform("weight", in, out), uniform("bias", out), nil)
}

// A Flat network is an MLP of samples of any shape, laid out as vectors.
type Flat struct {
	Shape   []int
	Outputs int
	Hidden  []int
	Seed    uint64
}

// Build draws the weights; input, output and names are those of MLP, but the input is batch x Shape.
func (n Flat) Build() (*onnx.Model, error) {
	bare, err := MLP(n.Seed, slices.Concat([]int{tensor.Size(n.Shape)}, n.Hidden, []int{n.Outputs})...)
	if err != nil {
		return nil, err
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, append([]int{-1}, n.Shape...)...)
	b.Output("y", b.Include(bare, map[string]onnx.Value{"x": b.Flatten(x, 1)})[0])
	return b.Model()
}
