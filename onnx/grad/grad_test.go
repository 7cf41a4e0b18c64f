//go:build cgo

package grad_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// smallModel is y = relu(x w + 1), with x of n x 2 and w of 2 x 2. Its other outputs are the index
// of the largest column of y, and relu(x).
func smallModel(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 2)
	w := b.Const("weights", tensor.Tensor{Shape: []int{2, 2}, Data: []float32{1, 2, 3, 4}})
	b.Output("y", b.Relu(b.Add(b.MatMul(x, w), b.Scalar(1))))
	b.Output("best", b.Op("ArgMax", onnx.Attrs{"axis": 1}, "y"))
	b.Output("relu of x", b.Relu(x))
	return build(t, b)
}

// TestAdd differentiates y, weighted by the new input r, by x and by the weights.
func TestAdd(t *testing.T) {
	t.Parallel()
	m := smallModel(t)
	g, err := grad.Add(m, grad.Options{Of: "y", Cotangent: "r", By: []string{"x", "weights"}, Names: map[string]string{"weights": "dw"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Outputs()) != 3 || len(m.Inputs()) != 1 {
		t.Error("the model that was differentiated has changed")
	}
	var tensors []string // with types and shapes
	for _, p := range slices.Concat(g.Inputs(), g.Outputs()) {
		tensors = append(tensors, p.String())
	}
	want := "x float[batch 2]; r float[? 2]; y float; best int64; relu of x float; grad/x float[batch 2]; dw float[2 2]"
	if got := strings.Join(tensors, "; "); got != want {
		t.Errorf("inputs and outputs are\n%s\nwant\n%s", got, want)
	}
	p := compile(t, withOutputs(t, g, "grad/x", "dw"))
	out := p.runPlain(t, map[string]operand{
		"x": {shape: []int{2, 2}, floats: []float32{1, 1, 1, -2}}, // y = relu(5, 7; -4, -5)
		"r": {shape: []int{2, 2}, floats: []float32{1, 10, 100, 1000}},
	})
	if want := []float32{21, 43, 0, 0}; !slices.Equal(out[0], want) {
		t.Errorf("the gradient by x is %v, want %v", out[0], want)
	}
	if want := []float32{1, 10, 1, 10}; !slices.Equal(out[1], want) {
		t.Errorf("the gradient by the weights is %v, want %v", out[1], want)
	}
}

func TestAddErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		o    grad.Options
		want string
	}{
		{grad.Options{By: []string{"x"}}, "3 outputs"},
		{grad.Options{Of: "y", By: []string{"x", "x"}}, "twice"},
		{grad.Options{Of: "yy", Cotangent: "r", By: []string{"x"}}, `similar names: ["y"`},
		{grad.Options{Of: "y", By: []string{"weigths"}}, `similar names: ["weights"`},
		{grad.Options{Of: "best", By: []string{"x"}}, "holds int64"},
		{grad.Options{Of: "y", By: []string{"best"}}, "holds int64"},
		{grad.Options{Of: "y", By: []string{"x"}, Names: map[string]string{"x": "y"}}, "exists already"},
	} {
		if _, err := grad.Add(smallModel(t), c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error is %v, want one line with %q", c.o, err, c.want)
		}
	}
}

// The gradient by a tensor that the output does not depend on is zero.
func TestNoInfluence(t *testing.T) {
	t.Parallel()
	g, err := grad.Add(smallModel(t), grad.Options{Of: "relu of x", By: []string{"weights", "x"}})
	if err != nil {
		t.Fatal(err)
	}
	out := compile(t, withOutputs(t, g, "grad/weights", "grad/x")).runPlain(t, map[string]operand{"x": {shape: []int{1, 2}, floats: []float32{3, -3}}})
	if want := make([]float32, 4); !slices.Equal(out[0], want) {
		t.Errorf("the gradient by the weights is %v, want %v", out[0], want)
	}
	if want := []float32{1, 0}; !slices.Equal(out[1], want) {
		t.Errorf("the gradient by x is %v, want %v", out[1], want)
	}
}

// An operator without a gradient rule is an error only where a gradient must flow through it.
func TestNoRule(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, 1, 2)
	determinant := b.Op("Det", nil, b.Input("m", onnx.Float, 1, 3, 3))
	y := b.Mul(x, determinant)
	if _, err := grad.Of(b, y, "", x); err != nil {
		t.Errorf("no gradient flows through Det, and yet: %v", err)
	}
	_, err := grad.Of(b, y, "", "m")
	if err == nil || !strings.Contains(err.Error(), `node "Det" (Det)`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is %v, want one line that names the node", err)
	}
}

