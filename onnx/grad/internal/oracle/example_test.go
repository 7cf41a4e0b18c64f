//go:build cgo

package oracle_test

import (
	"fmt"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/grad/internal/oracle"
	"github.com/noether-ml/noether/onnx/infer"
)

// The example differentiates ReLU(x - 1). ReLU and the mask of its gradient (Greater) are computed
// in float64, the product of the mask and the cotangent (Mul) in float32.
func ExampleInFloat64() {
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Sub(b.Input("x", onnx.Float, -1, 3), b.Scalar(1))))
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	g, err := grad.Add(m, grad.Options{Of: "y", Cotangent: "dy", By: []string{"x"}})
	if err != nil {
		panic(err)
	}
	if g, err = oracle.InFloat64(g, "y"); err != nil {
		panic(err)
	}
	s := infer.Analyze(g)
	for _, n := range g.Nodes() {
		if n.GetOpType() != "Cast" {
			fmt.Println(n.GetOpType(), s.Type(n.Input[0]))
		}
	}
	// Output:
	// Sub double
	// Relu double
	// Greater double
	// Mul float
}
