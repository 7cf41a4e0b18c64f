package train

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/tensor"
)

// A goldenNetwork records the training of a small residual network in PyTorch, by
// testdata/network.py. The helper floats(values, shape...) is in train_test.go.
type goldenNetwork struct {
	Start, End map[string][]float64 // weights before the first and after the last step
	Batches    []struct {
		X []float64 // images, 5 x 2 x 6 x 6
		T []int     // their classes
	}
	Losses    []float64 // of each step
	Evaluated []float64 // losses of the first batch in evaluation mode, after the last step
}

// readGoldenNetwork reads testdata/NAME.json, and returns its batches also as Batch.
func readGoldenNetwork(t *testing.T, name string) (g goldenNetwork, batches []Batch) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	for _, b := range g.Batches {
		batches = append(batches, Batch{Inputs: []tensor.Tensor{floats(b.X, 5, 2, 6, 6)}, Targets: Targets{Classes: b.T}})
	}
	return g, batches
}

// Training a network gives the losses, weights, running statistics and evaluation losses of
// PyTorch, with one or several training steps in a run of the session, and with or without
// (NoAcceleration) native operators, which are Noether's, in place of slower ones of ONNX Runtime.
func TestGoldenNetwork(t *testing.T) {
	t.Parallel()
	// 16 channels are enough for Winograd convolutions.
	for name, widths := range map[string][]int{"network": {4, 6}, "wide": {16}} {
		t.Run(name, func(t *testing.T) { testGoldenNetwork(t, name, widths) })
	}
}

// testGoldenNetwork trains a ResNet of the given widths as the golden network was trained, and
// compares them.
func testGoldenNetwork(t *testing.T, name string, widths []int) {
	t.Parallel()
	golden, batches := readGoldenNetwork(t, name)
	m, err := ResNet{Shape: []int{2, 6, 6}, Classes: 3, Widths: widths, Blocks: []int{1}, Seed: 1}.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []Spec{{StepsPerRun: 1}, {StepsPerRun: 4}, {StepsPerRun: 4, Engine: ort.Options{NoAcceleration: true}}} {
		spec.Model, spec.Loss, spec.TrainingMode, spec.Optimiser = m, CrossEntropy, true, SGD{Rate: 0.05, Momentum: 0.9, WeightDecay: 5e-3}
		tr, err := New(orttest.Load(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		start := tr.Weights()
		if len(start) != len(golden.Start) {
			t.Fatalf("%d weights, want %d", len(start), len(golden.Start))
		}
		for name, w := range start {
			start[name] = floats(golden.Start[name], w.Shape...)
		}
		if err := tr.SetWeights(start); err != nil {
			t.Fatal(err)
		}
		metrics, err := tr.steps(t.Context(), batches)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range golden.Losses {
			near(t, "loss", []float64{metrics[i].Loss}, []float64{want})
		}
		for name, w := range tr.Weights() {
			near(t, name, tensor.Float64s(w.Data), golden.End[name])
		}
		evaluated, err := tr.evaluateBatch(t.Context(), batches[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "loss in evaluation mode", evaluated.losses, golden.Evaluated)
	}
}

// near checks that numbers agree to 1e-4, or 1e-4 of the wanted one if that exceeds 1.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range want {
		if d := math.Abs(got[i] - want[i]); !(d < 1e-4*max(1, math.Abs(want[i]))) {
			t.Fatalf("%s[%d] is %.6f, want %.6f", what, i, got[i], want[i])
		}
	}
}
