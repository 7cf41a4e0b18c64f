package infer_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx/infer"
)

// operators are operator types with a rule for the axes of their outputs, and some without.
var operators = []string{
	"Shape", "Size", "ConstantOfShape", "Range", "Add", "Div", "Mod", "Equal", "Where", "Expand", "Tile", "Transpose",
	"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice", "Gather", "GatherElements", "Pad", "Col2Im", "Resize",
	"Upsample", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "MatMul", "Gemm", "Einsum",
	"ReduceMean", "ReduceProd", "ArgMax", "TopK", "OneHot", "DepthToSpace", "SpaceToDepth", "LSTM", "Relu", "Cast",
	"Identity", "QLinearConv", "QLinearMatMul", "Softmax", "Floor", "NonZero", "If", "Dropout", "UnknownOperator",
}

// inferRandomGraph infers the axes of a graph that may be malformed. It must not panic, and no
// tensor may get a huge number of axes.
func inferRandomGraph(t *rapid.T) {
	axes, err := infer.Axes(testgraph.Random(t, operators), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range axes {
		if len(a) > 64 { // far more axes than tensors of real models have
			t.Fatalf("%s has %d axes", name, len(a))
		}
	}
}

func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, inferRandomGraph)
}

func FuzzAxes(f *testing.F) { f.Fuzz(rapid.MakeFuzz(inferRandomGraph)) }
