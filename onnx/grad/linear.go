package grad

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// identityMatrix is the n x n identity, where n is the length of an axis of the node's first input.
func (op *operation) identityMatrix(axis int) onnx.Value {
	if op.Opset() < 9 {
		return op.constantIdentity(op.shape(op.x(0))[axis])
	}
	return op.identityOf(op.size(op.x(0), axis))
}

// identityOf is the n x n identity for an int64 vector n of one element. EyeLike came with opset 9.
func (op *operation) identityOf(n onnx.Value) onnx.Value {
	kind := op.elementType(op.y(0))
	zero := &pb.TensorProto{DataType: new(int32(kind)), Dims: []int64{1}, RawData: make([]byte, kind.Size())}
	return op.Op("EyeLike", nil, op.Op("ConstantOfShape", onnx.Attrs{"value": zero}, op.Concat(0, n, n)))
}

func (op *operation) constantIdentity(n int) onnx.Value {
	if n < 0 || n*n > maxConstant {
		op.fail("before opset 9, its sizes must be fixed, and at most %d elements make an identity matrix", maxConstant)
	}
	eye := tensor.New(n, n)
	for i := range n {
		eye.Data[i*n+i] = 1
	}
	return op.Const("", eye)
}

// applyTransposed multiplies an axis of g by the transposed n x m matrix: the gradient of a node
// that multiplies that axis of its first input by the matrix.
func (op *operation) applyTransposed(g onnx.Value, axis int, matrix onnx.Value) onnx.Value {
	rank := len(op.shape(op.x(0)))
	switch axis {
	case rank - 1:
		return op.MatMul(g, matrix)
	case rank - 2:
		return op.MatMul(op.Transpose(matrix, 1, 0), g)
	}
	perm := upTo(rank)
	perm[axis], perm[rank-1] = rank-1, axis
	return op.Transpose(op.MatMul(op.Transpose(g, perm...), matrix), perm...)
}
