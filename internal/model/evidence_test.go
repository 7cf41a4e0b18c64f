package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// dense adds a linear layer with n outputs and random weights, and a bias for each output.
func dense(b *onnx.Builder, x onnx.Value, inputs, n int, bias float32) onnx.Value {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	w := tensor.New(inputs, n)
	for i := range w.Data {
		w.Data[i] = float32(r.NormFloat64())
	}
	return b.Add(b.MatMul(x, b.Const("", w)), b.Full(bias, n))
}

// TestOutputsOfClasses checks which outputs are taken for the scores of classes, and that the
// reason is told. config is the content of config.json beside the model.
func TestOutputsOfClasses(t *testing.T) {
	t.Parallel()
	const rounded = 1. / 256
	head := func(n int) func(b *onnx.Builder) onnx.Value {
		return func(b *onnx.Builder) onnx.Value { return dense(b, addInput(b), 3, n, 0) }
	}
	after := func(n int, op func(b *onnx.Builder, z onnx.Value) onnx.Value) func(b *onnx.Builder) onnx.Value {
		return func(b *onnx.Builder) onnx.Value { return op(b, head(n)(b)) }
	}
	for name, c := range map[string]struct {
		make     func(b *onnx.Builder) onnx.Value
		output   string // its name; "": y
		metadata map[string]string
		config   string
		options  model.Options
		kind     string
		classes  int
		basis    string
		doubt    string // "": none
	}{
		"a sigmoid":           {make: after(1, (*onnx.Builder).Sigmoid), kind: "probabilities", classes: 2, basis: "the second of two classes"},
		"a sigmoid of rank 1": {make: after(1, func(b *onnx.Builder, z onnx.Value) onnx.Value { return b.Squeeze(b.Sigmoid(z), 1) }), kind: "probabilities", classes: 2},
		"a quantised sigmoid": {make: after(1, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			q := b.Op("QuantizeLinear", nil, b.Sigmoid(z), b.Scalar(rounded))
			return b.Op("DequantizeLinear", nil, q, b.Scalar(rounded))
		}), kind: "probabilities", classes: 2},
		"1,000 sigmoids":          {make: after(1000, (*onnx.Builder).Sigmoid), kind: "probabilities", classes: 1000, basis: "their number, 1000", doubt: "may not exclude each other"},
		"named sigmoids":          {make: after(5, (*onnx.Builder).Sigmoid), output: "probs", kind: "probabilities", classes: 5, doubt: "the name of the output says that they score classes, which then may not exclude"},
		"sigmoids by config.json": {make: after(5, (*onnx.Builder).Sigmoid), config: `{"architectures": ["ViTForImageClassification"]}`, kind: "probabilities", classes: 5},
		"one number":              {make: head(1), kind: "none", basis: "no sigmoid is before it"},
		"one stated logit":        {make: head(1), options: model.Options{Scores: "logits"}, kind: "logits", classes: 2},
		"five numbers":            {make: head(5), kind: "logits", classes: 5, doubt: "set scores: logits if they do, or scores: none"},
		"ten numbers":             {make: head(10), kind: "logits", classes: 10, basis: "their number, 10"},
		"named logits":            {make: head(5), output: "logits", kind: "logits", classes: 5, basis: "the name of the output"},
		"three ratings": {make: func(b *onnx.Builder) onnx.Value {
			return b.Add(b.Mul(dense(b, addInput(b), 3, 3, 0), b.Scalar(0.1)), b.Full(3, 3))
		}, kind: "none", basis: "as ratings"},
		"named ratings": {make: head(3), output: "quality_scores", kind: "none", basis: "measured quantity"},
		"384 numbers":   {make: head(384), kind: "none", basis: "feature vector"},
		"normalised features": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Op("LayerNormalization", nil, z, b.Full(1, 5), b.Full(0, 5))
		}), kind: "none", basis: "no layer with weights"},
		"features normalised by many operators": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			d := b.Sub(z, b.ReduceMean(z, true, 1))
			v := b.ReduceMean(b.Mul(d, d), true, 1)
			return b.Add(b.Mul(b.Div(d, b.Sqrt(b.Add(v, b.Scalar(1e-5)))), b.Full(2, 5)), b.Full(1, 5))
		}), kind: "none", basis: "no layer with weights"},
		"the first token": {make: after(6, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			tokens := b.Op("LayerNormalization", nil, b.Reshape(z, -1, 2, 3), b.Full(1, 3), b.Full(0, 3))
			return b.Gather(tokens, b.Int(0), 1)
		}), kind: "none", basis: "no layer with weights"},
		"pooled activations": {make: after(12, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Squeeze(b.Op("GlobalAveragePool", nil, b.Relu(b.Reshape(z, -1, 3, 2, 2))), 2, 3)
		}), kind: "none", basis: "no layer with weights"},
		"unit length by a reciprocal": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Mul(z, b.Op("Reciprocal", nil, b.Sqrt(b.ReduceSum(b.Mul(z, z), true, 1))))
		}), kind: "none", basis: "unit length"},
		"the mean of an ensemble": {make: after(10, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.ReduceMean(b.Softmax(b.Reshape(z, -1, 2, 5), 2), false, 1)
		}), kind: "probabilities", classes: 5, basis: "sum to 1"},
		"cumulative probabilities": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Op("CumSum", nil, b.Softmax(z, 1), b.Int(1))
		}), kind: "none", basis: "as cumulative probabilities"},
		"logarithms to base 2": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Div(b.LogSoftmax(z, 1), b.Scalar(math.Ln2))
		}), output: "scores", kind: "logits", classes: 5, doubt: "logarithms to base 2"},
		"logarithms to base 10": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Div(b.LogSoftmax(z, 1), b.Scalar(math.Ln10))
		}), output: "scores", kind: "logits", classes: 5, doubt: "logarithms to base 10"},
		"probabilities from -1 to 1": {make: after(5, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Sub(b.Mul(b.Softmax(z, 1), b.Scalar(2)), b.Scalar(1))
		}), output: "scores", kind: "logits", classes: 5, doubt: "sum to -3"},
		"ordinal regression": {make: after(1, func(b *onnx.Builder, z onnx.Value) onnx.Value {
			return b.Add(z, b.Const("", tensor.Tensor{Shape: []int{1, 4}, Data: []float32{2, 1, -1, -2}}))
		}), kind: "none", basis: "as those of ordinal regression"},
		"Hugging Face's regression, named": {make: head(5), output: "logits", config: `{"problem_type": "regression"}`, kind: "none", basis: "problem_type: regression"},
		"Hugging Face's several labels":    {make: head(5), output: "logits", config: `{"architectures": ["ViTForImageClassification"], "problem_type": "multi_label_classification"}`, kind: "none", basis: "do not exclude each other"},
		"Hugging Face without a head":      {make: head(5), config: `{"architectures": ["Dinov2Model"]}`, kind: "none", basis: "architectures: Dinov2Model"},
		"Hugging Face's classifier":        {make: head(5), config: `{"architectures": ["ViTForImageClassification"]}`, kind: "logits", classes: 5, basis: "config.json"},
		"Hugging Face's regression":        {make: head(5), config: `{"architectures": ["ViTForImageClassification"], "problem_type": "regression"}`, kind: "none", basis: "problem_type: regression"},
		"timm's classifier":                {make: head(384), config: `{"architecture": "resnet18", "num_classes": 384}`, kind: "logits", classes: 384, basis: "config.json"},
		"names in the metadata":            {make: head(2), metadata: map[string]string{"names": "{0: 'a', 1: 'b'}"}, kind: "logits", classes: 2, basis: "names in the metadata"},
		"boxes by the metadata":            {make: head(5), metadata: map[string]string{"task": "detect", "names": "{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e'}"}, kind: "none", basis: "task in the metadata is detect"},
		"a softmax without further names":  {make: after(64, func(b *onnx.Builder, z onnx.Value) onnx.Value { return b.Softmax(z, 1) }), kind: "probabilities", classes: 64},
	} {
		dir := t.TempDir()
		b := onnx.NewBuilder(17)
		out := c.output
		if out == "" {
			out = "y"
		}
		y := c.make(b)
		b.Output(out, y)
		path := saveWith(t, filepath.Join(dir, "m.onnx"), b, c.metadata)
		if c.config != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		m, err := modeltest.Open(t, path, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		doubts := strings.Join(m.Doubts(0), "; ")
		if m.Scores() != c.kind || m.Classes() != c.classes || !strings.Contains(m.ScoresBasis(), c.basis) || (doubts != "") != (c.doubt != "") || !strings.Contains(doubts, c.doubt) {
			t.Errorf("%s: %s of %d classes (%s), doubts %q; want %s of %d (%s), %q", name, m.Scores(), m.Classes(), m.ScoresBasis(), doubts, c.kind, c.classes, c.basis, c.doubt)
		}
		if c.doubt != "" && !strings.Contains(doubts, "no logits") && len(m.Doubts(c.classes)) != 0 {
			t.Errorf("%s: doubts %q on data with labels of as many classes", name, m.Doubts(c.classes))
		}
	}
}

