//go:build cgo

package oracle_test

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// stepsOf are the states of a recurrence over x (steps x 1 x in), written out: next is the state
// after a step, given the sums of each gate over the input, and over the state before it.
func stepsOf(x, w, r tensor.Tensor, hidden int, next func(ofInput, ofState [][]float64, h, cell []float64) ([]float64, []float64)) []float64 {
	var all []float64
	h, cell := make([]float64, hidden), make([]float64, hidden)
	in := x.Shape[2]
	product := func(m tensor.Tensor, v []float64) [][]float64 {
		var gates [][]float64
		for k := range m.Shape[1] {
			sum := 0.0
			for i := range v {
				sum += float64(m.Data[k*len(v)+i]) * v[i]
			}
			if k%hidden == 0 {
				gates = append(gates, nil)
			}
			gates[len(gates)-1] = append(gates[len(gates)-1], sum)
		}
		return gates
	}
	for t := range x.Shape[0] {
		h, cell = next(product(w, widened(x.Data[t*in:(t+1)*in])), product(r, h), h, cell)
		all = append(all, h...)
	}
	return all
}

func TestRecurrent(t *testing.T) {
	t.Parallel()
	const steps, in, hidden = 4, 3, 2
	sigmoid := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	for op, c := range map[string]struct {
		gates int
		attrs onnx.Attrs
		next  func(x, s [][]float64, h, cell []float64) ([]float64, []float64)
	}{
		"LSTM": {4, onnx.Attrs{}, func(x, s [][]float64, _, cell []float64) ([]float64, []float64) {
			var nh, nc []float64
			for i := range hidden { // input, output, forget, cell
				g := func(k int) float64 { return x[k][i] + s[k][i] }
				nc = append(nc, sigmoid(g(2))*cell[i]+sigmoid(g(0))*math.Tanh(g(3)))
				nh = append(nh, sigmoid(g(1))*math.Tanh(nc[i]))
			}
			return nh, nc
		}},
		"GRU": {3, onnx.Attrs{"linear_before_reset": 1}, func(x, s [][]float64, h, _ []float64) ([]float64, []float64) {
			var nh []float64
			for i := range hidden { // update, reset, hidden
				z, r := sigmoid(x[0][i]+s[0][i]), sigmoid(x[1][i]+s[1][i])
				nh = append(nh, (1-z)*math.Tanh(x[2][i]+r*s[2][i])+z*h[i])
			}
			return nh, nil
		}},
		"RNN": {1, onnx.Attrs{"activations": []string{"Softsign"}}, func(x, s [][]float64, _, _ []float64) ([]float64, []float64) {
			var nh []float64
			for i := range hidden {
				v := x[0][i] + s[0][i]
				nh = append(nh, v/(1+math.Abs(v)))
			}
			return nh, nil
		}},
	} {
		t.Run(op, func(t *testing.T) {
			random := seed.Rand(1, op)
			x, w, r := normal(random, steps, 1, in), normal(random, 1, c.gates*hidden, in), normal(random, 1, c.gates*hidden, hidden)
			c.attrs["hidden_size"] = hidden
			checkExact(t, 14, x, false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
				return b.Op(op, c.attrs, x, b.Const("w", w), b.Const("r", r))
			}, stepsOf(x, w, r, hidden, c.next), steps, 1, 1, hidden)
		})
	}
}
