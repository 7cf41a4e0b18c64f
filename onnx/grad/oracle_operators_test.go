//go:build cgo

package grad_test

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// native are the operators that ONNX Runtime computes in float64 on the CPU.
var native = set(`
Add Sub Mul Div Pow Sqrt Exp Log Abs Neg Reciprocal Min Max Sum Relu Sigmoid Tanh Sin Cos Sign Floor Ceil Round
Mod Greater GreaterOrEqual Less LessOrEqual Equal Where Cast Identity Dropout
Softmax LogSoftmax LpNormalization LayerNormalization BatchNormalization MaxPool Gemm MatMul Einsum
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
Reshape Flatten Transpose Squeeze Unsqueeze Concat Split Slice Expand Tile Pad DepthToSpace SpaceToDepth CumSum Trilu
Gather GatherElements GatherND ScatterElements ScatterND TopK ArgMax ArgMin`)

// set returns the set of some names, which are separated by spaces.
func set(names string) map[string]bool {
	s := map[string]bool{}
	for _, name := range strings.Fields(names) {
		s[name] = true
	}
	return s
}

// rewrites write operators that ONNX Runtime lacks in float64 as native ones: those that the
// networks of the tests use. They return "" for a node that they cannot write. w adds nodes to the
// graph; w.x is an input of the node in float64, and w.num a float64 constant.
var rewrites = map[string]func(w *writer, n *pb.NodeProto) onnx.Value{
	"Conv": conv, "AveragePool": averagePool, "GlobalAveragePool": globalAveragePool,
	"Clip": clip, "Erf": erf, "HardSigmoid": hardSigmoid, "HardSwish": hardSwish,
}

// clip: min(max, max(min, x)). Where min > max, the result is max.
func clip(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.Identity(w.x(n, 0))
	if low := w.x(n, 1); low != "" {
		x = w.Op("Max", nil, x, low)
	}
	if high := w.x(n, 2); high != "" {
		x = w.Op("Min", nil, x, high)
	}
	return x
}

// clampToUnit writes max(0, min(1, x)).
func (w *writer) clampToUnit(x onnx.Value) onnx.Value { return w.Relu(w.Op("Min", nil, x, w.num(1))) }

// hardSigmoid: max(0, min(1, alpha x + beta))
func hardSigmoid(w *writer, n *pb.NodeProto) onnx.Value {
	attr := func(name string, otherwise float32) onnx.Value {
		return w.num(float64(onnx.AttrFloat(n, name, otherwise)))
	}
	return w.clampToUnit(w.Add(w.Mul(w.x(n, 0), attr("alpha", 0.2)), attr("beta", 0.5)))
}

// hardSwish: x max(0, min(1, x / 6 + 1 / 2))
func hardSwish(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Mul(x, w.clampToUnit(w.Add(w.Div(x, w.num(6)), w.num(0.5))))
}
