package model_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/onnx"
)

// TestProbedScores checks the content of outputs that their last operator does not tell.
func TestProbedScores(t *testing.T) {
	t.Parallel()
	logitsOf := func(b *onnx.Builder) onnx.Value { return b.Mul(addInput(b), b.Scalar(4)) }
	for name, c := range map[string]struct {
		make    func(b *onnx.Builder)
		options model.Options
		kind    string
		doubt   string
	}{
		"softmax that is quantised": {make: func(b *onnx.Builder) {
			p := b.Op("QuantizeLinear", nil, b.Softmax(logitsOf(b), -1), b.Scalar(1./256))
			b.Output("y", b.Op("DequantizeLinear", nil, p, b.Scalar(1./256)))
		}, kind: "probabilities"},
		"softmax that is clipped": {make: func(b *onnx.Builder) {
			b.Output("y", b.Clip(b.Softmax(logitsOf(b), -1), b.Scalar(1e-6), b.Scalar(1)))
		}, kind: "probabilities"},
		"softmax over the first axis of a transpose": {make: func(b *onnx.Builder) {
			b.Output("y", b.Transpose(b.Softmax(b.Transpose(logitsOf(b), 1, 0), 0), 1, 0))
		}, kind: "probabilities"},
		"mean of two softmaxes": {make: func(b *onnx.Builder) {
			z := logitsOf(b)
			b.Output("y", b.Mul(b.Add(b.Softmax(z, -1), b.Softmax(b.Mul(z, b.Scalar(2)), -1)), b.Scalar(0.5)))
		}, kind: "probabilities"},
		"exponentials divided by their sum": {make: func(b *onnx.Builder) {
			e := b.Exp(logitsOf(b))
			b.Output("y", b.Div(e, b.ReduceSum(e, true, 1)))
		}, kind: "probabilities"},
		"percentages": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.Softmax(logitsOf(b), -1), b.Scalar(100)))
		}, kind: "probabilities", doubt: "in another unit, by which they are divided"},
		"whole percentages": {make: func(b *onnx.Builder) {
			b.Output("y", b.Op("Round", nil, b.Mul(b.Softmax(logitsOf(b), -1), b.Scalar(100))))
		}, kind: "probabilities", doubt: "in another unit"},
		"the sum of an ensemble": {make: func(b *onnx.Builder) {
			z := logitsOf(b)
			b.Output("y", b.Add(b.Softmax(z, -1), b.Softmax(b.Mul(z, b.Scalar(2)), -1)))
		}, kind: "probabilities", doubt: "each sample's sum is 2"},
		"logarithms of a softmax": {make: func(b *onnx.Builder) {
			b.Output("y", b.Log(b.Softmax(logitsOf(b), -1)))
		}, kind: "logits"},
		"logits minus the logarithm of a sum": {make: func(b *onnx.Builder) {
			z := logitsOf(b)
			b.Output("y", b.Sub(z, b.Op("ReduceLogSumExp", nil, z, b.Ints(1))))
		}, kind: "logits"},
		"negative logarithms": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.LogSoftmax(logitsOf(b), -1), b.Scalar(-1)))
		}, kind: "none"},
		"logarithms to base 2": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.LogSoftmax(logitsOf(b), -1), b.Scalar(1.442695)))
		}, kind: "logits", doubt: "nothing says that the 3 values"},
		"the largest probabilities": {make: func(b *onnx.Builder) {
			top := b.Ops("TopK", 2, onnx.Attrs{"axis": 1}, b.Softmax(logitsOf(b), -1), b.Ints(3))
			b.Output("y", top[0])
			b.Output("i", top[1])
		}, kind: "none"},
		"the likeliest class": {make: func(b *onnx.Builder) {
			b.Output("y", b.Op("ArgMax", onnx.Attrs{"axis": 1, "keepdims": 0}, logitsOf(b)))
		}, kind: "none"},
		"bytes": {make: func(b *onnx.Builder) {
			b.Output("y", b.Op("QuantizeLinear", nil, b.Softmax(logitsOf(b), -1), b.Scalar(1./256)))
		}, kind: "none"},
		"channels last": {make: func(b *onnx.Builder) {
			b.Output("y", b.Reshape(b.Softmax(logitsOf(b), -1), -1, 1, 1, 3))
		}, kind: "probabilities"},
		"two heads": {make: func(b *onnx.Builder) {
			z := logitsOf(b)
			b.Output("colour", b.Softmax(z, -1))
			b.Output("type", b.Softmax(b.Concat(1, z, z), -1))
		}, kind: "probabilities", doubt: `"type" may be so too: set output`},
		"percentages, stated": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.Softmax(logitsOf(b), -1), b.Scalar(100)))
		}, options: model.Options{Scores: "logits"}, kind: "logits"},
		"several sigmoids": {make: func(b *onnx.Builder) { b.Output("y", b.Sigmoid(logitsOf(b))) }, kind: "probabilities", doubt: "nothing else says that they score classes"},
		"means of sigmoids": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.Sigmoid(logitsOf(b)), b.Scalar(0.5)))
		}, kind: "logits", doubt: "may be probabilities"},
		"logits": {make: func(b *onnx.Builder) { b.Output("y", b.Sub(logitsOf(b), b.Scalar(1))) }, kind: "logits", doubt: "nothing says that the 3 values"},
	} {
		m, err := modeltest.Open(t, save(t, c.make), c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doubts := strings.Join(m.Doubts(0), "; ")
		if m.Scores() != c.kind || m.ScoresBasis() == "" || (doubts != "") != (c.doubt != "") || !strings.Contains(doubts, c.doubt) {
			t.Errorf("%s: %s (%s), doubts %q; want %s, %q", name, m.Scores(), m.ScoresBasis(), doubts, c.kind, c.doubt)
		}
	}
}

