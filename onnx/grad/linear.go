package grad

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

func floatTensor(v []float32) tensor.Tensor { return tensor.Tensor{Shape: []int{len(v)}, Data: v} }

// identityMatrix is the n x n identity, of the type of the node's output, where n is the length of
// an axis of its input.
func (c *vjp) identityMatrix(axis int) onnx.Value {
	if c.Opset() < 9 {
		return c.constantIdentity(c.shape(c.x(0))[axis])
	}
	return c.identityOf(c.size(c.x(0), axis))
}

// identityOf is the n x n identity for a vector n of one element; it came with opset 9.
func (c *vjp) identityOf(n onnx.Value) onnx.Value {
	kind := c.info.Type(string(c.y(0)))
	zero := &pb.TensorProto{DataType: int32p(kind), Dims: []int64{1}, RawData: make([]byte, kind.Size())}
	return c.Op("EyeLike", nil, c.Op("ConstantOfShape", onnx.Attrs{"value": zero}, c.Concat(0, n, n)))
}

// constantIdentity is the identity before opset 9, which brought the operators that make one.
func (c *vjp) constantIdentity(n int) onnx.Value {
	if n < 0 || n*n > listed {
		c.fail("before opset 9, its sizes must be fixed, and small")
		return ""
	}
	eye := tensor.New(n, n)
	for i := range n {
		eye.Data[i*n+i] = 1
	}
	return c.Const("", eye)
}

// untransform multiplies g along an axis by the transpose of a matrix, new size x old size: the
// gradient of multiplying by it.
func (c *vjp) untransform(g onnx.Value, at int, matrix onnx.Value) onnx.Value {
	rank := len(c.shape(c.x(0)))
	switch at {
	case rank - 1:
		return c.MatMul(g, matrix)
	case rank - 2:
		return c.MatMul(c.Transpose(matrix, 1, 0), g)
	}
	swap := upTo(rank)
	swap[at], swap[rank-1] = rank-1, at
	return c.Transpose(c.MatMul(c.Transpose(g, swap...), matrix), swap...)
}
