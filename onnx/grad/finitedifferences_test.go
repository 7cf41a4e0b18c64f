//go:build cgo

package grad_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// forward returns a session (a graph in ONNX Runtime) that computes the outputs that the loss
// reads, without graph optimisations. A testCase is a random node and its operands, the inputs with
// their values; its plainForm is the graph that declares every size. The loss is sum_i <r_i, y_i>
// for outputs y_i and random cotangents r_i.
func (tc testCase) forward(t testing.TB, op string, opset int) *session {
	t.Helper()
	b := onnx.NewBuilder(opset)
	_, out := tc.node(b, op, tc.plainForm(opset))
	for _, i := range tc.lossOutputs() {
		addOutputWithShape(b, fmt.Sprintf("y%d", i), out[i])
	}
	return compileWith(t, build(t, b), ort.Options{Threads: 1, Verbatim: true})
}

func build(t testing.TB, b *onnx.Builder) *onnx.Model {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// backward returns a session that computes the gradient of the loss with respect to each
// differentiable operand. The form f says which operands are constants of the graph and which sizes
// it does not declare.
func (tc testCase) backward(t testing.TB, op string, f form, cotangents []tensor.Tensor) (*session, error) {
	t.Helper()
	b := onnx.NewBuilder(f.opset)
	in, out := tc.node(b, op, f)
	var wrt []onnx.Value
	for i, o := range tc.operands {
		if o.differentiable() {
			wrt = append(wrt, in[i])
		}
	}
	y, dy := tc.weightedSum(b, out, cotangents)
	dx, err := grad.Of(b, y, dy, wrt...)
	if err != nil {
		return nil, err
	}
	for i, v := range dx {
		addOutputWithShape(b, fmt.Sprintf("grad%d", i), v)
	}
	return compile(t, build(t, b)), nil
}

// weightedSum returns a tensor y and a cotangent dy such that <dy, y> is the loss: a single output
// and its cotangent, or the sum over several outputs and 1. The inputs r0, r1 and so on of the
// graph are the cotangents of the outputs that the loss reads.
func (tc testCase) weightedSum(b *onnx.Builder, out []onnx.Value, cotangents []tensor.Tensor) (y, dy onnx.Value) {
	read := tc.lossOutputs()
	if len(read) == 1 {
		return out[read[0]], b.Input("r0", onnx.Float, cotangents[0].Shape...)
	}
	for k, i := range read {
		r := b.Input(fmt.Sprintf("r%d", k), onnx.Float, cotangents[k].Shape...)
		term := b.ReduceSum(b.Mul(out[i], r), false)
		if y == "" {
			y = term
		} else {
			y = b.Add(y, term)
		}
	}
	return y, b.Scalar(1)
}

// check compares gradients with central differences along random directions, and with those of a
// graph of another form.
func (tc testCase) check(t *testing.T, op string, opset int, r *rand.Rand) {
	t.Helper()
	run := tc.forward(t, op, opset)
	clean := run.run(t, tc.feed()) // the outputs for the operands as drawn, not shifted
	cotangents := make([]tensor.Tensor, len(clean))
	feed := tc.feed()
	for i, y := range clean {
		cotangents[i] = tensor.New(y.Shape...)
		for k := range cotangents[i].Data {
			cotangents[i].Data[k] = float32(r.NormFloat64())
		}
		feed[fmt.Sprintf("r%d", i)] = operand{shape: y.Shape, floats: cotangents[i].Data, noGradient: true}
	}
	plain, err := tc.backward(t, op, tc.plainForm(opset), cotangents)
	if err != nil {
		t.Fatalf("%v: %v", tc, err)
	}
	gradients := plain.run(t, feed)
	tc.checkShapes(t, gradients)
	tc.checkDirections(t, run, clean, cotangents, gradients, r)
	tc.checkForm(t, op, tc.randomForm(opset, r), feed, cotangents, gradients)
	if t.Failed() {
		t.Logf("%v", tc)
	}
}

func (tc testCase) checkShapes(t *testing.T, gradients []tensor.Tensor) {
	t.Helper()
	k := 0
	for i, o := range tc.operands {
		if !o.differentiable() {
			continue
		}
		if !slices.Equal(gradients[k].Shape, o.shape) {
			t.Fatalf("the gradient with respect to operand %d has shape %v, and the operand %v: %v", i, gradients[k].Shape, o.shape, tc)
		}
		k++
	}
}

// Inputs are multiples of 2^-10 below 2^6 and directions are multiples of 2^-4 up to 1. So x + h v
// is exact for a direction v and the steps h that are used, step and step/2. The differences have
// only the rounding error of the operator and, by Richardson extrapolation, a truncation error of
// order h^4.
const (
	step       = 1.0 / 32
	directions = 3 // drawn for each operand
)

// checkDirections compares derivatives of the loss along random directions of one operand at a
// time, by differences and by the gradient. clean holds the outputs for unshifted operands.
func (tc testCase) checkDirections(t *testing.T, run *session, clean, cotangents, gradients []tensor.Tensor, r *rand.Rand) {
	t.Helper()
	rounding := roundingOf(clean, cotangents)
	// Where the gradient is small, the third derivative, by which the differences of two steps
	// differ, may be large. So their tolerance also has a term proportional to the norm of the
	// cotangents.
	var squaredNorm float64
	for _, r := range cotangents {
		squaredNorm += dot(r.Data, r.Data)
	}
	truncation := step * step * math.Sqrt(squaredNorm)
	k := 0
	for i, o := range tc.operands {
		if !o.differentiable() {
			continue
		}
		g := gradients[k]
		k++
		for range directions {
			v := direction(len(o.floats), r)
			slope := func(h float64) float64 {
				return (tc.shiftedLoss(t, run, i, v, h, cotangents) - tc.shiftedLoss(t, run, i, v, -h, cotangents)) / (2 * h)
			}
			wide, narrow := slope(step), slope(step/2)
			numeric := (4*narrow - wide) / 3
			var analytic float64
			for e, d := range v {
				analytic += d * float64(g.Data[e])
			}
			size := math.Sqrt(dot(g.Data, g.Data))
			bound := max(1e-3*size, 20*rounding/step)
			if math.Abs(wide-narrow) > 0.05*size+truncation+20*rounding/step {
				t.Fatalf("the differences of two steps along operand %d do not agree, %g and %g: the case is near a point without a derivative: %v", i, wide, narrow, tc)
			}
			if !(math.Abs(numeric-analytic) <= bound) {
				t.Errorf("the derivative along operand %d is %g by differences and %g by the gradient, want a difference of at most %g", i, numeric, analytic, bound)
			}
		}
	}
}

// roundingOf estimates the rounding error of the loss sum_i <r_i, y_i>, if each output value has an
// independent relative error of 2^-23, that of float32.
func roundingOf(y, r []tensor.Tensor) float64 {
	var square float64
	for i := range y {
		for k, v := range y[i].Data {
			e := float64(v) * float64(r[i].Data[k])
			square += e * e
		}
	}
	return math.Sqrt(square) * 0x1p-23
}

// direction draws n multiples of 1/16 from -1 to 1, without 0.
func direction(n int, r *rand.Rand) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(1+r.IntN(16)) / 16
		if r.IntN(2) == 0 {
			v[i] = -v[i]
		}
	}
	return v
}

