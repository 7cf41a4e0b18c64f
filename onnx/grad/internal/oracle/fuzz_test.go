//go:build cgo

package oracle_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx/grad/internal/oracle"
)

// rewriteRandomGraph rewrites a random graph, which may be malformed, to compute in float64. That
// must not panic.
func rewriteRandomGraph(t *rapid.T) {
	m := testgraph.Random(t, []string{
		"Conv", "AveragePool", "GlobalAveragePool", "Hardmax", "Clip", "HardSwish", "HardSigmoid", "Erf",
		"Relu", "Add", "MaxPool", "MatMul", "Cast", "Shape", "Greater", "Reshape", "Concat",
	})
	_, _ = oracle.InFloat64(m, "y")
}

func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, rewriteRandomGraph)
}

func FuzzInFloat64(f *testing.F) { f.Fuzz(rapid.MakeFuzz(rewriteRandomGraph)) }
