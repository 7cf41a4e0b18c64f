package stir_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/stir"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// This example compares a model whose output is the mean colour of an image with one whose output
// is its brightness. Images of the same colour have the same brightness, but not the reverse.
// STIR(b | a) is the similarity, from 0 to 1, of b's outputs for images and for other images that a
// maps to the same outputs.
func Example() {
	dir, err := os.MkdirTemp("", "stir")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	colour := openLinear(dir, "colour", []float32{1, 0, 0, 0, 1, 0, 0, 0, 1})
	brightness := openLinear(dir, "brightness", []float32{0.3, 0, 0, 0.6, 0, 0, 0.1, 0, 0})

	x, r := tensor.New(100, 3, 4, 4), seed.Rand(1)
	// Each channel of an image has one random value: all pixels have the same colour.
	for i := range x.Data {
		if i%16 == 0 {
			x.Data[i] = r.Float32()
		} else {
			x.Data[i] = x.Data[i/16*16]
		}
	}
	const seedOfNoise = 1 // the noise from which the search for the other images starts
	settings := stir.Defaults()
	settings.Optimiser = "adam"
	for _, pair := range [][2]procedure.Subject{{colour, brightness}, {brightness, colour}} {
		scores, err := stir.Compare(context.Background(), pair[0], pair[1], x, settings, seedOfNoise)
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
	// STIR(brightness | colour) = 1.0
	// STIR(colour | brightness) = 0.6
}

// openLinear writes and opens a model whose output is the matrix product of the mean colour, 1 x 3,
// and mix, 3 x 3, given row by row.
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
	library, _, err := ort.Find("") // the file of ONNX Runtime
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
	return procedure.Subject{Name: name, Model: m, Layers: m.Layers()}
}