// saveWith saves a graph with entries of metadata, and returns the path.
func saveWith(t *testing.T, path string, b *onnx.Builder, metadata map[string]string) string {
	t.Helper()
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range metadata {
		m = m.WithMetadata(key, value)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestOutputsOfAudio checks outputs of networks of audio, which often hold a quality or a value for
// each frame.
func TestOutputsOfAudio(t *testing.T) {
	t.Parallel()
	const samples = 512
	frames := func(b *onnx.Builder, x onnx.Value, per int) onnx.Value {
		return b.ReduceMean(b.Reshape(x, 0, -1, per), false, 2)
	}
	for name, c := range map[string]struct {
		length int // -1: free
		make   func(b *onnx.Builder, x onnx.Value) onnx.Value
		kind   string
		basis  string
	}{
		"three qualities": {samples, func(b *onnx.Builder, x onnx.Value) onnx.Value { return dense(b, x, samples, 3, 0) }, "none", "nothing says that its 3 values score classes"},
		"a softmax":       {samples, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Softmax(dense(b, x, samples, 3, 0), 1) }, "probabilities", "sum to 1"},
		"a sigmoid for each frame": {-1, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Sigmoid(frames(b, x, 64))
		}, "none", "its values are those of frames"},
		"a sigmoid": {-1, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Sigmoid(b.ReduceMean(x, true, 1))
		}, "probabilities", "the second of two classes"},
	} {
		m, err := modeltest.Open(t, saveAudio(t, c.make, -1, c.length), model.Options{Samples: samples})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Scores() != c.kind || !strings.Contains(m.ScoresBasis(), c.basis) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, m.Scores(), m.ScoresBasis(), c.kind, c.basis)
		}
	}
}

