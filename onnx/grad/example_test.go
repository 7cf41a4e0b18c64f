//go:build cgo

package grad_test

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// A model of y = tanh(x w), and one that also computes gradients with respect to its input and its
// weights: those of the sum over all elements of r y. The size -1 is free. It is printed as batch
// for the first axis of an input, and as ? where it has no name.
func ExampleAdd() {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 2)
	w := b.Const("w", tensor.Tensor{Shape: []int{2, 3}, Data: []float32{1, 0, 2, 0, 1, 1}})
	b.Output("y", b.Tanh(b.MatMul(x, w)))
	m, err := b.Model()
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := grad.Add(m, grad.Options{Of: "y", Cotangent: "r", By: []string{"x", "w"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range g.Inputs() {
		fmt.Println("input", p)
	}
	for _, p := range g.Outputs()[1:] {
		fmt.Println("output", p)
	}
	// Output:
	// input x float[batch 2]
	// input r float[? 3]
	// output grad/x float[batch 2]
	// output grad/w float[2 3]
}

// One step of gradient descent as a graph: a loss is built on top of a model, its gradient is
// added, and then the update. After each run, the output next becomes the input x.
func ExampleOf() {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 2)
	target := b.Const("target", tensor.Tensor{Shape: []int{2}, Data: []float32{3, -1}})
	difference := b.Sub(x, target)
	loss := b.ReduceSum(b.Mul(difference, difference), false)
	dx, err := grad.Of(b, loss, "", x)
	if err != nil {
		fmt.Println(err)
		return
	}
	b.Output("next", b.Sub(x, b.Mul(b.Scalar(0.25), dx[0])))
	m, err := b.Model()
	if err != nil {
		fmt.Println(err)
		return
	}

	library, _, err := ort.Find("") // the path of ONNX Runtime
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := ort.Load(library)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	now, _ := rt.NewValue(onnx.Float, 2)
	next, _ := rt.NewValue(onnx.Float, 2)
	for range 3 {
		if err := s.Run(context.Background(), []*ort.Value{now}, []*ort.Value{next}); err != nil {
			fmt.Println(err)
			return
		}
		now, next = next, now
		fmt.Println(now.Tensor().Data)
	}
	// Output:
	// [1.5 -0.5]
	// [2.25 -0.75]
	// [2.625 -0.875]
}
