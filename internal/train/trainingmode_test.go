package train

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// convNet returns a network for images of 2 x 8 x 8, in 3 classes, with BatchNormalization, and
// with Dropout of a ratio.
func convNet(t *testing.T, ratio float64) *onnx.Model {
	t.Helper()
	m, err := ConvNet{Shape: []int{2, 8, 8}, Classes: 3, Widths: []int{4, 6}, Depth: 1, Dropout: ratio, Seed: 5}.Build()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// images returns n images of noise, 2 x 8 x 8, drawn with a seed. The class is the channel that is
// brighter, or 2 if neither is.
func images(n int, randSeed uint64) *Arrays {
	r, x := seed.Rand(randSeed, "images"), tensor.New(n, 2, 8, 8)
	a := &Arrays{Inputs: []tensor.Tensor{x}}
	for i := range n {
		class := r.IntN(3)
		a.Classes = append(a.Classes, class)
		for j := range x.At(i).Data {
			x.At(i).Data[j] = float32(r.NormFloat64())
			if j/64 == class { // 64 values of a channel
				x.At(i).Data[j] += 0.7
			}
		}
	}
	return a
}

// trainerOf returns a trainer with cross-entropy, closed at the end of the test.
func trainerOf(t *testing.T, spec Spec) *Trainer {
	t.Helper()
	spec.Loss = CrossEntropy
	if spec.Optimiser == nil {
		spec.Optimiser = SGD{Rate: 0.05, Momentum: 0.9}
	}
	tr, err := New(orttest.Load(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// In training mode (BatchNormalization by batch statistics, random Dropout) a network with
// BatchNormalization and Dropout learns, and the exported model has the metrics of the trainer.
func TestTrainingMode(t *testing.T) {
	t.Parallel()
	tr := trainerOf(t, Spec{Model: convNet(t, 0.2), TrainingMode: true, Seed: 1})
	epochs, err := tr.Fit(t.Context(), images(300, 1), images(100, 2), FitOptions{Epochs: 12, Batch: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if e := epochs[len(epochs)-1]; e.ValidationAccuracy < 0.9 || epochs[0].Validation < 2*e.Validation {
		t.Errorf("the last epoch is %+v, want an accuracy of at least 0.9 and at most half the loss of the first, %+v", e, epochs[0])
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	exported := trainerOf(t, Spec{Model: m})
	a, err := tr.Evaluate(t.Context(), images(50, 3), 20)
	if err != nil {
		t.Fatal(err)
	}
	b, err := exported.Evaluate(t.Context(), images(50, 3), 7)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.Loss-b.Loss) > 1e-6 || a.Accuracy != b.Accuracy {
		t.Errorf("the metrics are %+v, and %+v of the exported model", a, b)
	}
}

// Without training mode the running statistics of BatchNormalization are not
// parameters and do not change.
func TestFrozenRunningStatistics(t *testing.T) {
	t.Parallel()
	m := convNet(t, 0.5)
	tr := trainerOf(t, Spec{Model: m})
	if _, err := tr.Fit(t.Context(), images(40, 1), nil, FitOptions{Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	for name := range tr.Weights() {
		if strings.HasSuffix(name, ".mean") || strings.HasSuffix(name, ".variance") {
			t.Errorf("%s is trained", name)
		}
	}
	trained, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	for name, changes := range map[string]bool{"stage1.norm1.mean": false, "stage2.norm1.variance": false, "stage1.norm1.scale": true, "stage1.conv1.weight": true} {
		a, _ := m.Tensor(name)
		b, _ := trained.Tensor(name)
		if slices.Equal(a.Data, b.Data) == changes {
			t.Errorf("%s: changed %v, want %v", name, !changes, changes)
		}
	}
	if _, err := New(orttest.Load(t), Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 1}, Parameters: []string{"stage1.norm1.mean"}}); err == nil {
		t.Error("a running statistic as a parameter: no error")
	}
}

// The mask of a Dropout has a fraction of zeros equal to the ratio and the mean 1. It depends on
// seed and step only.
func TestDropoutMask(t *testing.T) {
	t.Parallel()
	m := mask{name: "m", ratio: 0.3, shape: []int{50, 40}}
	a := m.draw(1, 7, 10) // seed 1, step 7, batch of 10
	zeros, sum := 0, 0.0
	for _, v := range a.Data {
		if v == 0 {
			zeros++
		} else if v != float32(1/0.7) {
			t.Fatalf("a mask holds %g", v)
		}
		sum += float64(v)
	}
	n := float64(a.Len())
	// The standard error of a fraction of 0.3 is the root of 0.3 * 0.7 / n.
	if fraction := float64(zeros) / n; math.Abs(fraction-0.3) > 4*math.Sqrt(0.21/n) {
		t.Errorf("a fraction of %g is zero, want 0.3", fraction)
	}
	if math.Abs(sum/n-1) > 0.03 {
		t.Errorf("the mean is %g, want 1", sum/n)
	}
	if b := m.draw(1, 7, 10); !slices.Equal(a.Data, b.Data) {
		t.Error("the same step has another mask")
	}
	if b := m.draw(1, 8, 10); slices.Equal(a.Data, b.Data) {
		t.Error("the next step has the same mask")
	}
}

// A resumed training with dropout gives identical weights and running statistics.
func TestTrainingModeResumes(t *testing.T) {
	t.Parallel()
	fit := func(f FitOptions) map[string]tensor.Tensor {
		tr := trainerOf(t, Spec{Model: convNet(t, 0.3), TrainingMode: true, Seed: 3, Schedule: Cosine(2)})
		// Its error is that of a checkpoint that stops the training.
		tr.Fit(t.Context(), images(50, 1), nil, f)
		return tr.Weights()
	}
	whole := fit(FitOptions{Epochs: 4, Batch: 16})
	// Of train_test.go: its second save stops the training.
	saved := &stoppingCheckpoint{stopAfter: 2}
	fit(FitOptions{Epochs: 4, Batch: 16, Checkpoint: saved})
	resumed := fit(FitOptions{Epochs: 4, Batch: 16, Checkpoint: saved})
	for name, w := range whole {
		if !slices.Equal(w.Data, resumed[name].Data) {
			t.Errorf("%s differs", name)
		}
	}
	if saved.Saves != 4 {
		t.Errorf("%d saves, want one after each of 4 epochs", saved.Saves)
	}
	other := trainerOf(t, Spec{Model: convNet(t, 0.3), TrainingMode: true, Optimiser: Adam{Rate: 0.1}})
	if _, err := other.Fit(t.Context(), images(50, 1), nil, FitOptions{Epochs: 4, Batch: 16, Checkpoint: saved}); err == nil || !strings.Contains(err.Error(), "another network") {
		t.Errorf("a checkpoint of another optimiser: %v", err)
	}
}

func TestTrainingModeErrors(t *testing.T) {
	t.Parallel()
	tr := trainerOf(t, Spec{Model: convNet(t, 0), TrainingMode: true})
	before := tr.Weights()
	for _, class := range []int{-1, 3} {
		data := images(4, 1)
		data.Classes[2] = class
		if _, err := tr.Fit(t.Context(), data, nil, FitOptions{Epochs: 1}); err == nil || !strings.Contains(err.Error(), "classes 0 to 2") {
			t.Errorf("class %d: %v", class, err)
		}
	}
	if !slices.Equal(before["linear.bias"].Data, tr.Weights()["linear.bias"].Data) {
		t.Error("a step that failed has changed the weights")
	}
	diverging := trainerOf(t, Spec{Model: convNet(t, 0), TrainingMode: true, Optimiser: SGD{Rate: 1e30}})
	if _, err := diverging.Fit(t.Context(), images(200, 1), nil, FitOptions{Epochs: 3}); err == nil || !strings.Contains(err.Error(), "lower the learning rate") {
		t.Errorf("a rate of 1e30: %v", err)
	}
	for name, build := range map[string]func() (*onnx.Model, error){
		"no widths":   ConvNet{Shape: []int{3, 8, 8}, Classes: 2}.Build,
		"no shape":    ResNet{Classes: 2}.Build,
		"no classes":  ResNet{Shape: []int{3, 8, 8}}.Build,
		"dropout 1":   ConvNet{Shape: []int{3, 8, 8}, Classes: 2, Widths: []int{4}, Dropout: 1}.Build,
		"width 0":     ResNet{Shape: []int{3, 8, 8}, Classes: 2, Widths: []int{4, 0}}.Build,
		"no features": FlattenedMLP{Shape: []int{3, 0}, Outputs: 2}.Build,
	} {
		if _, err := build(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
