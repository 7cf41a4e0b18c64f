//go:build cgo

package grad_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// modelWithoutRule returns a small model with integer tensors and an operator without a gradient
// rule, Det.
func modelWithoutRule(t testing.TB) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(18)
	x := b.Input("pixels", onnx.Float, -1, 3)
	ids := b.Input("ids", onnx.Int64, -1)
	b.Output("hidden", b.Relu(b.MatMul(x, b.Const("weights", tensor.New(3, 4)))))
	b.Output("logits", b.Exp("hidden"))
	b.Output("determinant", b.Op("Det", nil, b.Unsqueeze("logits", 0)))
	b.Output("next_ids", b.Add(ids, b.Ints(1)))
	b.Output("argmax", b.Op("ArgMax", nil, "logits"))
	return build(t, b)
}

// In grad.Options, Of is the result, Cotangent the tensor that weights its elements, and By the
// tensors to differentiate with respect to.
func TestErrorMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    grad.Options
		want []string
	}{
		{"no such result", grad.Options{Of: "logit", Cotangent: "r", By: []string{"pixels"}}, []string{`of "logit"`, "no such tensor", `"logits"`}},
		{"no such input", grad.Options{Of: "logits", Cotangent: "r", By: []string{"pixel"}}, []string{`by "pixel"`, "no such tensor", `"pixels"`}},
		{"integer result", grad.Options{Of: "next_ids", Cotangent: "r", By: []string{"pixels"}}, []string{`"next_ids"`, "int64", "floating-point"}},
		{"integer result of an operator", grad.Options{Of: "argmax", By: []string{"pixels"}}, []string{`"argmax"`, "int64"}},
		{"integer input", grad.Options{Of: "logits", Cotangent: "r", By: []string{"ids"}}, []string{`"ids"`, "int64"}},
		{"no rule", grad.Options{Of: "determinant", By: []string{"pixels"}}, []string{`node "Det" (Det)`, "no rule"}},
		{"the same input twice", grad.Options{Of: "logits", By: []string{"pixels", "pixels"}}, []string{`"pixels"`, "twice"}},
		{"no result named", grad.Options{By: []string{"pixels"}}, []string{"5 outputs (hidden, logits, determinant, next_ids, argmax)", "set the one to"}},
		{"no input named", grad.Options{Of: "logits"}, []string{"2 inputs (pixels, ids)", "set the tensors to"}},
		{"integer cotangent", grad.Options{Of: "logits", Cotangent: "ids", By: []string{"pixels"}}, []string{`cotangent "ids"`, "int64"}},
		{"cotangent of another shape", grad.Options{Of: "logits", Cotangent: "pixels", By: []string{"weights"}}, []string{`cotangent "pixels"`, "[? 3]", `"logits"`, "[? 4]"}},
		{"name taken", grad.Options{Of: "logits", By: []string{"pixels"}, Names: map[string]string{"pixels": "logits"}}, []string{`"logits" exists already`}},
	} {
		_, err := grad.Add(modelWithoutRule(t), c.o)
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q has several lines", c.name, err)
		}
	}
}

// An operator without a rule is no error where no gradient flows through it.
func TestOperatorsBesideThePath(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"hidden", "logits"} {
		if _, err := grad.Add(modelWithoutRule(t), grad.Options{Of: of, By: []string{"pixels", "weights"}}); err != nil {
			t.Errorf("of %s: %v", of, err)
		}
	}
	if _, err := grad.Add(modelWithoutRule(t), grad.Options{Of: "determinant", By: []string{"determinant"}}); err != nil {
		t.Errorf("of a result by itself: %v", err)
	}
}

// A gradient that would have to flow through a sequence or an optional, which are no tensors, is an
// error, forwards too: it is not zero.
func TestSequences(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(b *onnx.Builder, x onnx.Value) onnx.Value{
		"SequenceInsert": func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("SequenceAt", nil, b.Op("SequenceInsert", nil, b.Op("SequenceEmpty", nil), x), b.Int(0))
		},
		"SequenceConstruct": func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("ConcatFromSequence", onnx.Attrs{"axis": 0}, b.Op("SequenceConstruct", nil, x, x))
		},
		"SplitToSequence": func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("SequenceAt", nil, b.Op("SplitToSequence", nil, x), b.Int(0))
		},
		"Optional": func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("OptionalGetElement", nil, b.Op("Optional", nil, x))
		},
	} {
		b := onnx.NewBuilder(18)
		b.Output("y", through(b, b.Input("x", onnx.Float, 2, 3)))
		m := build(t, b)
		if _, err := grad.Add(m, grad.Options{}); err == nil || !strings.Contains(err.Error(), "no rule") {
			t.Errorf("%s: error %v", name, err)
		}
		if _, err := grad.AddJVP(m, grad.Options{}); err == nil || !strings.Contains(err.Error(), "no rule") {
			t.Errorf("%s, forwards: error %v", name, err)
		}
	}
}

