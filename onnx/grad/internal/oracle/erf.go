package oracle

import (
	"math"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
)

// erfNumerator and erfDenominator are P and Q, highest power first, of erfc(x) = e^(-x^2) P(x) /
// Q(x): off by 1.4e-16 at most for x from 0 to 6. They interpolate erfc(x) e^(x^2)
// (testdata/erf.py). All are positive, so nothing cancels.
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

// erf is good to 5e-16, of values up to 1.
func (w *writer) erf(x onnx.Value) onnx.Value {
	far := w.Op("Min", nil, w.Abs(x), w.num(6)) // from where on it is 1
	tail := w.Mul(w.Exp(w.Neg(w.Mul(far, far))), w.Div(w.polynomial(far, erfNumerator), w.polynomial(far, erfDenominator)))
	return w.Mul(w.Sign(x), w.Sub(w.num(1), tail))
}

// polynomial has its coefficients highest power first.
func (w *writer) polynomial(x onnx.Value, coefficients []float64) onnx.Value {
	y := w.num(coefficients[0])
	for _, c := range coefficients[1:] {
		y = w.Add(w.Mul(y, x), w.num(c))
	}
	return y
}

func erf(w *writer, n *pb.NodeProto) onnx.Value { return w.erf(w.x(n, 0)) }

// gelu: x (1 + erf(x / sqrt 2)) / 2, or approximately x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
// / 2.
func gelu(w *writer, n *pb.NodeProto) onnx.Value {
	x := w.x(n, 0)
	var shape onnx.Value
	if onnx.AttrString(n, "approximate", "none") == "tanh" {
		cubic := w.Mul(x, w.Add(w.Mul(w.Mul(x, x), w.num(0.044715)), w.num(1)))
		shape = w.Tanh(w.Mul(cubic, w.num(math.Sqrt(2/math.Pi))))
	} else {
		shape = w.erf(w.Mul(x, w.num(math.Sqrt2/2)))
	}
	return w.Mul(w.Mul(x, w.num(0.5)), w.Add(shape, w.num(1)))
}
