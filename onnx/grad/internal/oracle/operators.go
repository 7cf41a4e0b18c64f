package oracle

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// native are the operators that ONNX Runtime computes in float64 on the processor.
var native = set(`
Add Sub Mul Div Pow Sqrt Exp Log Abs Neg Reciprocal Min Max Sum Relu Sigmoid Tanh Sin Cos Sign Floor Ceil Round
Mod Greater GreaterOrEqual Less LessOrEqual Equal Where Cast Identity Dropout
Softmax LogSoftmax LpNormalization LayerNormalization BatchNormalization MaxPool Gemm MatMul Einsum
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
Reshape Flatten Transpose Squeeze Unsqueeze Concat Split Slice Expand Tile Pad DepthToSpace SpaceToDepth CumSum Trilu
Gather GatherElements GatherND ScatterElements ScatterND TopK ArgMax ArgMin`)

func set(names string) map[string]bool {
	s := map[string]bool{}
	for _, name := range strings.Fields(names) {
		s[name] = true
	}
	return s
}

// forms write operators that it computes in float32 alone by native ones. They return nothing where
// they cannot.
var forms = map[string]func(w *writer, n *pb.NodeProto) onnx.Value{
	"Conv": conv, "ConvTranspose": convTranspose, "Resize": resize,
	"AveragePool": averagePool, "GlobalAveragePool": globalAveragePool, "GlobalMaxPool": globalMaxPool, "LpPool": lpPool, "GlobalLpPool": globalLpPool,
	"InstanceNormalization": instanceNormalization, "GroupNormalization": groupNormalization, "LRN": lrn,
	"Mean": mean, "Hardmax": hardmax, "Erf": erf, "Gelu": gelu,
	"Tan": tan, "Asin": asin, "Acos": acos, "Atan": atan, "Sinh": sinh, "Cosh": cosh, "Asinh": asinh, "Acosh": acosh, "Atanh": atanh,
	"Clip": clip, "HardSigmoid": hardSigmoid, "HardSwish": hardSwish, "LeakyRelu": leakyRelu, "PRelu": pRelu, "ThresholdedRelu": thresholdedRelu,
	"Elu": elu, "Selu": selu, "Celu": celu, "Softplus": softplus, "Softsign": softsign, "Mish": mish,
}

// attr is a number among a node's attributes.
func (w *writer) attr(n *pb.NodeProto, name string, otherwise float32) onnx.Value {
	return w.num(float64(onnx.AttrFloat(n, name, otherwise)))
}

// unit is max(0, min(1, x)).
func (w *writer) unit(x onnx.Value) onnx.Value {
	return w.Relu(w.Op("Min", nil, x, w.num(1)))
}

// belowZero is min(x, 0).
func (w *writer) belowZero(x onnx.Value) onnx.Value { return w.Op("Min", nil, x, w.num(0)) }

// clip: min(max, max(min, x)), in the standard's order: where the bounds cross it is the upper one.
func clip(w *writer, n *pb.NodeProto) onnx.Value {
	x, low, high := w.x(n, 0), w.x(n, 1), w.x(n, 2)
	if w.Opset() >= 12 { // since when the engine has it in float64
		return w.Clip(x, low, high)
	}
	if low != "" {
		x = w.Op("Max", nil, x, low)
	}
	if high != "" {
		x = w.Op("Min", nil, x, high)
	}
	return x
}

// hardSigmoid: max(0, min(1, alpha x + beta))
func hardSigmoid(w *writer, n *pb.NodeProto) onnx.Value {
	line := w.Add(w.Mul(w.x(n, 0), w.attr(n, "alpha", 0.2)), w.attr(n, "beta", 0.5))
	return w.unit(line)
}

// hardSwish: x max(0, min(1, x / 6 + 1 / 2))
func hardSwish(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Mul(x, w.unit(w.Add(w.Div(x, w.num(6)), w.num(0.5))))
}

func leakyRelu(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Add(w.Relu(x), w.Mul(w.belowZero(x), w.attr(n, "alpha", 0.01)))
}

func pRelu(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Add(w.Relu(x), w.Mul(w.belowZero(x), w.x(n, 1)))
}

func thresholdedRelu(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Where(w.Op("Greater", nil, x, w.attr(n, "alpha", 1)), x, w.num(0))
}

// exponential: x above 0, and depth (e^(x/scale) - 1) below.
func (w *writer) exponential(x, depth, scale onnx.Value) onnx.Value {
	below := w.Sub(w.Exp(w.Div(w.belowZero(x), scale)), w.num(1))
	return w.Add(w.Relu(x), w.Mul(below, depth))
}

func elu(w *writer, n *pb.NodeProto) onnx.Value {
	return w.exponential(w.x(n, 0), w.attr(n, "alpha", 1), w.num(1))
}

func celu(w *writer, n *pb.NodeProto) onnx.Value {
	alpha := w.attr(n, "alpha", 1)
	return w.exponential(w.x(n, 0), alpha, alpha)
}

func selu(w *writer, n *pb.NodeProto) onnx.Value {
	alpha, gamma := w.attr(n, "alpha", 1.67326319217681884765625), w.attr(n, "gamma", 1.05070102214813232421875)
	return w.Mul(w.exponential(w.x(n, 0), alpha, w.num(1)), gamma)
}

func softplus(w *writer, n *pb.NodeProto) onnx.Value { return w.softplus(w.x(n, 0)) }

// softplus: ln(1 + e^x) = max(0, x) + ln(1 + e^-|x|)
func (w *writer) softplus(x onnx.Value) onnx.Value {
	return w.Add(w.Relu(x), w.Log(w.Add(w.Exp(w.Neg(w.Abs(x))), w.num(1))))
}

func softsign(w *writer, n *pb.NodeProto) onnx.Value { return w.softsign(w.x(n, 0)) }

func (w *writer) softsign(x onnx.Value) onnx.Value {
	return w.Div(x, w.Add(w.Abs(x), w.num(1)))
}

// mish: x tanh(softplus(x))
func mish(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Mul(x, w.Tanh(w.softplus(x)))
}

func mean(w *writer, n *pb.NodeProto) onnx.Value {
	list := make([]onnx.Value, len(n.Input))
	for i := range list {
		list[i] = w.x(n, i)
	}
	return w.Div(w.Op("Sum", nil, list...), w.num(float64(len(list))))
}

// hardmax, along the last axis: 1 at the first maximum, else 0.
func hardmax(w *writer, n *pb.NodeProto) onnx.Value {
	axis, rank := onnx.AttrInt(n, "axis", -1), len(w.static.Shape(n.Input[0]))
	if w.Opset() < 13 {
		axis = onnx.AttrInt(n, "axis", 1)
	}
	if rank == 0 || axis != -1 && axis != rank-1 {
		return ""
	}
	x := w.x(n, 0)
	size := w.Gather(w.Shape(x), w.Int(rank-1), 0)
	places := w.Op("Range", nil, w.Int(0), size, w.Int(1))
	first := w.Op("ArgMax", onnx.Attrs{"axis": rank - 1, "keepdims": 1}, x)
	return w.Cast(w.Op("Equal", nil, first, places), onnx.Double)
}