// shiftedLoss returns the loss with h v added to operand i.
func (tc testCase) shiftedLoss(t *testing.T, run *session, i int, v []float64, h float64, cotangents []tensor.Tensor) float64 {
	t.Helper()
	shifted := tc.operands[i]
	shifted.floats = slices.Clone(shifted.floats)
	for e := range v {
		shifted.floats[e] = float32(float64(shifted.floats[e]) + h*v[e])
	}
	feed := tc.feed()
	feed[fmt.Sprintf("x%d", i)] = shifted
	var loss float64
	for k, y := range run.run(t, feed) {
		loss += dot(y.Data, cotangents[k].Data)
	}
	return loss
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// checkForm compares the gradients of a graph of form f with those of the plain form, want.
func (tc testCase) checkForm(t *testing.T, op string, f form, feed map[string]operand, cotangents, want []tensor.Tensor) {
	t.Helper()
	other, err := tc.backward(t, op, f, cotangents)
	if err != nil {
		t.Fatalf("with constants %v: %v: %v", f.constants, err, tc)
	}
	for k, g := range other.run(t, feed) {
		if !slices.Equal(g.Shape, want[k].Shape) {
			t.Fatalf("gradient %d has shape %v where constants are %v, else %v", k, g.Shape, f.constants, want[k].Shape)
		}
		if d, size := maxDifference(g.Data, want[k].Data), maxAbs(want[k].Data); !(d <= 2e-5*size+1e-7) {
			t.Errorf("gradient %d where constants are %v differs by %g of %g", k, f.constants, d, size)
		}
	}
}

func maxDifference(a, b []float32) float64 {
	var d float64
	for i := range a {
		if e := math.Abs(float64(a[i] - b[i])); !(e <= d) {
			d = e
		}
	}
	return d
}

func maxAbs(a []float32) float64 {
	var m float64
	for _, v := range a {
		m = max(m, math.Abs(float64(v)))
	}
	return m
}

// trials is the number of random cases of an operator for each operator set, 3 unless
// NOETHER_TRIALS sets it.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("NOETHER_TRIALS")); err == nil && n > 0 {
		return n
	}
	return 3
}

// TestOperators checks the gradients of random cases of each operator and operator set (opset). The
// generator has the random numbers from which draw makes a case.
func TestOperators(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			for _, opset := range c.opsets {
				for i := range trials() {
					t.Run(fmt.Sprintf("opset%d/%d", opset, i), func(t *testing.T) {
						g := &generator{Rand: seed.Rand(11, c.op, opset, i), opset: opset, trial: i}
						c.draw(g).check(t, c.op, opset, g.Rand)
					})
				}
			}
		})
	}
}

// runPlain returns the elements of all outputs, which are float32, of a graph whose outputs were
// not added by addOutputWithShape.
func (p *session) runPlain(t testing.TB, feed map[string]operand) [][]float32 {
	t.Helper()
	out := p.outputs(t, feed)
	results := make([][]float32, len(out))
	for i, v := range out {
		results[i] = slices.Clone(v.Tensor().Data)
		v.Close()
	}
	return results
}