// TestMixedBatch checks that samples which influence each other are found, with the node.
func TestMixedBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make func(b *onnx.Builder)
		want string // "": samples are independent
	}{
		"independent": {make: func(b *onnx.Builder) { b.Output("y", b.Sub(addInput(b), b.Scalar(1))) }},
		"normalised over the batch": {make: func(b *onnx.Builder) {
			x := addInput(b)
			d := b.Sub(x, b.ReduceMean(x, true, 0))
			b.Output("y", b.Relu(d))
		}, want: "node Sub"},
		"batch normalisation in training mode": {make: func(b *onnx.Builder) {
			x, one, zero := addInput(b), b.Full(1, 3), b.Full(0, 3)
			b.Output("logits", b.Ops("BatchNormalization", 3, onnx.Attrs{"training_mode": 1}, x, one, zero, zero, one)[0])
		}, want: "node BatchNormalization"},
		"a scale of all samples, as of dynamic quantisation": {make: func(b *onnx.Builder) {
			q := b.Ops("DynamicQuantizeLinear", 3, nil, b.Mul(addInput(b), b.Scalar(4)))
			b.Output("logits", b.Op("DequantizeLinear", nil, q...))
		}, want: "node DequantizeLinear"},
		"an embedding minus the largest of the batch": {make: func(b *onnx.Builder) {
			x := addInput(b)
			b.Output("embedding", b.Sub(x, b.ReduceMax(x, true, 0)))
		}, want: "node Sub"},
		"the first sample of the batch": {make: func(b *onnx.Builder) {
			x := addInput(b)
			b.Output("logits", b.Sub(x, b.Slice(x, 0, 0, 1, 1)))
		}, want: "node Sub"},
		"sums over the samples so far": {make: func(b *onnx.Builder) {
			b.Output("logits", b.Op("CumSum", nil, addInput(b), b.Int(0)))
		}, want: "node CumSum"},
		"the place in the batch": {make: func(b *onnx.Builder) {
			x := addInput(b)
			places := b.Op("CumSum", nil, b.Cast(b.Op("Greater", nil, x, b.Scalar(-1)), onnx.Float), b.Int(0))
			b.Output("logits", b.Add(x, places))
		}, want: "its place among the samples of its batch"},
		"the size of the batch": {make: func(b *onnx.Builder) {
			x := addInput(b)
			b.Output("logits", b.Div(x, b.Cast(b.Slice(b.Op("Shape", nil, x), 0, 0, 1, 1), onnx.Float)))
		}, want: "the number of samples of its batch"},
	} {
		m, err := modeltest.Open(t, save(t, c.make), model.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doubts := strings.Join(m.Doubts(0), "; ")
		if mixed := strings.Contains(doubts, "a sample's values depend on"); mixed != (c.want != "") || !strings.Contains(doubts, c.want) {
			t.Errorf("%s: doubts %q, want %q", name, doubts, c.want)
		}
	}
}
