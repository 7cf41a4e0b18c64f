//go:build cgo

package grad_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
)

// rewriteRandomGraph rewrites a random graph, which may be malformed, to compute in float64. That
// must not panic.
func rewriteRandomGraph(t *rapid.T) {
	m := testgraph.Random(t, []string{
		"Conv", "AveragePool", "GlobalAveragePool", "Hardmax", "Clip", "HardSwish", "HardSigmoid", "Erf",
		"Relu", "Add", "MaxPool", "MatMul", "Cast", "Shape", "Greater", "Reshape", "Concat",
	})
	_, _ = inFloat64(m, "y")
}

func TestInFloat64OfRandomGraphs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, rewriteRandomGraph)
}

func FuzzInFloat64(f *testing.F) { f.Fuzz(rapid.MakeFuzz(rewriteRandomGraph)) }

// TestInFloat64OfGradients differentiates ReLU(x - 1). ReLU and the mask of its gradient (Greater)
// are computed in float64, the product of the mask and the cotangent (Mul) in float32.
func TestInFloat64OfGradients(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	b.Output("y", b.Relu(b.Sub(b.Input("x", onnx.Float, -1, 3), b.Scalar(1))))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g, err := grad.Add(m, grad.Options{Of: "y", Cotangent: "dy", By: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if g, err = inFloat64(g, "y"); err != nil {
		t.Fatal(err)
	}
	s := infer.Analyze(g)
	var got []string
	for _, n := range g.Nodes() {
		if n.GetOpType() != "Cast" {
			got = append(got, n.GetOpType()+" "+s.Type(n.Input[0]).String())
		}
	}
	if want := []string{"Sub double", "Relu double", "Greater double", "Mul float"}; !slices.Equal(got, want) {
		t.Errorf("operators compute in %q, want %q", got, want)
	}
}
