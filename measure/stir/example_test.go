package stir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/measure/stir"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// This example compares a model whose output is the mean colour of an image with one whose output
// is its brightness. Images of the same colour have the same brightness, but not the reverse.
func Example() {
	dir, err := os.MkdirTemp("", "stir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	colour := openLinear(dir, "colour", []float32{1, 0, 0, 0, 1, 0, 0, 0, 1})
	bright := openLinear(dir, "bright", []float32{0.3, 0, 0, 0.6, 0, 0, 0.1, 0, 0})

	x, r := tensor.New(100, 3, 4, 4), seed.Rand(1)
	// Each channel of an image has one random value: all pixels have the same colour.
	for i := range x.Data {
		if i%16 == 0 {
			x.Data[i] = r.Float32()
		} else {
			x.Data[i] = x.Data[i/16*16]
		}
	}
	const seedOfStarts = 1
	settings := stir.Defaults()
	settings.Optimiser = "adam"
	for _, pair := range [][2]procedure.Subject{{colour, bright}, {bright, colour}} {
		scores, err := stir.Compare(context.Background(), pair[0], pair[1], x, settings, seedOfStarts)
		if err != nil {
			log.Fatal(err)
		}
		for _, s := range scores {
			if s.Statistic == "stir" {
				fmt.Printf("STIR(%s | %s) = %.1f\n", pair[1].Name, pair[0].Name, s.Value)
			}
		}
	}
	// Output:
	// STIR(bright | colour) = 1.0
	// STIR(colour | bright) = 0.6
}

// openLinear writes and opens a model with the output mean(x) mix, where mean(x) is the 1 x 3 mean
// colour and mix is 3 x 3, row by row.
func openLinear(dir, name string, mix []float32) procedure.Subject {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	mean := b.ReduceMean(b.Input("x", onnx.Float, -1, 3, 4, 4), false, 2, 3)
	b.Output("z", b.MatMul(mean, b.Const("mix", tensor.Tensor{Shape: []int{3, 3}, Data: mix})))
	graph, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}
	data, err := graph.Bytes()
	if err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(dir, name+".onnx")
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
	m, err := model.Open(rt, path, model.Options{Layers: []string{"z"}})
	if err != nil {
		log.Fatal(err)
	}
	return procedure.Subject{Name: name, Model: m, Layers: m.Layers()}
}
