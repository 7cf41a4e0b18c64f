package ort_test

import (
	"context"
	"fmt"
	"log"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
)

// The example builds a graph and executes it. ONNX Runtime reads the input from the slice that Wrap
// gets, and writes the output into the memory of out, without copies.
func Example() {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 2) // -1: a batch of any size
	b.Output("y", b.Relu(b.Sub(x, b.Scalar(1))))
	graph, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}

	path, _, err := ort.Find("") // the ONNX Runtime library; "": in the usual folders
	if err != nil {
		log.Fatal(err)
	}
	rt, err := ort.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	s, err := rt.NewSession(graph, ort.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	in, err := ort.Wrap(rt, []float32{0, 1, 2, 3}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	out, err := rt.NewValue(onnx.Float, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer out.Close()
	if err := s.Run(context.Background(), []*ort.Value{in}, []*ort.Value{out}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Tensor().Data)
	// Output: [0 0 1 2]
}
