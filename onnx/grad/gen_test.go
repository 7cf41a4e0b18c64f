//go:build cgo

package grad_test

import (
	"math"
	"math/rand/v2"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A gen draws trials of one operator for one operator set.
type gen struct {
	*rand.Rand
	opset int
	trial int
}

// between is an integer from low to high.
func (g *gen) between(low, high int) int { return low + g.IntN(high-low+1) }

func (g *gen) coin() bool { return g.IntN(2) == 0 }

// dims is a shape of a rank.
func (g *gen) dims(rank, low, high int) []int {
	shape := make([]int, rank)
	for i := range shape {
		shape[i] = g.between(low, high)
	}
	return shape
}

// some is a small shape with 1 to 4 axes.
func (g *gen) some() []int { return g.dims(g.between(1, 4), 1, 4) }

// axis is an axis of a rank, counted from either end.
func (g *gen) axis(rank int) int { return g.signed(g.IntN(rank), rank) }

// signed counts an axis from either end, where the operator set allows it: before 11 only from the
// front.
func (g *gen) signed(axis, rank int) int {
	if g.opset >= 11 && g.coin() {
		return axis - rank
	}
	return axis
}

// axes is a choice of at least one axis, in any order.
func (g *gen) axes(rank int) []int {
	list := g.Perm(rank)[:g.between(1, rank)]
	for i := range list {
		list[i] = g.signed(list[i], rank)
	}
	return list
}

// grid rounds to a multiple of 2^-10, so that small steps are exact.
func grid(v float64) float32 { return float32(math.Round(v*1024) / 1024) }

func (g *gen) from(shape []int, value func() float64) operand {
	o := operand{shape: shape, floats: make([]float32, tensor.Size(shape))}
	for i := range o.floats {
		o.floats[i] = grid(value())
	}
	return o
}

// uniform has values from low to high.
func (g *gen) uniform(low, high float64, shape ...int) operand {
	return g.from(shape, func() float64 { return low + (high-low)*g.Float64() })
}

// smooth is for operators without kinks.
func (g *gen) smooth(shape ...int) operand { return g.uniform(-2, 2, shape...) }

// positive is away from zero.
func (g *gen) positive(shape ...int) operand { return g.uniform(0.5, 3, shape...) }

// away has values from low to high that keep their distance from kinks, by more than a step of a
// difference.
func (g *gen) away(low, high float64, kinks []float64, shape ...int) operand {
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

// signless has values on both sides of zero, away from it.
func (g *gen) signless(shape ...int) operand { return g.away(-2, 2, []float64{0}, shape...) }

// distinct has values of which no two come near each other.
func (g *gen) distinct(shape ...int) operand {
	n := tensor.Size(shape)
	order := g.Perm(n)
	i := -1
	return g.from(shape, func() float64 {
		i++
		return (float64(order[i])-float64(n)/2)*0.125 + 0.03*g.Float64()
	})
}

func (o operand) fix() operand { o.fixed = true; return o }

func (o operand) give() operand { o.given = true; return o }

// list is an int64 operand of rank 1.
func list(v ...int) operand {
	o := operand{shape: []int{len(v)}, ints: make([]int64, len(v))}
	for i, x := range v {
		o.ints[i] = int64(x)
	}
	return o
}

// number is an int64 operand of rank 0.
func number(v int) operand { return operand{shape: []int{}, ints: []int64{int64(v)}} }

// indices are integers of 64 or 32 bits up to a size; negative ones count from the end, where the
// operator set allows it.
func (g *gen) indices(size int, shape ...int) operand {
	o := operand{shape: shape, ints: make([]int64, tensor.Size(shape)), narrow: g.coin()}
	for i := range o.ints {
		o.ints[i] = int64(g.axis(size))
	}
	return o
}

// mask is of booleans.
func (g *gen) mask(shape ...int) operand {
	o := operand{shape: shape, bools: make([]bool, tensor.Size(shape))}
	for i := range o.bools {
		o.bools[i] = g.coin()
	}
	return o
}

// broadcast is n shapes that go together: of different ranks, and with axes of size 1.
func (g *gen) broadcast(n int) [][]int {
	full := g.some()
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

// unary is a trial of an operator with one operand.
func unary(o operand, attrs onnx.Attrs) trial { return trial{operands: []operand{o}, attrs: attrs} }

// listed is a list of integers that became an input with an operator set, and was an attribute
// before.
func (g *gen) listed(tr *trial, since int, name string, v ...int) {
	if g.opset >= since {
		tr.operands = append(tr.operands, list(v...).fix())
		return
	}
	if tr.attrs == nil {
		tr.attrs = onnx.Attrs{}
	}
	tr.attrs[name] = v
}
