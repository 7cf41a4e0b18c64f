package invert_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// This example inverts a model that computes the mean of an image: starting from noise, it looks
// for an image x' with the same representation as x. So x' has the mean of x, but other pixels.
func Example() {
	dir, err := os.MkdirTemp("", "invert")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	m := openMean(filepath.Join(dir, "mean.onnx"))

	s, err := invert.New(invert.Match(m, m.Layers()[0]), invert.Options{Optimiser: invert.Adam})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	x := tensor.New(1, 1, 8, 8)
	for i := range x.Data {
		x.Data[i] = 0.25
	}
	start, err := invert.Start(invert.Noise, x, func(i int) *rand.Rand { return seed.Rand(1, i) })
	if err != nil {
		log.Fatal(err)
	}
	result, err := s.Run(context.Background(), invert.Problem{Images: x, Start: start})
	if err != nil {
		log.Fatal(err)
	}
	mean := func(v []float32) (sum float32) {
		for _, p := range v {
			sum += p / float32(len(v))
		}
		return sum
	}
	fmt.Printf("mean of x %.2f, of the start %.2f, of x' %.2f\n", mean(x.Data), mean(start.Data), mean(result.Images.Data))
	fmt.Println("x' differs from x:", result.Images.Data[0] != 0.25)
	// Output:
	// mean of x 0.25, of the start 0.45, of x' 0.25
	// x' differs from x: true
}

// openMean writes and opens a model whose layer "z" is the mean of an image.
func openMean(path string) *model.Model {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	b.Output("z", b.ReduceMean(b.Flatten(b.Input("x", onnx.Float, -1, 1, 8, 8), 1), true, 1))
	graph, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}
	data, err := graph.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		log.Fatal(err)
	}
	library, _, err := ort.Find("")
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Load(library)
	if err != nil {
		log.Fatal(err)
	}
	net, err := rt.OpenNetwork(path, ort.NetworkOptions{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := model.Open(context.Background(), net, model.Options{Layers: []string{"z"}})
	if err != nil {
		log.Fatal(err)
	}
	return m
}
