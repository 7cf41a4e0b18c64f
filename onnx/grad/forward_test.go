//go:build cgo

package grad_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/tensor"
)

// jvpSession returns a session that computes the Jacobian-vector products J t of the outputs that
// the loss of the case reads. The case is a random node with operands: its inputs with their
// values. The tangents t are the inputs t0, t1 and so on. With reverseTwice it computes them by two
// reverse passes: J t is the gradient of <J^T u, t> by u. The inputs u0, u1 and so on may have any
// values. The form is how the case becomes a graph: its operator set, which operands are constants,
// and which sizes are declared. y gives the shapes of the outputs.
func (tc testCase) jvpSession(t testing.TB, op string, f form, y []tensor.Tensor, reverseTwice bool) (*session, error) {
	t.Helper()
	b := onnx.NewBuilder(f.opset)
	in, out := tc.node(b, op, f)
	var x, tangents, outputs, d []onnx.Value
	for i, o := range tc.operands {
		if o.differentiable() {
			shape := slices.Clone(o.shape)
			for axis := range shape {
				if f.free(i, axis) {
					shape[axis] = -1
				}
			}
			x = append(x, in[i])
			tangents = append(tangents, b.Input(fmt.Sprintf("t%d", i), onnx.Float, shape...))
		}
	}
	for _, i := range tc.lossOutputs() {
		outputs = append(outputs, out[i])
	}
	var err error
	if !reverseTwice {
		d, err = grad.JVP(b, outputs, x, tangents)
	} else {
		var u, g []onnx.Value
		for k := range outputs {
			u = append(u, b.Input(fmt.Sprintf("u%d", k), onnx.Float, y[k].Shape...))
		}
		if g, err = grad.Pullback(b, outputs, u, x...); err == nil {
			d, err = grad.Pullback(b, g, tangents, u...)
		}
	}
	if err != nil {
		return nil, err
	}
	for k, v := range d {
		addOutputWithShape(b, fmt.Sprintf("jvp%d", k), v)
	}
	return compileWith(t, build(t, b), ort.Options{Threads: 1, Verbatim: reverseTwice}), nil
}

// checkJVP compares Jacobian-vector products along a random direction of all operands with finite
// differences, with two reverse passes, and with those of a random other form of the graph.
func (tc testCase) checkJVP(t *testing.T, op string, opset int, r *rand.Rand) {
	t.Helper()
	run := tc.forward(t, op, opset)
	clean := run.run(t, tc.feed()) // the outputs for the operands as drawn, not shifted
	feed := tc.feed()
	along := map[int][]float64{} // the direction, by operand
	for i, o := range tc.operands {
		if o.differentiable() {
			along[i] = direction(len(o.floats), r)
			feed[fmt.Sprintf("t%d", i)] = operand{shape: o.shape, floats: float32sOf(along[i]), noGradient: true}
		}
	}
	if len(along) == 0 {
		return
	}
	plain, err := tc.jvpSession(t, op, tc.plainForm(opset), clean, false)
	if err != nil {
		t.Fatalf("%v: %v", tc, err)
	}
	got := plain.run(t, feed)
	for k, y := range clean {
		// Of any values.
		feed[fmt.Sprintf("u%d", k)] = operand{shape: y.Shape, floats: y.Data, noGradient: true}
	}
	// By output and element. The shift h of the operands is step, 1/32, or half of that.
	centralDifferences := func(h float64) [][]float64 {
		up, down := tc.shiftedOutputs(t, run, along, h), tc.shiftedOutputs(t, run, along, -h)
		list := make([][]float64, len(up))
		for k := range up {
			for e := range up[k].Data {
				list[k] = append(list[k], (float64(up[k].Data[e])-float64(down[k].Data[e]))/(2*h))
			}
		}
		return list
	}
	wide, narrow := centralDifferences(step), centralDifferences(step/2)
	for k, d := range got {
		if !slices.Equal(d.Shape, clean[k].Shape) {
			t.Fatalf("the derivative of output %d has shape %v, and the output %v: %v", k, d.Shape, clean[k].Shape, tc)
		}
		var errors, size, spread float64 // sums of squares
		for e, v := range d.Data {
			numeric := (4*narrow[k][e] - wide[k][e]) / 3 // Richardson extrapolation
			errors += (numeric - float64(v)) * (numeric - float64(v))
			spread += (wide[k][e] - narrow[k][e]) * (wide[k][e] - narrow[k][e])
			size += numeric * numeric
		}
		rounding := 20 * math.Sqrt(dot(clean[k].Data, clean[k].Data)) * 0x1p-23 / step
		// Where the differences of the two steps differ, higher derivatives are large, and the
		// extrapolation has an error of its own.
		if bound := 1e-3*math.Sqrt(size) + 0.02*math.Sqrt(spread) + rounding; !(math.Sqrt(errors) <= bound) {
			t.Errorf("output %d: the derivative differs from finite differences by %g of %g (bound %g): %v", k, math.Sqrt(errors), math.Sqrt(size), bound, tc)
		}
	}
	tc.checkSameJVP(t, op, "by two reverse passes", tc.plainForm(opset), true, feed, got)
	f := tc.randomForm(opset, r)
	for i := range along {
		f.constants[i] = tc.operands[i].alwaysConstant
	}
	tc.checkSameJVP(t, op, "in another form", f, false, feed, got)
}

