//go:build cgo

package oracle_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx/grad/internal/oracle"
)

// Any graph, right or wrong, is rewritten or refused, without a panic.
func anyGraph(t *rapid.T) {
	m := testgraph.Random(t, []string{
		"Conv", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "InstanceNormalization", "Hardmax", "Clip", "PRelu", "Mean", "HardSwish", "Elu",
		"Relu", "Add", "MaxPool", "MatMul", "Cast", "Shape", "Greater", "Reshape", "Concat",
		"ConvTranspose", "Resize", "LpPool", "GlobalLpPool", "LRN", "GroupNormalization", "Erf", "Gelu", "Atan",
	})
	_, _ = oracle.InFloat64(m, "y")
}

func TestAnyGraph(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyGraph)
}

func FuzzGraph(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyGraph)) }
