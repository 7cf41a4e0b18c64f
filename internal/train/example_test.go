package train_test

import (
	"context"
	"fmt"
	"log"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/tensor"
)

// This example trains one linear layer on 64 samples of y = 2 a - b.
func Example() {
	library, _, err := ort.Find("") // ONNX Runtime, searched in the usual folders
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Load(library)
	if err != nil {
		log.Fatal(err)
	}
	network, err := train.MLP(1, 2, 1) // seed 1, two inputs, one output
	if err != nil {
		log.Fatal(err)
	}
	t, err := train.New(rt, train.Spec{Model: network, Loss: train.SquaredError, Optimiser: train.SGD{Rate: 0.5}})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	x, y := tensor.New(64, 2), tensor.New(64, 1)
	for i := range y.Data {
		a, b := float32(i%8)/8, float32(i/8)/8
		x.Data[2*i], x.Data[2*i+1], y.Data[i] = a, b, 2*a-b
	}
	for range 300 {
		if _, err := t.Step(context.Background(), train.Batch{Inputs: []tensor.Tensor{x}, Targets: train.Targets{Target: y}}); err != nil {
			log.Fatal(err)
		}
	}
	for _, w := range t.Weights() {
		if w.Len() == 2 {
			fmt.Printf("weights %.2f\n", w.Data)
		}
	}
	// Output: weights [2.00 -1.00]
}
