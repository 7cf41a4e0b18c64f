package grad

import "github.com/noether-ml/noether/onnx"

// softmaxAxes are axis since opset 13; before, all from axis on.
func (op *operation) softmaxAxes() []int {
	rank := op.rank(op.x(0))
	if op.Opset() >= 13 {
		return []int{op.axisOf(-1, rank)}
	}
	return upTo(rank)[op.axisOf(1, rank):]
}

// y = exp(x) / sum(exp(x)): dx = y (dy - sum(dy y))
func softmax(op *operation) onnx.Value {
	axes := op.softmaxAxes()
	weighted := op.Mul(op.dy(0), op.y(0))
	return op.Sub(weighted, op.Mul(op.y(0), op.sumOver(weighted, axes)))
}

// y = x - ln(sum(exp(x))): dx = dy - exp(y) sum(dy)
func logSoftmax(op *operation) onnx.Value {
	return op.Sub(op.dy(0), op.Mul(op.Exp(op.y(0)), op.sumOver(op.dy(0), op.softmaxAxes())))
}

// sumOver sums over axes and keeps them with size 1. Without axes it returns x.
func (op *operation) sumOver(x onnx.Value, axes []int) onnx.Value {
	if len(axes) == 0 {
		return x
	}
	return op.ReduceSum(x, true, axes...)
}
