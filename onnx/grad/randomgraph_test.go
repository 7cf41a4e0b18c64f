//go:build cgo

package grad_test

import (
	"fmt"
	"math"
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

// A randomGraph builds a graph of smooth operators, so that finite differences approximate
// its gradients. The methods of generator draw random numbers.
type randomGraph struct {
	*generator
	b       *onnx.Builder
	tensors []graphTensor
}

func (r *randomGraph) pick() graphTensor { return r.tensors[r.IntN(len(r.tensors))] }

func (r *randomGraph) add(v onnx.Value, shape []int) {
	r.tensors = append(r.tensors, graphTensor{v, shape})
}

// nodeGenerators add one or a few nodes each, which read earlier tensors.
var nodeGenerators = []func(r *randomGraph){
	func(r *randomGraph) { // an element-wise function
		x := r.pick()
		op := []string{"Tanh", "Sigmoid", "Sin", "Softplus", "Erf", "Neg", "Identity"}[r.IntN(7)]
		r.add(r.b.Op(op, nil, x.v), x.shape)
	},
	// a function of two tensors, which may be the same, or one of them broadcast.
	func(r *randomGraph) {
		x := r.pick()
		y := x
		for _, w := range r.tensors {
			if slices.Equal(w.shape, x.shape) && r.coin() {
				y = w
			}
		}
		if r.coin() {
			axis := r.IntN(len(x.shape))
			y = graphTensor{v: r.b.ReduceMean(y.v, true, axis)}
		}
		op := []string{"Add", "Sub", "Mul"}[r.IntN(3)]
		if r.coin() {
			x.v, y.v = y.v, x.v
		}
		r.add(r.b.Op(op, nil, x.v, y.v), x.shape)
	},
	func(r *randomGraph) {
		x := r.pick()
		r.add(r.b.Softmax(x.v, len(x.shape)-1), x.shape)
	},
	func(r *randomGraph) {
		x := r.pick()
		perm := r.Perm(len(x.shape))
		shape := make([]int, len(perm))
		for i, p := range perm {
			shape[i] = x.shape[p]
		}
		r.add(r.b.Transpose(x.v, perm...), shape)
	},
	func(r *randomGraph) { // a product with weights
		x := r.pick()
		n := r.between(1, 4)
		w := r.uniform(-1, 1, x.shape[len(x.shape)-1], n)
		v := r.b.MatMul(x.v, r.b.Const("", tensor.Tensor{Shape: w.shape, Data: w.floats}))
		r.add(r.b.Tanh(v), append(slices.Clone(x.shape[:len(x.shape)-1]), n))
	},
	func(r *randomGraph) {
		x := r.pick()
		axis := r.IntN(len(x.shape))
		start := r.IntN(x.shape[axis])
		shape := slices.Clone(x.shape)
		shape[axis] -= start
		r.add(r.b.Slice(x.v, axis, start, math.MaxInt32, 1), shape) // to the end of the axis
	},
	func(r *randomGraph) { // concatenated with a function of itself
		x := r.pick()
		axis := r.IntN(len(x.shape))
		shape := slices.Clone(x.shape)
		shape[axis] *= 2
		r.add(r.b.Concat(axis, x.v, r.b.Sigmoid(x.v)), shape)
	},
	func(r *randomGraph) {
		x := r.pick()
		axis := r.IntN(len(x.shape))
		pick := r.indices(x.shape[axis], r.between(1, 3))
		shape := slices.Clone(x.shape)
		shape[axis] = len(pick.ints)
		r.add(r.b.Gather(x.v, pick.constant(r.b, ""), axis), shape)
	},
	func(r *randomGraph) { // reshaped to a matrix and back
		x := r.pick()
		flat := r.b.Exp(r.b.Tanh(r.b.Reshape(x.v, -1, x.shape[len(x.shape)-1])))
		r.add(r.b.ReshapeTo(flat, r.b.Shape(x.v)), x.shape)
	},
}

// TestRandomGraphs checks the gradients of whole graphs, where several nodes may read a tensor and
// its gradients add up. check compares them with finite differences. trials returns 3, or what
// NOETHER_TRIALS sets.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	for i := range 10 * trials() {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			g := &generator{Rand: seed.Rand(13, "graphs", i), opset: []int{9, 13, 18, 22}[i%4], trial: i}
			shape := g.dims(g.between(2, 4), 1, 4)
			// Before operator set 11 the gradient of Slice needs the sizes of all axes.
			tc := testCase{alwaysDeclared: always(g.opset < 11), operands: []operand{g.smooth(shape...), g.smooth(shape...)}}
			tc.graph = func(b *onnx.Builder, in []onnx.Value) onnx.Value {
				// With operator set 7 the generator draws no negative indices, which not every
				// opset has.
				r := &randomGraph{generator: &generator{Rand: seed.Rand(13, "drawing", i), opset: 7}, b: b}
				for _, v := range in {
					r.add(v, shape)
				}
				for range 12 {
					nodeGenerators[r.IntN(len(nodeGenerators))](r)
				}
				y := b.Mul(in[0], b.Scalar(0.5))
				for _, w := range r.tensors[2:] { // all tensors contribute
					y = b.Add(y, b.ReduceMean(w.v, false))
				}
				return y
			}
			tc.check(t, "", g.opset, g.Rand)
		})
	}
}