// checkSameJVP compares Jacobian-vector products that are computed in another way (how) with want.
func (tc testCase) checkSameJVP(t *testing.T, op, how string, f form, reverseTwice bool, feed map[string]operand, want []tensor.Tensor) {
	t.Helper()
	other, err := tc.jvpSession(t, op, f, want, reverseTwice)
	if err != nil && op == "TopK" && f.opset < 11 && strings.Contains(err.Error(), "before opset 11") {
		return // the rule of TopK needs the size of its axis, which this form does not declare
	}
	if err != nil {
		t.Fatalf("%s: %v: %v", how, err, tc)
	}
	for k, d := range other.run(t, feed) {
		if !slices.Equal(d.Shape, want[k].Shape) {
			t.Fatalf("%s the derivative of output %d has shape %v, want %v", how, k, d.Shape, want[k].Shape)
		}
		if e, size := maxDifference(d.Data, want[k].Data), maxAbs(want[k].Data); !(e <= 2e-5*size+1e-6) {
			t.Errorf("%s the derivative of output %d differs by %g of %g: %v", how, k, e, size, tc)
		}
	}
}

// shiftedOutputs returns the outputs after h times a direction is added to the operands.
func (tc testCase) shiftedOutputs(t *testing.T, run *session, along map[int][]float64, h float64) []tensor.Tensor {
	t.Helper()
	feed := tc.feed()
	for i, v := range along {
		o := tc.operands[i]
		o.floats = slices.Clone(o.floats)
		for e := range v {
			o.floats[e] = float32(float64(o.floats[e]) + h*v[e])
		}
		feed[fmt.Sprintf("x%d", i)] = o
	}
	return run.run(t, feed)
}

func float32sOf(v []float64) []float32 {
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(v[i])
	}
	return out
}

// TestJVPOfOperators checks the Jacobian-vector products of every operator by checkJVP. draw makes
// a random case.
func TestJVPOfOperators(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.op, func(t *testing.T) {
			t.Parallel()
			for _, opset := range c.opsets {
				for i := range trials() {
					t.Run(fmt.Sprintf("opset%d/%d", opset, i), func(t *testing.T) {
						g := &generator{Rand: seed.Rand(11, c.op, opset, i), opset: opset, trial: i}
						c.draw(g).checkJVP(t, c.op, opset, g.Rand)
					})
				}
			}
		})
	}
}

