package invert_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
)

// cifarPreprocess has the mean and the standard deviation of ImageNet, with which the CIFAR-10
// models were trained.
var cifarPreprocess = model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}

// cifarModel opens a trained CIFAR-10 network, of which the layer before the classifier is read.
func cifarModel(t testing.TB, name string) *model.Model {
	t.Helper()
	m, err := modeltest.Open(t, testdata.Path(t, "models", name+"-cifar10.onnx"),
		model.Options{Layers: []string{"penultimate"}, Preprocess: cifarPreprocess}, ort.NetworkOptions{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// noGraph is a network that gives gradients but no graph, as one of a server.
type noGraph struct{ engine.Differentiable }

// servedModel is cifarModel of a network that is no graph.
func servedModel(t testing.TB, name, layer string) *model.Model {
	t.Helper()
	net, err := orttest.Load(t).OpenNetwork(testdata.Path(t, "models", name+"-cifar10.onnx"), ort.NetworkOptions{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(t.Context(), noGraph{net},
		model.Options{Layers: []string{layer}, Preprocess: cifarPreprocess, Scores: "logits"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// cifar returns the first n images of the CIFAR-10 test set, with labels.
func cifar(t testing.TB, n int) (tensor.Tensor, []int) {
	t.Helper()
	src, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	defer dataset.Close(src)
	x, labels := tensor.New(n, 3, 32, 32), make([]int, n)
	for i := range n {
		s, err := src.At(t.Context(), i, dataset.Frame{})
		if err != nil {
			t.Fatal(err)
		}
		copy(x.At(i).Data, s.Input.Data)
		labels[i] = s.Label
	}
	return x, labels
}

// goldenStart returns the starting images of the golden searches: values k / 255 from a formula
// that golden.py has too, so that no random generator is shared.
func goldenStart(shape []int) tensor.Tensor {
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = float32(i*7919%104729%256) / 255
	}
	return t
}

// A goldenCase is the result of a search (gradient descent on images): the smallest criterion
// (loss, or margin in adversarial attacks) of each sample at the start and after each step, and
// every Stride-th value of the best images, those of the smallest criterion.
type goldenCase struct {
	Criterion [][]float64 `json:"criterion"`
	Best      []float64   `json:"best"`
}

// TestGolden checks that searches agree with the same searches by PyTorch in float64, which
// testdata/golden.py stored. "paper" is the default optimiser, with steps of a fixed length against
// the gradient; "adam" is Adam. Both have the loss |a(x') - a(x)|, for images x' and x and a layer
// of the network a. "contrast" has that of a minus that of b, and "normalised" divides each by the
// norm for x and multiplies that of b by 0.1. "l2" and "linf" are adversarial attacks in a ball
// about x. Those with "served" have models that are no graphs. The function search, in
// invert_test.go, runs a search.
func TestGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Steps, Stride                               int
		Paper, Adam, Contrast, Normalised, L2, Linf goldenCase
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	a, b := cifarModel(t, "resnet20"), cifarModel(t, "resnet32")
	served, servedB := servedModel(t, "resnet20", a.Layers()[0].Name), servedModel(t, "resnet32", b.Layers()[0].Name)
	la, lb := a.Layers()[0], b.Layers()[0]
	x, labels := cifar(t, 4)
	noise := goldenStart(x.Shape)
	for name, c := range map[string]struct {
		objective invert.Objective
		options   invert.Options
		start     tensor.Tensor
		want      goldenCase
	}{
		"paper":       {invert.Match(a, la), invert.Options{}, noise, golden.Paper},
		"adam":        {invert.Match(a, la), invert.Options{Optimiser: invert.Adam}, noise, golden.Adam},
		"contrast":    {invert.Contrast(a, la, b, lb), invert.Options{}, noise, golden.Contrast},
		"normalised":  {invert.NormalisedContrast(a, la, b, lb, 0.1), invert.Options{}, noise, golden.Normalised},
		"l2":          {invert.Misclassify(a, nil), invert.Options{StepSize: 0.1, Ball: invert.Ball{Norm: invert.L2, Radius: 0.25}}, x, golden.L2},
		"served":      {invert.NormalisedContrast(served, la, b, lb, 0.1), invert.Options{Graphs: b}, noise, golden.Normalised},
		"served both": {invert.Contrast(served, la, servedB, lb), invert.Options{Graphs: b}, noise, golden.Contrast},
		"served l2":   {invert.Misclassify(served, nil), invert.Options{Graphs: b, StepSize: 0.1, Ball: invert.Ball{Norm: invert.L2, Radius: 0.25}}, x, golden.L2},
		"served adam": {invert.Match(served, la), invert.Options{Graphs: b, Optimiser: invert.Adam}, noise, golden.Adam},
		"linf":        {invert.Misclassify(a, nil), invert.Options{StepSize: 0.002, Ball: invert.Ball{Norm: invert.Linf, Radius: 0.005}}, x, golden.Linf},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.options.Steps = golden.Steps
			c.options.Batch = 3 // at most 3 of the 4 images: two batches of two
			losses := map[int64]float64{}
			p := invert.Problem{Images: x, Start: c.start, Labels: labels, Progress: func(p invert.Progress) { losses[p.Done] = p.Loss }}
			found := search(t, c.objective, c.options, p)
			// Done counts the steps of both samples of the batch. The start counts as a step.
			for step, want := range c.want.Criterion {
				mean := (want[0] + want[1]) / 2 // of the first batch, samples 0 and 1
				if got := losses[int64(2*(step+1))]; !near(got, mean, 2e-5) {
					t.Errorf("mean of the smallest losses after step %d = %v, want %v", step, got, mean)
				}
			}
			// The steps of the contrasts change the representation most. If rounding changes the
			// sign of a ReLU unit's input, the fourth digit of the loss changes.
			lossTolerance, pixelTolerance := 2e-5, 1e-4
			if name == "contrast" || name == "normalised" || name == "served" || name == "served both" {
				lossTolerance, pixelTolerance = 3e-4, 2e-3
			}
			for i, want := range c.want.Criterion[golden.Steps] {
				if !near(found.Loss[i], want, lossTolerance) {
					t.Errorf("loss of sample %d = %v, want %v", i, found.Loss[i], want)
				}
			}
			for i, want := range c.want.Best {
				if got := float64(found.Images.Data[i*golden.Stride]); math.Abs(got-want) > pixelTolerance {
					t.Fatalf("value %d of the best images = %v, want %v", i*golden.Stride, got, want)
				}
			}
		})
	}
}

// near reports whether |a - b| is at most tolerance times the larger of 1 and |b|.
func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*math.Max(1, math.Abs(b)) }
