// The networks command trains the three networks that the command noether demo measures, or those
// that are named, and writes them as ONNX models:
//
//	make demo-networks
//
// Each network has a training file, which states its data, architecture and hyperparameters.
// plain.yaml and augmented.yaml train the same convolutional network, on upright shapes and on
// rotated ones. symmetric.yaml trains the network that the function symmetric returns, on upright
// shapes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/tempfolder"
	"github.com/noether-ml/noether/internal/train/recipe"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

func main() {
	log.SetFlags(0)
	out := flag.String("o", "internal/demo", "the folder of the models")
	files := flag.String("training-files", "internal/demo/networks", "the folder of the training files")
	library := flag.String("onnxruntime", "", "the ONNX Runtime library")
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		names = []string{"plain", "augmented", "symmetric"}
	}
	if err := run(context.Background(), names, *files, *out, *library); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, names []string, files, out, library string) error {
	path, _, err := ort.Find(library)
	if err != nil {
		return err
	}
	rt, err := ort.Load(path)
	if err != nil {
		return err
	}
	temporary, remove, err := tempfolder.New("demo")
	if err != nil {
		return err
	}
	defer remove()
	start := filepath.Join(temporary, "start.onnx") // symmetric.yaml trains it, as ${START}
	m, err := symmetric([]int{8, 8, 12, 16}, 3, 8)  // three convolutions a stage, eight classes
	if err != nil {
		return err
	}
	data, err := m.Bytes()
	if err == nil {
		err = os.WriteFile(start, data, 0o644)
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		f, err := recipe.Load(filepath.Join(files, name+".yaml"), map[string]string{"START": start})
		if err != nil {
			return err
		}
		s, err := recipe.Run(ctx, f, filepath.Join(temporary, name), recipe.Options{Runtime: rt})
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d parameters, accuracy on %d test images %.3f\n", name, s.Parameters, s.Test.Samples, *s.Test.Accuracy)
		data, err := os.ReadFile(filepath.Join(temporary, name, s.Model))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".onnx"), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// symmetric returns a convolutional network with random weights whose feature maps are exactly
// equivariant, and whose logits are exactly invariant, under rotations by quarter turns. widths are
// the channels of its stages, and depth is the number of convolutions of a stage. Each
// convolution is computed with its kernels in four rotations, of which the network takes the
// maximum at each position. Rotating the input permutes the four and rotates the map, so the
// maximum rotates with the input. The stages are separated by average pooling, which commutes with
// quarter turns; convolutions of stride 2 do not. The mean over the last map does not depend on the
// rotation.
func symmetric(widths []int, depth, classes int) (*onnx.Model, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	// (x - 0.1) / 0.25, the preprocessing in plain.yaml
	x := b.Add(b.Mul(b.Input("input", onnx.Float, -1, 3, 32, 32), b.Scalar(4)), b.Scalar(-0.4))
	in := 3
	for i, out := range widths {
		if i > 0 {
			x = b.Op("AveragePool", onnx.Attrs{"kernel_shape": []int{2, 2}, "strides": []int{2, 2}}, x)
		}
		for j := range depth {
			layer := b.Scope(fmt.Sprintf("stage%d/conv%d", i+1, j+1))
			x = symmetricConv(layer, fmt.Sprintf("stage%d.conv%d", i+1, j+1), x, in, out)
			in = out
		}
	}
	pooled := b.Flatten(b.Op("GlobalAveragePool", nil, x), 1)
	weight := random("linear.weight", 1/math.Sqrt(float64(in)), in, classes)
	b.Output("logits", b.Gemm(pooled, b.Const("linear.weight", weight), b.Const("linear.bias", tensor.New(classes)), nil))
	return b.Model()
}

// symmetricConv returns relu(batchnorm(max over r = 0..3 of conv(x, kernel rotated by r quarter
// turns))).
func symmetricConv(b *onnx.Builder, name string, x onnx.Value, in, out int) onnx.Value {
	kernel := b.Const(name+".weight", random(name, math.Sqrt(2/float64(9*in)), out, in, 3, 3))
	kernels := []onnx.Value{kernel}
	for range 3 { // a quarter turn: transpose, then reverse the rows
		kernel = b.Slice(b.Transpose(kernel, 0, 1, 3, 2), 2, -1, math.MinInt32, -1)
		kernels = append(kernels, kernel)
	}
	maps := b.Conv(x, b.Concat(0, kernels...), "", onnx.Attrs{"pads": []int{1, 1, 1, 1}, "kernel_shape": []int{3, 3}})
	x = b.Op("Max", nil, b.Ops("Split", 4, onnx.Attrs{"axis": 1, "num_outputs": 4}, maps)...)
	constant := func(suffix string, v float32) onnx.Value {
		t := tensor.New(out)
		for i := range t.Data {
			t.Data[i] = v
		}
		return b.Const(name+suffix, t)
	}
	return b.Relu(b.Op("BatchNormalization", nil, x,
		constant(".scale", 1), constant(".bias", 0), constant(".mean", 0), constant(".variance", 1)))
}

// random returns normally distributed weights with the given standard deviation and mean 0, from a
// generator that is seeded by name.
func random(name string, deviation float64, shape ...int) tensor.Tensor {
	r, t := seed.Rand(1, "demo", name), tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = float32(deviation * r.NormFloat64())
	}
	return t
}
