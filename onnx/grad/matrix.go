package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// gemm: y = alpha A' B' + beta C, where A' and B' are A and B, transposed where transA and transB
// say so.
func gemm(c *vjp) {
	alpha, beta := c.attrFloat("alpha", 1), c.attrFloat("beta", 1)
	transA, transB := c.attr("transA", 0) != 0, c.attr("transB", 0) != 0
	dy := c.dy(0)
	product := func(x, y onnx.Value, tx, ty bool) onnx.Value {
		var none onnx.Value
		if c.Opset() < 11 { // where it was not optional
			none = c.num(0)
		}
		return c.Gemm(x, y, none, onnx.Attrs{"alpha": alpha, "transA": tx, "transB": ty})
	}
	c.accumulate(0, func() onnx.Value {
		if transA {
			return product(c.x(1), dy, transB, true)
		}
		return product(dy, c.x(1), false, !transB)
	})
	c.accumulate(1, func() onnx.Value {
		if transB {
			return product(dy, c.x(0), true, transA)
		}
		return product(c.x(0), dy, !transA, false)
	})
	c.accumulate(2, func() onnx.Value {
		if beta != 1 {
			dy = c.times(dy, beta)
		}
		return c.sumTo(dy, c.shape(c.y(0)), c.x(2))
	})
}

// matMul: y = A B over the last two axes. A vector on the left counts as a row and one on the right
// as a column, which the product does not keep.
func matMul(c *vjp) {
	rankA, okA := c.rank(c.x(0))
	rankB, okB := c.rank(c.x(1))
	if !okA || !okB {
		return
	}
	a, b, dy := c.x(0), c.x(1), c.dy(0)
	shapeA, shapeB := c.shape(a), c.shape(b)
	if rankB == 1 {
		dy, b, shapeB = c.Unsqueeze(dy, max(rankA-1, 0)), c.Unsqueeze(b, 1), []int{shapeB[0], 1}
	}
	if rankA == 1 {
		dy, a, shapeA = c.Unsqueeze(dy, max(len(shapeB)-2, 0)), c.Unsqueeze(a, 0), []int{1, shapeA[0]}
	}
	rows, columns := shapeA[len(shapeA)-2], shapeB[len(shapeB)-1]
	batch := broadcastShape(shapeA[:len(shapeA)-2], shapeB[:len(shapeB)-2])
	shapeY := append(slices.Clone(batch), rows, columns)
	c.accumulate(0, func() onnx.Value { return c.matrixGradient(c.MatMul(dy, c.swap(b, len(shapeB))), batch, shapeA, 0) })
	c.accumulate(1, func() onnx.Value {
		if len(shapeB) == 2 && len(shapeA) > 2 && rankB == 2 {
			return c.MatMul(c.swap(c.rows(a, shapeA), 2), c.rows(dy, shapeY)) // one product instead of a sum of many
		}
		return c.matrixGradient(c.MatMul(c.swap(a, len(shapeA)), dy), batch, shapeB, 1)
	})
}

// matrixGradient gives g, batch x rows x columns, the shape of the node's i-th input, which was
// shape as a matrix.
func (c *vjp) matrixGradient(g onnx.Value, batch, shape []int, i int) onnx.Value {
	from := append(slices.Clone(batch), shape[len(shape)-2:]...)
	if len(shape) == len(c.shape(c.x(i))) {
		return c.sumTo(g, from, c.x(i))
	}
	if len(batch) > 0 { // a vector was repeated for every matrix
		axes := make([]int, len(batch))
		for k := range axes {
			axes[k] = k
		}
		g = c.ReduceSum(g, false, axes...)
	}
	return c.reshapeLike(g, c.x(i))
}

// swap transposes the last two axes.
func (c *vjp) swap(x onnx.Value, rank int) onnx.Value {
	perm := make([]int, rank)
	for i := range perm {
		perm[i] = i
	}
	perm[rank-1], perm[rank-2] = rank-2, rank-1
	return c.Transpose(x, perm...)
}

// rows joins all axes but the last.
func (c *vjp) rows(x onnx.Value, shape []int) onnx.Value {
	if last := shape[len(shape)-1]; last > 0 {
		return c.Reshape(x, -1, last)
	}
	return c.Flatten(x, len(shape)-1)
}