// TestTwoClassesOfOneValue compares the log-probabilities of a network with one output, a
// probability or a logit, with those of a network that has an output for both classes. The same
// holds for the graph that gradients are computed from.
func TestTwoClassesOfOneValue(t *testing.T) {
	t.Parallel()
	z := func(b *onnx.Builder) onnx.Value { return b.ReduceSum(b.Sub(addInput(b), b.Scalar(0.4)), true, 1) }
	x := tensor.Tensor{Shape: []int{3, 1, 1}, Data: []float32{0.9, 0.2, 0.5}}
	logit := 0.4
	want := []float64{-math.Log1p(math.Exp(logit)), logit - math.Log1p(math.Exp(logit))}
	for name, c := range map[string]struct {
		make    func(b *onnx.Builder)
		options model.Options
	}{
		"a sigmoid":           {func(b *onnx.Builder) { b.Output("y", b.Sigmoid(z(b))) }, model.Options{}},
		"a sigmoid of rank 1": {func(b *onnx.Builder) { b.Output("y", b.Reshape(b.Sigmoid(z(b)), -1)) }, model.Options{}},
		"a logit":             {func(b *onnx.Builder) { b.Output("y", z(b)) }, model.Options{Scores: "logits"}},
	} {
		m, err := modeltest.Open(t, save(t, c.make), c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s, err := m.NewSession(nil, true)
		if err != nil {
			t.Fatal(err)
		}
		buf, err := s.NewBuffers(1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context(), []tensor.Tensor{x}, buf); err != nil {
			t.Fatal(err)
		}
		p, err := buf.LogProbs(nil)
		if err != nil {
			t.Fatal(err)
		}
		close := func(got float32, w float64) bool { return math.Abs(float64(got)-w) < 1e-6 }
		if !slices.EqualFunc(p.Data, want, close) {
			t.Errorf("%s: log-probabilities %v, want %v", name, p.Data, want)
		}
		s.Close()
		b := onnx.NewBuilder(m.Opset())
		values, err := m.Include(b, b.Input("images", onnx.Float, 1, 3, 1, 1), 1, m.ScoresTensor())
		if err != nil {
			t.Fatal(err)
		}
		b.Output("scores", values[0])
		path := testmodel.Save(t, filepath.Join(t.TempDir(), "included.onnx"), b)
		whole, err := modeltest.Open(t, path, model.Options{Scores: m.Scores()})
		if err != nil || whole.Classes() != 2 {
			t.Errorf("%s: included graph: %v, want two classes", name, err)
		}
	}
}

// TestMapsOfProbabilities checks that a map after a sigmoid, as detectors of text have, is one of
// probabilities, and that a map is one of depth only where something says so.
func TestMapsOfProbabilities(t *testing.T) {
	t.Parallel()
	const side = 16
	for name, c := range map[string]struct {
		output  string
		config  string
		sigmoid bool
		want    string
	}{
		"a detector of text":       {output: "y", sigmoid: true, want: "class-map probabilities"},
		"a disparity by a sigmoid": {output: "disp", sigmoid: true, want: "values depth"},
		"a named depth":            {output: "predicted_depth", want: "values depth"},
		"depth by config.json":     {output: "y", config: `{"architectures": ["DPTForDepthEstimation"]}`, want: "values depth"},
		"an unknown map":           {output: "y", want: "values map"},
	} {
		dir := t.TempDir()
		b := onnx.NewBuilder(17)
		y := b.ReduceMean(b.Input("x", onnx.Float, -1, 3, side, side), true, 1)
		if c.sigmoid {
			y = b.Sigmoid(y)
		}
		b.Output(c.output, y)
		path := testmodel.Save(t, filepath.Join(dir, "m.onnx"), b)
		if c.config != "" {
			if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		m, err := modeltest.Open(t, path, model.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := "nothing"
		if f, _ := m.Decoded(); f != nil {
			got = fmt.Sprintf("%s %s", f.Kind, f.Layout)
		}
		if got != c.want || m.Classes() != 0 {
			t.Errorf("%s: decoded as %s, %d classes; want %s", name, got, m.Classes(), c.want)
		}
	}
}

// TestFailedProbe checks that a network which fails on noise, but not on zeros, says so.
func TestFailedProbe(t *testing.T) {
	t.Parallel()
	m, err := modeltest.Open(t, save(t, func(b *onnx.Builder) {
		x := addInput(b)
		row := b.Cast(b.Mul(b.ReduceMax(x, false, 1), b.Scalar(100)), onnx.Int64) // 0 for zeros
		b.Output("y", b.Add(x, b.Gather(b.Full(1, 1, 3), row, 0)))
	}), model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if doubts := strings.Join(m.Doubts(3), "; "); !strings.Contains(doubts, "a run on noise failed") || !strings.Contains(doubts, "set scores: logits or scores: probabilities") {
		t.Errorf("doubts %q", doubts)
	}
}
