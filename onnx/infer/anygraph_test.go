package infer_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/testgraph"
	"github.com/noether-ml/noether/onnx/infer"
)

// operators are those that the inference of layouts treats each in its own way, and some that it
// does not know.
var operators = []string{
	"Shape", "Size", "ConstantOfShape", "Range", "Add", "Div", "Mod", "Equal", "Where", "Expand", "Tile", "Transpose",
	"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Split", "Slice", "Gather", "GatherElements", "Pad", "Resize",
	"Upsample", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "MatMul", "Gemm", "Einsum",
	"ReduceMean", "ReduceProd", "ArgMax", "TopK", "OneHot", "DepthToSpace", "SpaceToDepth", "LSTM", "Relu", "Cast",
	"Identity", "QLinearConv", "QLinearMatMul", "Softmax", "Floor", "NonZero", "If", "Dropout", "Unheard",
}

// anyGraph: the layouts of any graph's tensors must be worked out, or given up, without a panic and
// in bounded memory.
func anyGraph(t *rapid.T) {
	axes, err := infer.Axes(testgraph.Random(t, operators), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range axes {
		if len(a) > 64 {
			t.Fatalf("%s has %d axes", name, len(a))
		}
	}
}

func TestAnyGraph(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyGraph)
}

func FuzzLayouts(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyGraph)) }