// TestJVPOfNetworks checks that <r, J v> = <J^T r, v> for the Jacobian J of a network, a random v,
// a stored r (r.npy), and J^T r as computed by PyTorch in float64 (dx.npy).
func TestJVPOfNetworks(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(testdata.Path(t, "nets"), "*", "model.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no networks", err)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			m, err := onnx.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			g, err := grad.AddJVP(m, grad.Options{Of: "y", By: []string{"x"}})
			if err != nil {
				t.Fatal(err)
			}
			feed := map[string]operand{}
			x, shape := readNpy(t, filepath.Join(dir, "x.npy"))
			v := make([]float32, len(x))
			random := seed.Rand(15, filepath.Base(dir))
			for i := range v {
				v[i] = float32(random.NormFloat64())
			}
			feed["x"] = operand{shape: shape, floats: x}
			feed[grad.TangentName("x")] = operand{shape: shape, floats: v}
			out := compileWith(t, g, ort.Options{}).runPlain(t, feed)
			y, _ := readNpy(t, filepath.Join(dir, "y.npy"))
			if e := relativeError(out[0], y); !(e < 1e-4) {
				t.Errorf("y is off by %g", e)
			}
			r, _ := readNpy(t, filepath.Join(dir, "r.npy"))
			dx, _ := readNpy(t, filepath.Join(dir, "dx.npy"))
			forward, reverse := dot(r, out[1]), dot(dx, v)
			scale := math.Sqrt(dot(dx, dx)) * math.Sqrt(dot(v, v)) / math.Sqrt(float64(len(v)))
			if e := math.Abs(forward - reverse); !(e <= 1e-3*scale) {
				t.Errorf("<r, J v> = %g, <J^T r, v> = %g: they differ by %g of %g", forward, reverse, e, scale)
			}
			t.Logf("%d nodes, %d of them added; difference %.2g", len(g.Nodes()), len(g.Nodes())-len(m.Nodes()), math.Abs(forward-reverse)/scale)
		})
	}
}

// TestPushforward checks that the functions that Pushforward takes set or change the tangent of any
// tensor: here that of the input is set to 1, and that of a layer is doubled.
func TestPushforward(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, 2)
	hidden := b.Mul(x, x)
	y := b.Add(b.Exp(hidden), x)
	var calls int
	d, err := grad.Pushforward(b, []onnx.Value{y, hidden}, map[onnx.Value]grad.Tangent{
		x: func(b *onnx.Builder, arriving onnx.Value) onnx.Value {
			if arriving != "" {
				t.Errorf("tangent %q arrives at the input", arriving)
			}
			return b.Full(1, 2)
		},
		hidden: func(b *onnx.Builder, arriving onnx.Value) onnx.Value {
			calls++
			return b.Mul(arriving, b.Scalar(2))
		},
	})
	if err != nil || calls != 1 {
		t.Fatalf("error %v and %d calls of the function of the layer, want none and 1", err, calls)
	}
	b.Output("dy", d[0])
	b.Output("dh", d[1])
	got := compile(t, build(t, b)).runPlain(t, map[string]operand{"x": {shape: []int{2}, floats: []float32{0.5, -1}}})
	for i, x := range []float64{0.5, -1} {
		wantHidden := 4 * x
		want := math.Exp(x*x)*wantHidden + 1
		if math.Abs(float64(got[0][i])-want) > 1e-5 || math.Abs(float64(got[1][i])-wantHidden) > 1e-6 {
			t.Errorf("at %g: %g and %g, want %g and %g", x, got[0][i], got[1][i], want, wantHidden)
		}
	}
}

// TestJVPByIntermediateTensor checks that a direction of an intermediate tensor is added to the
// tangent that the input's direction has there, if the input has one.
func TestJVPByIntermediateTensor(t *testing.T) {
	t.Parallel()
	for _, withInput := range []bool{false, true} {
		b := onnx.NewBuilder(17)
		x := b.Input("x", onnx.Float, 3)
		hidden := b.Exp(x)
		y := b.Mul(b.Tanh(hidden), x)
		by, along := []onnx.Value{hidden}, []onnx.Value{b.Full(2, 3)}
		if withInput {
			by, along = append(by, x), append(along, b.Full(1, 3))
		}
		d, err := grad.JVP(b, []onnx.Value{y, hidden}, by, along)
		if err != nil {
			t.Fatal(err)
		}
		b.Output("dy", d[0])
		b.Output("dh", d[1])
		values := []float32{0.5, -1, 0.2}
		got := compile(t, build(t, b)).runPlain(t, map[string]operand{"x": {shape: []int{3}, floats: values}})
		for i, v := range values {
			x := float64(v)
			dx, dh := 0.0, 2.0
			if withInput {
				dx, dh = 1, 2+math.Exp(x)
			}
			tanh := math.Tanh(math.Exp(x))
			if dy := (1-tanh*tanh)*dh*x + tanh*dx; math.Abs(float64(got[0][i])-dy) > 1e-5 || math.Abs(float64(got[1][i])-dh) > 1e-5 {
				t.Errorf("with the input %v, at %g: %g and %g, want %g and %g", withInput, x, got[0][i], got[1][i], dy, dh)
			}
		}
	}
}

