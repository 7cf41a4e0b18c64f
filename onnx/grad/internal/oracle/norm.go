package oracle

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// instanceNormalization: scale (x - mean) / sqrt(variance + epsilon) + shift, over space.
func instanceNormalization(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	unit := w.standardised(n, w.x(n, 0), space(rank)...)
	return w.Add(w.Mul(unit, w.column(w.x(n, 1), rank)), w.column(w.x(n, 2), rank))
}

// standardised is (x - mean) / sqrt(variance + epsilon), over some axes.
func (w *writer) standardised(n *pb.NodeProto, x onnx.Value, axes ...int) onnx.Value {
	d := w.Sub(x, w.ReduceMean(x, true, axes...))
	variance := w.ReduceMean(w.Mul(d, d), true, axes...)
	return w.Div(d, w.Sqrt(w.Add(variance, w.attr(n, "epsilon", 1e-5))))
}

// groupNormalization is instanceNormalization over the channels of each group and space. Scale and
// shift are per channel since opset 21, and were per group before.
func groupNormalization(w *writer, n *pb.NodeProto) onnx.Value {
	rank := len(w.static.Shape(n.Input[0]))
	if rank < 3 {
		return ""
	}
	x, scale, shift := w.x(n, 0), w.x(n, 1), w.x(n, 2)
	unit := w.standardised(n, w.Reshape(x, 0, onnx.AttrInt(n, "num_groups", 1), -1), 2)
	if w.Opset() < 21 {
		unit = w.Add(w.Mul(unit, w.column(scale, 3)), w.column(shift, 3))
	}
	y := w.ReshapeTo(unit, w.Shape(x))
	if w.Opset() < 21 {
		return y
	}
	return w.Add(w.Mul(y, w.column(scale, rank)), w.column(shift, rank))
}

// lrn: x / (bias + alpha / size times the sum of squares of the channels around)^beta
func lrn(w *writer, n *pb.NodeProto) onnx.Value {
	rank, size := len(w.static.Shape(n.Input[0])), onnx.AttrInt(n, "size", 1)
	if rank < 2 || size < 1 || size > mostTaps {
		return ""
	}
	x := w.x(n, 0)
	before, after := make([]int, rank), make([]int, rank)
	before[1], after[1] = (size-1)/2, size/2
	squares := w.Op("Pad", nil, w.Mul(x, x), w.Ints(slices.Concat(before, after)...), w.num(0))
	around := make([]onnx.Value, size)
	for i := range around {
		end := i - size + 1 // from the end
		if end == 0 {
			end = 1 << 40
		}
		around[i] = w.Slice(squares, 1, i, end, 1)
	}
	mean := w.Mul(w.sum(around), w.num(float64(onnx.AttrFloat(n, "alpha", 1e-4))/float64(size)))
	return w.Mul(x, w.Pow(w.Add(mean, w.attr(n, "bias", 1)), w.num(-float64(onnx.AttrFloat(n, "beta", 0.75)))))
}
