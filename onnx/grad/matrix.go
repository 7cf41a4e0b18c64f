package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// Y = alpha A' B' + beta C, where A' is A, or its transpose if transA is set, and likewise B':
// dA' = alpha dY B'^T, dB' = alpha A'^T dY, dC = beta dY.
func gemm(op *operation) {
	alpha, beta := op.attrFloat("alpha", 1), op.attrFloat("beta", 1)
	transA, transB := op.attr("transA", 0) != 0, op.attr("transB", 0) != 0
	dy := op.dy(0)
	product := func(x, y onnx.Value, transX, transY bool) onnx.Value {
		var c onnx.Value
		if op.Opset() < 11 { // C was not optional
			c = op.num(0)
		}
		return op.Gemm(x, y, c, onnx.Attrs{"alpha": alpha, "transA": transX, "transB": transY})
	}
	op.accumulate(0, func() onnx.Value {
		if transA {
			return product(op.x(1), dy, transB, true)
		}
		return product(dy, op.x(1), false, !transB)
	})
	op.accumulate(1, func() onnx.Value {
		if transB {
			return product(dy, op.x(0), true, transA)
		}
		return product(op.x(0), dy, !transA, false)
	})
	op.accumulate(2, func() onnx.Value {
		if beta != 1 {
			dy = op.times(dy, beta)
		}
		return op.sumTo(dy, op.shape(op.y(0)), op.x(2))
	})
}

// Y = A B over the last two axes: dA = dY B^T, dB = A^T dY. If A is a vector it counts as a matrix
// of one row, and if B is one, as a matrix of one column; Y lacks the axis of size 1 that this
// adds.
func matMul(op *operation) {
	rankA, rankB := op.rank(op.x(0)), op.rank(op.x(1))
	a, b, dy := op.x(0), op.x(1), op.dy(0)
	shapeA, shapeB := op.shape(a), op.shape(b)
	if rankB == 1 {
		dy, b, shapeB = op.Unsqueeze(dy, max(rankA-1, 0)), op.Unsqueeze(b, 1), []int{shapeB[0], 1}
	}
	if rankA == 1 {
		dy, a, shapeA = op.Unsqueeze(dy, max(len(shapeB)-2, 0)), op.Unsqueeze(a, 0), []int{1, shapeA[0]}
	}
	rows, columns := shapeA[len(shapeA)-2], shapeB[len(shapeB)-1]
	batch := broadcastShape(shapeA[:len(shapeA)-2], shapeB[:len(shapeB)-2])
	shapeY := append(slices.Clone(batch), rows, columns)
	op.accumulate(0, func() onnx.Value {
		return op.unbroadcastMatrix(op.MatMul(dy, op.matrixTransposed(b, len(shapeB))), batch, shapeA, 0)
	})
	op.accumulate(1, func() onnx.Value {
		// One product instead of a sum over the batch.
		if len(shapeB) == 2 && len(shapeA) > 2 && rankB == 2 {
			return op.MatMul(op.matrixTransposed(op.asRows(a, shapeA), 2), op.asRows(dy, shapeY))
		}
		return op.unbroadcastMatrix(op.MatMul(op.matrixTransposed(a, len(shapeA)), dy), batch, shapeB, 1)
	})
}

// unbroadcastMatrix sums g, batch x rows x columns, to input i, of that shape with a vector's axis
// added.
func (op *operation) unbroadcastMatrix(g onnx.Value, batch, shape []int, i int) onnx.Value {
	if len(shape) == len(op.shape(op.x(i))) {
		return op.sumTo(g, append(slices.Clone(batch), shape[len(shape)-2:]...), op.x(i))
	}
	if len(batch) > 0 { // a vector was repeated for every matrix
		g = op.ReduceSum(g, false, upTo(len(batch))...)
	}
	return op.reshapeLike(g, op.x(i))
}

// matrixTransposed exchanges the last two axes.
func (op *operation) matrixTransposed(x onnx.Value, rank int) onnx.Value {
	perm := upTo(rank)
	perm[rank-1], perm[rank-2] = rank-2, rank-1
	return op.Transpose(x, perm...)
}

// asRows reshapes x to a matrix with the last axis as its columns.
func (op *operation) asRows(x onnx.Value, shape []int) onnx.Value {
	if last := shape[len(shape)-1]; last > 0 {
		return op.Reshape(x, -1, last)
	}
	return op.Flatten(x, len(shape)-1)
}
