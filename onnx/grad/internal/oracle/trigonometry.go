package oracle

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

func tan(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Div(w.Op("Sin", nil, x), w.Op("Cos", nil, x))
}

// asin is the angle whose sine is x and whose cosine is sqrt(1 - x^2), acos the other way round.
func asin(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.angle(n, x, w.coside(x))
}

func acos(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.angle(n, w.coside(x), x)
}

// coside is sqrt(1 - x^2).
func (w *writer) coside(x onnx.Value) onnx.Value {
	one := w.num(1)
	return w.Sqrt(w.Mul(w.Sub(one, x), w.Add(one, x)))
}

// atan is the angle whose sine is x / sqrt(1 + x^2), and whose cosine is 1 / sqrt(1 + x^2); beyond
// 1e100 it does not change.
func atan(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.Op("Max", nil, w.Op("Min", nil, w.x(n, 0), w.num(1e100)), w.num(-1e100))
	r := w.Sqrt(w.Add(w.Mul(x, x), w.num(1)))
	return w.angle(n, w.Div(x, r), w.Op("Reciprocal", nil, r))
}

// angle has a sine and a cosine that are known; the node tells it in float32. The sine of what that
// is off by is a difference of products, and since it is below 1e-3, even beside 1 where an arc
// sine is steep, two more terms of the arc sine's series are enough.
func (w *writer) angle(n *pb.NodeProto, sin, cos onnx.Value) onnx.Value {
	near := w.Cast(w.Op(n.GetOpType(), nil, w.Cast(w.x(n, 0), onnx.Float)), onnx.Double)
	s := w.Sub(w.Mul(sin, w.Op("Cos", nil, near)), w.Mul(cos, w.Op("Sin", nil, near)))
	square := w.Mul(s, s)
	return w.Add(near, w.Mul(s, w.polynomial(square, []float64{3. / 40, 1. / 6, 1})))
}

// sinh: tanh x cosh x, since a difference of exponentials is nothing near 0.
func sinh(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	return w.Mul(w.Tanh(x), w.cosh(x))
}

func cosh(w *writer, n *pb.NodeProto) onnx.Value { return w.cosh(w.x(n, 0)) }

func (w *writer) cosh(x onnx.Value) onnx.Value {
	return w.Mul(w.Add(w.Exp(x), w.Exp(w.Neg(x))), w.num(0.5))
}

// asinh: sign x ln(1 + |x| + x^2 / (1 + sqrt(1 + x^2)))
func asinh(w *writer, n *pb.NodeProto) onnx.Value {
	x, one := w.x(n, 0), w.num(1)
	square := w.Mul(x, x)
	root := w.Sqrt(w.Add(square, one))
	return w.Mul(w.Sign(x), w.logBeyond(w.Add(w.Abs(x), w.Div(square, w.Add(root, one)))))
}

// acosh: ln(1 + t + sqrt(t (2 + t))) of t = x - 1
func acosh(w *writer, n *pb.NodeProto) onnx.Value {
	t := w.Sub(w.x(n, 0), w.num(1))
	return w.logBeyond(w.Add(t, w.Sqrt(w.Mul(t, w.Add(t, w.num(2))))))
}

// atanh: sign x ln(1 + 2 |x| / (1 - |x|)) / 2
func atanh(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	size := w.Abs(x)
	ratio := w.Div(w.Add(size, size), w.Sub(w.num(1), size))
	return w.Mul(w.Mul(w.Sign(x), w.num(0.5)), w.logBeyond(ratio))
}

// logBeyond is ln(1 + u) for u of 0 or more: of the sum as it is rounded, corrected by what
// rounding has taken from u.
func (w *writer) logBeyond(u onnx.Value) onnx.Value {
	one := w.num(1)
	sum := w.Add(u, one)
	lost := w.Div(w.Sub(u, w.Sub(sum, one)), sum)
	return w.Add(w.Log(sum), w.Where(w.Op("Less", nil, u, w.num(1e20)), lost, w.num(0))) // infinity has lost nothing
}
