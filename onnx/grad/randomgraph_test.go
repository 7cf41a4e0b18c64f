//go:build cgo

package grad_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A graphTensor is a tensor of a random graph, with its shape.
type graphTensor struct {
	v     onnx.Value
	shape []int
}

// A randomGraph builds a graph of smooth operators, so that differences give its gradients.
type randomGraph struct {
	*generator
	b     *onnx.Builder
	wires []graphTensor
}

func (d *randomGraph) pick() graphTensor { return d.wires[d.IntN(len(d.wires))] }

func (d *randomGraph) add(v onnx.Value, shape []int) {
	d.wires = append(d.wires, graphTensor{v, shape})
}

// nodeGenerators add a node each, which reads earlier tensors.
var nodeGenerators = []func(d *randomGraph){
	func(d *randomGraph) { // a function of one number
		x := d.pick()
		op := []string{"Tanh", "Sigmoid", "Sin", "Softplus", "Erf", "Neg", "Identity"}[d.IntN(7)]
		d.add(d.b.Op(op, nil, x.v), x.shape)
	},
	func(d *randomGraph) { // a function of two tensors, which may be the same, or one of them broadcast
		x := d.pick()
		y := x
		for _, w := range d.wires {
			if slices.Equal(w.shape, x.shape) && d.coin() {
				y = w
			}
		}
		if d.coin() {
			axis := d.IntN(len(x.shape))
			y = graphTensor{v: d.b.ReduceMean(y.v, true, axis)}
		}
		op := []string{"Add", "Sub", "Mul"}[d.IntN(3)]
		if d.coin() {
			x.v, y.v = y.v, x.v
		}
		d.add(d.b.Op(op, nil, x.v, y.v), x.shape)
	},
	func(d *randomGraph) {
		x := d.pick()
		d.add(d.b.Softmax(x.v, len(x.shape)-1), x.shape)
	},
	func(d *randomGraph) {
		x := d.pick()
		perm := d.Perm(len(x.shape))
		shape := make([]int, len(perm))
		for i, p := range perm {
			shape[i] = x.shape[p]
		}
		d.add(d.b.Transpose(x.v, perm...), shape)
	},
	func(d *randomGraph) { // a product with weights
		x := d.pick()
		n := d.between(1, 4)
		w := d.uniform(-1, 1, x.shape[len(x.shape)-1], n)
		v := d.b.MatMul(x.v, d.b.Const("", tensor.Tensor{Shape: w.shape, Data: w.floats}))
		d.add(d.b.Tanh(v), append(slices.Clone(x.shape[:len(x.shape)-1]), n))
	},
	func(d *randomGraph) {
		x := d.pick()
		axis := d.IntN(len(x.shape))
		start := d.IntN(x.shape[axis])
		shape := slices.Clone(x.shape)
		shape[axis] -= start
		d.add(d.b.Slice(x.v, axis, start, 1<<31-1, 1), shape)
	},
	func(d *randomGraph) { // joined with a function of itself
		x := d.pick()
		axis := d.IntN(len(x.shape))
		shape := slices.Clone(x.shape)
		shape[axis] *= 2
		d.add(d.b.Concat(axis, x.v, d.b.Sigmoid(x.v)), shape)
	},
	func(d *randomGraph) {
		x := d.pick()
		axis := d.IntN(len(x.shape))
		pick := d.indices(x.shape[axis], d.between(1, 3))
		shape := slices.Clone(x.shape)
		shape[axis] = len(pick.ints)
		d.add(d.b.Gather(x.v, pick.constant(d.b, ""), axis), shape)
	},
	func(d *randomGraph) { // flattened to rows and back
		x := d.pick()
		flat := d.b.Exp(d.b.Tanh(d.b.Reshape(x.v, -1, x.shape[len(x.shape)-1])))
		d.add(d.b.ReshapeTo(flat, d.b.Shape(x.v)), x.shape)
	},
}

// In whole graphs a tensor is read several times, and its gradients add up.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	for i := range 10 * trials() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			g := &generator{Rand: seed.Rand(13, "graphs", i), opset: []int{9, 13, 18, 22}[i%4], trial: i}
			shape := g.dims(g.between(2, 4), 1, 4)
			tc := testCase{alwaysDeclared: always(g.opset < 11), operands: []operand{g.smooth(shape...), g.smooth(shape...)}}
			tc.graph = func(b *onnx.Builder, in []onnx.Value) onnx.Value {
				d := &randomGraph{generator: &generator{Rand: seed.Rand(13, "drawing", i), opset: 7}, b: b}
				for _, v := range in {
					d.add(v, shape)
				}
				for range 12 {
					nodeGenerators[d.IntN(len(nodeGenerators))](d)
				}
				y := b.Mul(in[0], b.Scalar(0.5))
				for _, w := range d.wires[2:] { // all tensors contribute
					y = b.Add(y, b.ReduceMean(w.v, false))
				}
				return y
			}
			tc.check(t, "", g.opset, g.Rand)
		})
	}
}
