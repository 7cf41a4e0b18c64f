//go:build cgo

package grad_test

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A generator draws random cases of one operator for one operator set (opset). A testCase is a node
// with its operands: inputs with their values.
type generator struct {
	*rand.Rand
	opset int
	trial int // index of the case among those of the operator and operator set
}

// between returns an integer from low to high.
func (g *generator) between(low, high int) int { return low + g.IntN(high-low+1) }

func (g *generator) coin() bool { return g.IntN(2) == 0 }

// dims returns a shape of the given rank, with sizes from low to high.
func (g *generator) dims(rank, low, high int) []int {
	shape := make([]int, rank)
	for i := range shape {
		shape[i] = g.between(low, high)
	}
	return shape
}

// smallShape returns a shape of 1 to 4 axes.
func (g *generator) smallShape() []int { return g.dims(g.between(1, 4), 1, 4) }

// axis returns an axis of a tensor of the given rank, possibly negative.
func (g *generator) axis(rank int) int { return g.maybeNegative(g.IntN(rank), rank) }

// maybeNegative returns an axis as it is or, at random, counted from the end: axis - rank. Operator
// sets before 11 have no negative axes.
func (g *generator) maybeNegative(axis, rank int) int {
	if g.opset >= 11 && g.coin() {
		return axis - rank
	}
	return axis
}

// axes returns at least one of the axes, in any order.
func (g *generator) axes(rank int) []int {
	list := g.Perm(rank)[:g.between(1, rank)]
	for i := range list {
		list[i] = g.maybeNegative(list[i], rank)
	}
	return list
}

// roundToGrid rounds to a multiple of 2^-10, so that adding the step of a finite difference, a
// power of two, is exact.
func roundToGrid(v float64) float32 { return float32(math.Round(v*1024) / 1024) }

// from returns an operand whose elements are calls of value, rounded to multiples of 2^-10.
func (g *generator) from(shape []int, value func() float64) operand {
	o := operand{shape: shape, floats: make([]float32, tensor.Size(shape))}
	for i := range o.floats {
		o.floats[i] = roundToGrid(value())
	}
	return o
}

// uniform returns values from low to high.
func (g *generator) uniform(low, high float64, shape ...int) operand {
	return g.from(shape, func() float64 { return low + (high-low)*g.Float64() })
}

// smooth returns values from -2 to 2, for operators without kinks: points where the derivative
// jumps.
func (g *generator) smooth(shape ...int) operand { return g.uniform(-2, 2, shape...) }

// positive returns values from 0.5 to 3.
func (g *generator) positive(shape ...int) operand { return g.uniform(0.5, 3, shape...) }

// awayFrom returns values from low to high that are at least 0.1 from the given kinks. That is more
// than the step of a finite difference.
func (g *generator) awayFrom(low, high float64, kinks []float64, shape ...int) operand {
	return g.from(shape, func() float64 {
	again:
		for {
			v := low + (high-low)*g.Float64()
			for _, k := range kinks {
				if math.Abs(v-k) < 0.1 {
					continue again
				}
			}
			return v
		}
	})
}

// nonzero returns values from -2 to 2 that are not near zero.
func (g *generator) nonzero(shape ...int) operand { return g.awayFrom(-2, 2, []float64{0}, shape...) }

// distinct returns values that differ from each other by more than the step of a finite difference.
func (g *generator) distinct(shape ...int) operand {
	n := tensor.Size(shape)
	order := g.Perm(n)
	i := -1
	return g.from(shape, func() float64 {
		i++
		return (float64(order[i])-float64(n)/2)*0.125 + 0.03*g.Float64()
	})
}

// asConstant marks an operand that is always a constant of the graph, never an input.
func (o operand) asConstant() operand { o.alwaysConstant = true; return o }

// withoutGradient marks an operand that is not differentiated by.
func (o operand) withoutGradient() operand { o.noGradient = true; return o }

// int64Vector returns an int64 operand of rank 1.
func int64Vector(v ...int) operand {
	o := operand{shape: []int{len(v)}, ints: make([]int64, len(v))}
	for i, x := range v {
		o.ints[i] = int64(x)
	}
	return o
}

// int64Scalar returns an int64 operand of rank 0.
func int64Scalar(v int) operand { return operand{shape: []int{}, ints: []int64{int64(v)}} }

// indices returns integers of 64 or 32 bits, which are indices into an axis of the given size. From
// operator set 11 on some are negative and count from the end.
func (g *generator) indices(size int, shape ...int) operand {
	o := operand{shape: shape, ints: make([]int64, tensor.Size(shape)), isInt32: g.coin()}
	for i := range o.ints {
		o.ints[i] = int64(g.axis(size))
	}
	return o
}

// mask returns random booleans.
func (g *generator) mask(shape ...int) operand {
	o := operand{shape: shape, bools: make([]bool, tensor.Size(shape))}
	for i := range o.bools {
		o.bools[i] = g.coin()
	}
	return o
}

// broadcast returns n shapes that can be broadcast with each other: one full shape, and copies of
// it of which some lack leading axes or have axes of size 1.
func (g *generator) broadcast(n int) [][]int {
	full := g.smallShape()
	shapes := make([][]int, n)
	for i := range shapes {
		shape := append([]int(nil), full[g.IntN(len(full)+1)*g.IntN(2):]...)
		for k := range shape {
			if g.IntN(4) == 0 {
				shape[k] = 1
			}
		}
		if shape == nil {
			shape = []int{}
		}
		shapes[i] = shape
	}
	shapes[g.IntN(n)] = full
	return shapes
}

// unary returns a case of an operator with one operand.
func unary(o operand, attrs onnx.Attrs) testCase {
	return testCase{operands: []operand{o}, attrs: attrs}
}

// attrOrInput adds a list of integers to a case: as a constant input from the operator set since
// on, as the attribute called name before.
func (g *generator) attrOrInput(tc *testCase, since int, name string, v ...int) {
	if g.opset >= since {
		tc.operands = append(tc.operands, int64Vector(v...).asConstant())
		return
	}
	if tc.attrs == nil {
		tc.attrs = onnx.Attrs{}
	}
	tc.attrs[name] = v
}