// TestJVPOfIndependentTensor checks that the derivative of a tensor that does not depend on the
// input is zero, and that no nodes are added but those that a derivative needs.
func TestJVPOfIndependentTensor(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x, z := b.Input("x", onnx.Float, 2, 3), b.Input("z", onnx.Float, 4)
	y := b.Sigmoid(z)
	b.Output("y", y)
	d, err := grad.JVP(b, []onnx.Value{y}, []onnx.Value{x}, []onnx.Value{x})
	if err != nil {
		t.Fatal(err)
	}
	b.Output("dy", d[0])
	m := build(t, b)
	got := compile(t, m).runPlain(t, map[string]operand{"x": {shape: []int{2, 3}, floats: make([]float32, 6)}, "z": {shape: []int{4}, floats: []float32{1, 2, 3, 4}}})
	if !slices.Equal(got[1], make([]float32, 4)) {
		t.Errorf("derivative %v, want zeros", got[1])
	}
	b = onnx.NewBuilder(17)
	x = b.Input("x", onnx.Float, 1, 2, 4, 4)
	b.Output("y", b.Relu(b.Conv(x, b.Const("w", tensor.New(3, 2, 3, 3)), "", nil)))
	g, err := grad.AddJVP(build(t, b), grad.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var operators []string
	for _, n := range g.Nodes()[2:] { // after Conv and Relu
		operators = append(operators, n.GetOpType())
	}
	if got, want := strings.Join(operators, " "), "Greater Cast Conv Mul Identity"; got != want && got != strings.TrimSuffix(want, " Identity") {
		t.Errorf("the nodes %s are added, want %s, with or without the Identity", got, want)
	}
}

// modelWithoutRule has the inputs pixels and ids (int64), and the outputs logits, argmax (int64)
// and determinant, that of the operator Det, which has no derivative rule.
func TestJVPErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options grad.Options
		want    []string
	}{
		{"no such output", grad.Options{Of: "logit", By: []string{"pixels"}}, []string{`of "logit"`, "no such tensor", `"logits"`}},
		{"no such input", grad.Options{Of: "logits", By: []string{"pixel"}}, []string{`by "pixel"`, "no such tensor", `"pixels"`}},
		{"integer input", grad.Options{Of: "logits", By: []string{"ids"}}, []string{`"ids"`, "int64"}},
		{"integer output", grad.Options{Of: "argmax", By: []string{"pixels"}}, []string{`"argmax"`, "int64"}},
		{"no rule", grad.Options{Of: "determinant", By: []string{"pixels"}}, []string{`node "Det" (Det)`, "no rule"}},
		{"twice", grad.Options{Of: "logits", By: []string{"pixels", "pixels"}}, []string{`"pixels"`, "twice"}},
	} {
		_, err := grad.AddJVP(modelWithoutRule(t), c.options)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
	}
	b := onnx.NewBuilder(17)
	x, v := b.Input("x", onnx.Float, 2), b.Input("v", onnx.Float, 3)
	y := b.Exp(x)
	if _, err := grad.JVP(b, []onnx.Value{y}, []onnx.Value{x}, []onnx.Value{v}); err == nil || !strings.Contains(err.Error(), `tangent "v" has shape [3]`) {
		t.Errorf("a tangent of another shape: error %v, want one about its shape", err)
	}
	if _, err := grad.JVP(b, []onnx.Value{y}, []onnx.Value{x, x}, []onnx.Value{x, x}); err == nil || !strings.Contains(err.Error(), "two tangents") {
		t.Errorf("two tangents of one tensor: error %v, want one about both", err)
	}
	if _, err := grad.JVP(b, []onnx.Value{y}, []onnx.Value{x}, nil); err == nil {
		t.Error("a missing tangent is not reported")
	}
}
