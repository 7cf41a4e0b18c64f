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
		}, kind: "logits", doubt: "set scores: logits or scores: probabilities"},
		"percentages, stated": {make: func(b *onnx.Builder) {
			b.Output("y", b.Mul(b.Softmax(logitsOf(b), -1), b.Scalar(100)))
		}, options: model.Options{Scores: "logits"}, kind: "logits"},
		"several sigmoids": {make: func(b *onnx.Builder) { b.Output("y", b.Sigmoid(logitsOf(b))) }, kind: "probabilities"},
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
	} {
		m, err := modeltest.Open(t, save(t, c.make), model.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doubts := strings.Join(m.Doubts(0), "; ")
		if mixed := strings.Contains(doubts, "the other samples of its batch"); mixed != (c.want != "") || !strings.Contains(doubts, c.want) {
			t.Errorf("%s: doubts %q, want %q", name, doubts, c.want)
		}
	}
}
