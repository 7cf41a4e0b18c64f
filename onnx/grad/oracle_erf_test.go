//go:build cgo

package grad_test

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// erfNumerator and erfDenominator are P and Q, highest power first, of erfc(x) = e^(-x^2) P(x) /
// Q(x). The error is at most 1.4e-16 for x from 0 to 6. They interpolate erfc(x) e^(x^2)
// (testdata/erf.py). All coefficients are positive, so there is no cancellation.
var (
	erfNumerator = []float64{
		0.00048752823537874549238, 0.0076501046753548792689, 0.05657771002791007032, 0.2535337660996489263,
		0.74224341420870163818, 1.4270713613021313717, 1.6920522107761174589, 0.99999999999999992547,
	}
	erfDenominator = []float64{
		0.00086412148850688158323, 0.013559448099739274096, 0.10071366076979806603, 0.45615335894002268298, 1.3653354750837259204,
		2.7470480048500659723, 3.6095873703162681925, 2.8204313778716049705, 1,
	}
)

// erf: sign(x) (1 - erfc(|x|)), to 5e-16. From |x| = 6 on the result is 1 in float64.
func erf(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	size := w.Op("Min", nil, w.Abs(x), w.num(6))
	erfc := w.Mul(w.Exp(w.Neg(w.Mul(size, size))), w.Div(w.polynomial(size, erfNumerator), w.polynomial(size, erfDenominator)))
	return w.Mul(w.Sign(x), w.Sub(w.num(1), erfc))
}

// polynomial evaluates a polynomial by Horner's rule. The coefficients are highest power first.
func (w *writer) polynomial(x onnx.Value, coefficients []float64) onnx.Value {
	y := w.num(coefficients[0])
	for _, c := range coefficients[1:] {
		y = w.Add(w.Mul(y, x), w.num(c))
	}
	return y
}
