package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/enginetest"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// addInput adds the input x, images of 3 channels and one pixel, and returns it as a matrix of 3
// columns.
func addInput(b *onnx.Builder) onnx.Value {
	return b.Reshape(b.Input("x", onnx.Float, -1, 3, 1, 1), -1, 3)
}

// logProbs returns the log-probabilities of the classes (nil: all) for one image, the three values
// x, of a network that returns them as logits.
func logProbs(t *testing.T, o model.Options, classes []int, x ...float32) ([]float32, error) {
	t.Helper()
	net := &enginetest.Network{Input: []int{3, 1, 1}, Layer: []tensor.Layer{{Name: "y", Shape: []int{3}, Axes: "NC"}},
		Compute: func(x []float32, out [][]float32) { copy(out[0], x) }}
	m, err := model.Open(t.Context(), net, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession(nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	buf, err := s.NewBuffers(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context(), []tensor.Tensor{{Shape: []int{3, 1, 1}, Data: x}}, buf); err != nil {
		t.Fatal(err)
	}
	p, err := buf.LogProbs(classes)
	return p.Data, err
}

// TestScores checks what is inferred from a graph with one or two outputs: whether one of them has
// class scores, of which kind (kind; "none": no output has), and the number of classes. An output
// of four columns may hold boxes. b.Full(1, 3, n) is a 3 x n matrix of ones.
func TestScores(t *testing.T) {
	t.Parallel()
	unitLength := func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Div(x, b.Clip(b.Sqrt(b.ReduceSum(b.Pow(x, b.Scalar(2)), true, 1)), b.Scalar(1e-9), ""))
	}
	// declare adds an output whose type and shape are declared in the graph.
	declare := func(b *onnx.Builder, name string, v onnx.Value) { infer.OutputLike(b, name, v, v) }
	for name, c := range map[string]struct {
		make    func(b *onnx.Builder)
		options model.Options
		kind    string
		classes int
	}{
		"logits":               {make: func(b *onnx.Builder) { b.Output("y", b.Mul(addInput(b), b.Scalar(2))) }, kind: "logits", classes: 3},
		"temperature":          {make: func(b *onnx.Builder) { b.Output("y", b.Div(addInput(b), b.Scalar(2))) }, kind: "logits", classes: 3},
		"softmax":              {make: func(b *onnx.Builder) { b.Output("y", b.Softmax(addInput(b), -1)) }, kind: "probabilities", classes: 3},
		"softmax then reshape": {make: func(b *onnx.Builder) { b.Output("y", b.Reshape(b.Softmax(addInput(b), -1), -1, 3)) }, kind: "probabilities", classes: 3},
		"log-softmax":          {make: func(b *onnx.Builder) { b.Output("y", b.LogSoftmax(addInput(b), -1)) }, kind: "logits", classes: 3},
		"sigmoid":              {make: func(b *onnx.Builder) { b.Output("y", b.Sigmoid(addInput(b))) }, kind: "probabilities", classes: 3},
		"unit length":          {make: func(b *onnx.Builder) { b.Output("y", unitLength(b, addInput(b))) }, kind: "none"},
		"embedding":            {make: func(b *onnx.Builder) { b.Output("image_embeds", b.Relu(addInput(b))) }, kind: "none"},
		"set to logits":        {make: func(b *onnx.Builder) { b.Output("image_embeds", b.Relu(addInput(b))) }, options: model.Options{Scores: "logits"}, kind: "logits", classes: 3},
		"set to none":          {make: func(b *onnx.Builder) { b.Output("y", b.Relu(addInput(b))) }, options: model.Options{Scores: "none"}, kind: "none"},
		"one column":           {make: func(b *onnx.Builder) { b.Output("y", b.ReduceSum(addInput(b), true, 1)) }, kind: "none"},
		"class maps":           {make: func(b *onnx.Builder) { b.Output("y", b.Reshape(addInput(b), -1, 3, 1, 1)) }, kind: "logits", classes: 3},
		"integers":             {make: func(b *onnx.Builder) { b.Output("y", b.Cast(addInput(b), onnx.Int64)) }, kind: "none"},
		"two outputs of classes": {make: func(b *onnx.Builder) {
			x := addInput(b)
			declare(b, "y", b.Relu(x))
			declare(b, "z", b.MatMul(x, b.Full(1, 3, 5)))
		}, kind: "logits", classes: 3},
		"output and its input": {make: func(b *onnx.Builder) {
			x := b.Relu(addInput(b))
			declare(b, "pooled", x)
			declare(b, "y", b.MatMul(x, b.Full(1, 3, 5)))
		}, kind: "logits", classes: 5},
		"logits and probabilities": {make: func(b *onnx.Builder) {
			x := b.Mul(addInput(b), b.Scalar(2))
			declare(b, "y", x)
			declare(b, "p", b.Softmax(x, -1))
		}, kind: "logits", classes: 3},
		"boxes and classes": {make: func(b *onnx.Builder) {
			x := addInput(b)
			declare(b, "boxes", b.Sigmoid(b.MatMul(x, b.Full(1, 3, 4))))
			declare(b, "y", b.MatMul(x, b.Full(1, 3, 5)))
		}, kind: "logits", classes: 5},
		"4 columns and 5 columns": {make: func(b *onnx.Builder) {
			x := addInput(b)
			declare(b, "y", b.MatMul(x, b.Full(1, 3, 4)))
			declare(b, "z", b.MatMul(x, b.Full(1, 3, 5)))
		}, kind: "logits", classes: 5},
		"named class_scores": {make: func(b *onnx.Builder) {
			x := addInput(b)
			declare(b, "y", b.MatMul(x, b.Full(1, 3, 7)))
			declare(b, "class_scores", b.MatMul(x, b.Full(1, 3, 4)))
		}, kind: "logits", classes: 4},
		"boxes alone": {make: func(b *onnx.Builder) { b.Output("bbox", b.MatMul(addInput(b), b.Full(1, 3, 4))) }, kind: "none"},
	} {
		m, err := modeltest.Open(t, save(t, c.make), c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Scores() != c.kind || m.Classes() != c.classes {
			t.Errorf("%s: %d classes scored by %s, want %d by %s", name, m.Classes(), m.Scores(), c.classes, c.kind)
		}
	}
}

// TestLogProbs checks log-probabilities of all classes of an output that is the three values x, and
// of a subset of classes, whose probabilities are divided by their sum.
func TestLogProbs(t *testing.T) {
	t.Parallel()
	asProbabilities := model.Options{Scores: "probabilities"}
	log := math.Log
	for name, c := range map[string]struct {
		options model.Options
		classes []int
		x       []float32
		want    []float64
	}{
		"logits":        {x: []float32{0, float32(log(2)), float32(log(5))}, want: []float64{-log(8), log(2. / 8), log(5. / 8)}},
		"large logits":  {x: []float32{1e4, 1e4, -1e4}, want: []float64{-log(2), -log(2), -2e4 - log(2)}},
		"subset":        {classes: []int{2, 0}, x: []float32{0, 50, float32(log(3))}, want: []float64{log(.75), log(.25)}},
		"probabilities": {options: asProbabilities, x: []float32{.5, .25, .25}, want: []float64{log(.5), log(.25), log(.25)}},
		"likely subset": {options: asProbabilities, classes: []int{1, 2}, x: []float32{.5, .375, .125}, want: []float64{log(.75), log(.25)}},
		// Probabilities of 0 are raised to the smallest positive float32.
		"probability 0":   {options: asProbabilities, x: []float32{1, 0, 0}, want: []float64{0, log(math.SmallestNonzeroFloat32), log(math.SmallestNonzeroFloat32)}},
		"unlikely subset": {options: asProbabilities, classes: []int{1, 2}, x: []float32{1, 0, 0}, want: []float64{log(.5), log(.5)}},
	} {
		got, err := logProbs(t, c.options, c.classes, c.x...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.EqualFunc(got, c.want, func(g float32, w float64) bool { return math.Abs(float64(g)-w) <= 1e-6*max(1, math.Abs(w)) }) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	nan, err := logProbs(t, asProbabilities, nil, float32(math.NaN()), 0, 0)
	if err != nil || !math.IsNaN(float64(nan[0])) {
		t.Errorf("probabilities with NaN: log-probabilities %v, error %v; want NaN and no error", nan, err)
	}
	for name, c := range map[string]struct {
		classes []int
		x       []float32
		want    string
	}{
		"not a probability":  {nil, []float32{2, 0, 0}, "set scores to logits"},
		"class out of range": {[]int{0, 3}, []float32{1, 0, 0}, "class 3 is outside the model's 3 classes"},
		"no classes":         {[]int{}, []float32{1, 0, 0}, "the list of classes is empty"},
	} {
		if _, err := logProbs(t, asProbabilities, c.classes, c.x...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