// A gradient can be differentiated again by weights or exponents: they are not taken for constants.
// A convolution y = conv(x, w) is linear in both: with g = d(sum y)/dx, d<g, r>/dw equals d(sum
// conv(r, w))/dw. The derivative of the power a^b by a is b a^(b-1), and that by b is a^(b-1) (1 +
// b log a). smooth draws values from -2 to 2.
func TestSecondDerivativeByWeights(t *testing.T) {
	t.Parallel()
	g := &generator{Rand: seed.Rand(31), opset: 17}
	kernel, exponent := g.smooth(3, 2, 3, 2), operand{shape: []int{1}, floats: []float32{2}}
	b := onnx.NewBuilder(17)
	w, power := kernel.constant(b, "w"), exponent.constant(b, "b")
	x, r, a := b.Input("x", onnx.Float, 1, 2, 5, 4), b.Input("r", onnx.Float, 1, 2, 5, 4), b.Input("a", onnx.Float, 1)
	of := func(y, dy onnx.Value, by ...onnx.Value) []onnx.Value {
		dx, err := grad.Of(b, y, dy, by...)
		if err != nil {
			t.Fatal(err)
		}
		return dx
	}
	addOutputWithShape(b, "twice", of(of(b.Conv(x, w, "", nil), "", x, w)[0], r, w)[0])
	addOutputWithShape(b, "once", of(b.Conv(r, w, "", nil), "", w)[0])
	addOutputWithShape(b, "power", of(of(b.Pow(a, power), "", a, power)[0], "", power)[0])
	out := compile(t, build(t, b)).run(t, map[string]operand{"x": g.smooth(1, 2, 5, 4), "r": g.smooth(1, 2, 5, 4), "a": {shape: []int{1}, floats: []float32{3}}})
	if d := maxDifference(out[0].Data, out[1].Data); !(d <= 1e-5*maxAbs(out[1].Data)) || maxAbs(out[1].Data) == 0 {
		t.Errorf("the derivative of the gradient by x with respect to the weights is %v, want %v", out[0], out[1])
	}
	if got, want := float64(out[2].Data[0]), 3*(1+2*math.Log(3)); math.Abs(got-want) > 1e-4 {
		t.Errorf("the derivative of b a^(b-1) by b is %g, want %g", got, want)
	}
}

// The second derivative of sum(tanh(x)^2), by differentiating twice.
func TestSecondDerivative(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, 4)
	y := b.ReduceSum(b.Pow(b.Tanh(x), b.Scalar(2)), false)
	first, err := grad.Of(b, y, "", x)
	if err != nil {
		t.Fatal(err)
	}
	second, err := grad.Of(b, first[0], "", x)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("second", second[0])
	points := []float32{-1, 0, 0.5, 2}
	got := compile(t, build(t, b)).runPlain(t, map[string]operand{"x": {shape: []int{4}, floats: points}})[0]
	for i, p := range points {
		tanh := math.Tanh(float64(p))
		slope := 1 - tanh*tanh
		if want := 2*slope*slope - 4*tanh*tanh*slope; math.Abs(float64(got[i])-want) > 1e-5 {
			t.Errorf("at %g the second derivative is %g, want %g", p, got[i], want)
		}
	}
}

// TestPullback multiplies cotangents of x^2 and e^x by the Jacobians. An empty cotangent stands for
// ones, and the cotangents of a tensor that is given twice add up. b.Full(3, 2) is the
// vector (3, 3).
func TestPullback(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, 2)
	a, c := b.Mul(x, x), b.Exp(x)
	dx, err := grad.Pullback(b, []onnx.Value{a, c, a}, []onnx.Value{"", b.Full(3, 2), b.Full(1, 2)}, x, a)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("dx", dx[0])
	b.Output("da", dx[1])
	got := compile(t, build(t, b)).runPlain(t, map[string]operand{"x": {shape: []int{2}, floats: []float32{0, 2}}})
	if want := []float32{3, 8 + 3*float32(math.Exp(2))}; math.Abs(float64(got[0][0]-want[0])) > 1e-6 || math.Abs(float64(got[0][1]-want[1])) > 1e-5 {
		t.Errorf("dx is %v, want %v", got[0], want)
	}
	if want := []float32{2, 2}; !slices.Equal(got[1], want) {
		t.Errorf("da is %v, want %v", got[1], want)
	}
	if _, err := grad.Pullback(b, []onnx.Value{a}, nil, x); err == nil {
		t.Error("a tensor without a cotangent is no error")
	}
}

// Differentiating the same tensor again adds no nodes.
func TestEqualNodesAreShared(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3)
	y := b.Sigmoid(b.Mul(x, x))
	count := func() int { return len(b.Nodes()) }
	if _, err := grad.Of(b, y, "", x); err != nil {
		t.Fatal(err)
	}
	once := count()
	if _, err := grad.Of(b, y, "", x); err != nil {
		t.Fatal(err)
	}
	if count() != once {
		t.Errorf("%d nodes after differentiating again, %d before", count(), once)
	}
}

// withOutputs returns m with the named tensors as its only outputs.
func withOutputs(t *testing.T, m *onnx.Model, names ...string) *onnx.Model {
	t.Helper()
	cut, err := rewrite.WithOutputs(m, names)
	if err != nil {
		t.Fatal(err)
	}
	return cut
}