// A string tensor, and a tensor without a cotangent, are errors. The builder keeps its first error,
// here that of Add, and Of returns it.
func TestStringTensorsAndEarlierErrors(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(18)
	kind := int32(onnx.String)
	text := b.Initializer(&pb.TensorProto{DataType: &kind, Dims: []int64{1}, StringData: [][]byte{[]byte("a")}})
	x := b.Input("x", onnx.Float, 2)
	if _, err := grad.Of(b, x, "", text); err == nil || !strings.Contains(err.Error(), "string") {
		t.Errorf("with respect to a string tensor: error %v, want one with \"string\"", err)
	}
	if _, err := grad.Pullback(b, []onnx.Value{x}, nil, x); err == nil || !strings.Contains(err.Error(), "0 cotangents") {
		t.Errorf("without a cotangent: error %v, want one with \"0 cotangents\"", err)
	}
	b.Add(x, "nothing")
	if _, err := grad.Of(b, x, "", x); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("after Add of an unknown tensor: error %v, want one with its name", err)
	}
}

// The gradient with respect to a tensor that does not influence the result is zero, and has the
// shape that the tensor has when the graph runs, also if sizes are declared as -1 (free). Floor
// passes no gradient to x; with respect to its output, floored, the gradient is 1.
func TestNoInfluenceOfFreeShape(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(13)
	x, other := b.Input("x0", onnx.Float, -1, 2), b.Input("x1", onnx.Float, -1, 3, -1)
	floored := b.Op("Floor", nil, b.Mul(x, b.Scalar(3)))
	shape := b.Cast(b.Shape(x), onnx.Float)
	y := b.Add(b.ReduceSum(floored, false), b.ReduceSum(shape, false))
	dx, err := grad.Of(b, y, "", x, other, floored)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range dx {
		addOutputWithShape(b, []string{"a", "b", "c"}[i], g)
	}
	tc := testCase{operands: []operand{{shape: []int{2, 2}, floats: []float32{1, 2, 3, 4}}, {shape: []int{2, 3, 1}, floats: make([]float32, 6)}}}
	got := compile(t, build(t, b)).run(t, tc.feed())
	for i, want := range []tensor.Tensor{tensor.New(2, 2), tensor.New(2, 3, 1), {Shape: []int{2, 2}, Data: []float32{1, 1, 1, 1}}} {
		if !slices.Equal(got[i].Shape, want.Shape) || !slices.Equal(got[i].Data, want.Data) {
			t.Errorf("gradient %d is %v, want %v", i, got[i], want)
		}
	}
}

// For an empty batch the gradient with respect to the samples is empty, and that with respect to
// the weights zero.
func TestEmptyBatch(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(18)
	x := b.Input("x0", onnx.Float, -1, 3, 4, 4)
	w := b.Const("w", tensor.New(2, 3, 1, 1))
	h := b.Relu(b.Conv(x, w, "", nil))
	y := b.Softmax(b.MatMul(b.ReduceMean(h, false, 2, 3), b.Const("v", tensor.New(2, 5))), 1)
	dx, err := grad.Of(b, y, "", x, "v")
	if err != nil {
		t.Fatal(err)
	}
	addOutputWithShape(b, "dx", dx[0])
	addOutputWithShape(b, "dv", dx[1])
	got := compile(t, build(t, b)).run(t, map[string]operand{"x0": {shape: []int{0, 3, 4, 4}, floats: []float32{}}})
	if !slices.Equal(got[0].Shape, []int{0, 3, 4, 4}) || !slices.Equal(got[1].Shape, []int{2, 5}) || maxAbs(got[1].Data) != 0 {
		t.Errorf("the gradients are %v, want one of no samples and zeros", got)
	}
}

// Squeeze without axes removes all axes of size 1 when the graph runs, so its rank is unknown where
// an axis is free. InputLike declares the cotangent x1, of the type of y and of any shape.
func TestSqueezeOfFreeSizes(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(13)
	x := b.Input("x0", onnx.Float, -1, 1, 3, -1)
	y := b.Op("Squeeze", nil, x)
	if shape := infer.Analyze(b.Snapshot()).Shape(string(y)); shape != nil {
		t.Errorf("the inferred shape is %v, want none", shape)
	}
	dx, err := grad.Of(b, y, infer.InputLike(b, "x1", y), x)
	if err != nil {
		t.Fatal(err)
	}
	addOutputWithShape(b, "dx", dx[0])
	p := compile(t, build(t, b))
	for _, c := range []struct{ x, y []int }{{[]int{1, 1, 3, 1}, []int{3}}, {[]int{2, 1, 3, 2}, []int{2, 3, 2}}} {
		dy := operand{shape: c.y, floats: make([]float32, tensor.Size(c.y))}
		for i := range dy.floats {
			dy.floats[i] = float32(i)
		}
		got := p.run(t, map[string]operand{"x0": {shape: c.x, floats: make([]float32, tensor.Size(c.x))}, "x1": dy})
		if !slices.Equal(got[0].Shape, c.x) || !slices.Equal(got[0].Data, dy.floats) {
			t.Errorf("of a cotangent %v the gradient is %v", dy, got[0])
		}
	}
}
