package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/tensor"
)

// goldenAdversarial holds results of training on adversarial examples in PyTorch, which
// testdata/adversarial.py stored. All start from the same weights and use the same batches.
type goldenAdversarial struct {
	Start   map[string][]float64 // weights before the first step
	Batches []struct {
		X     []float64 // images, 5 x 2 x 6 x 6
		T     []int     // their classes
		Start []float64 // points at which the search for adversarial examples starts
	}
	Rows []struct { // one for each defence and norm
		Defence      Defence
		Norm         string
		Radius, Beta float64
		Steps        int                  // of the search for an adversarial example
		End          map[string][]float64 // weights after the last step
		Losses       []float64            // of each training step
	}
}

// Training with each defence, on examples in the ball of each norm, gives the losses, weights and
// running statistics of batch normalisation of PyTorch, to 1e-4 (see near in network_test.go).
func TestGoldenAdversarial(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/adversarial.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenAdversarial
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	m, err := ResNet{Shape: []int{2, 6, 6}, Classes: 3, Widths: []int{4, 6}, Blocks: []int{1}, Seed: 1}.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range golden.Rows {
		t.Run(string(row.Defence)+" "+row.Norm, func(t *testing.T) {
			tr, err := New(orttest.Load(t), Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Optimiser: SGD{Rate: 0.02, Momentum: 0.9, WeightDecay: 5e-3},
				Adversarial: &Adversarial{Defence: row.Defence, Norm: row.Norm, Radius: row.Radius, Steps: row.Steps, Beta: row.Beta}})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			weights := tr.Weights()
			for name, w := range weights {
				weights[name] = floats(golden.Start[name], w.Shape...)
			}
			if err := tr.SetWeights(weights); err != nil {
				t.Fatal(err)
			}
			for i, b := range golden.Batches {
				tr.fixedStart = func(tensor.Tensor) tensor.Tensor { return floats(b.Start, 5, 2, 6, 6) }
				loss, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{floats(b.X, 5, 2, 6, 6)}, Targets: Targets{Classes: b.T}})
				if err != nil {
					t.Fatal(err)
				}
				near(t, fmt.Sprintf("loss of step %d", i), []float64{loss}, row.Losses[i:i+1])
			}
			for name, w := range tr.Weights() {
				near(t, name, tensor.Float64s(w.Data), row.End[name])
			}
		})
	}
}

func TestAdversarialErrors(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	m, err := MLP(1, 4, 3) // a linear layer of 4 inputs and 3 outputs; the seed is 1
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Spec){
		"unknown defence":         func(s *Spec) { s.Adversarial.Defence = "fgsm" },
		"needs a radius":          func(s *Spec) { s.Adversarial.Radius = 0 },
		"radius NaN":              func(s *Spec) { s.Adversarial.Radius = math.NaN() },
		"unknown norm":            func(s *Spec) { s.Adversarial.Norm = "l1" },
		"0 steps":                 func(s *Spec) { s.Adversarial.Steps = 0 },
		"beta is -1":              func(s *Spec) { s.Adversarial.Beta = -1 },
		"cannot start at x":       func(s *Spec) { s.Adversarial.Defence, s.Adversarial.AtX = MART, true },
		"needs the loss":          func(s *Spec) { s.Adversarial.Defence, s.Loss = TRADES, SquaredError },
		"one step in a run":       func(s *Spec) { s.StepsPerRun = 2 },
		"depends on no weight of": func(s *Spec) { s.Parameters = []string{"w"} },
	} {
		spec := Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 0.1}, Adversarial: &Adversarial{Defence: AdversarialTraining, Norm: "l2", Radius: 0.1, Steps: 1}}
		change(&spec)
		if tr, err := New(rt, spec); err == nil {
			tr.Close()
			t.Errorf("%s: no error", want)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
	}
	tr, err := New(rt, Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 0.1}, Adversarial: &Adversarial{Defence: TRADES, Norm: "linf", Radius: 0.1, Steps: 1, Beta: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for _, bad := range []float32{-1, 2, float32(math.NaN())} {
		x := tensor.New(2, 4)
		x.Data[5] = bad
		if _, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Classes: []int{0, 1}}}); err == nil || !strings.Contains(err.Error(), "sample 1") {
			t.Errorf("an input of %g: %v", bad, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.Step(ctx, Batch{Inputs: []tensor.Tensor{tensor.New(2, 4)}, Targets: Targets{Classes: []int{0, 1}}}); err == nil {
		t.Error("a cancelled context: no error")
	}
}

// For a linear classifier of two classes the image of the l2 ball of radius r around x with the
// largest loss is x + r u, where u is the unit vector from the weights of the class to those of the
// other. So the loss of a training step is log(1 + exp(-margin + r |w_0 - w_1|)).
func TestAdversarialLinear(t *testing.T) {
	t.Parallel()
	m, err := MLP(1, 3, 2) // 3 inputs, 2 outputs
	if err != nil {
		t.Fatal(err)
	}
	const radius = 0.2
	tr, err := New(orttest.Load(t), Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 0.1},
		// AtX: the search for the image starts at x.
		Adversarial: &Adversarial{Defence: AdversarialTraining, Norm: "l2", Radius: radius, Steps: 3, AtX: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	// The ball lies within [0, 1].
	x := tensor.Tensor{Shape: []int{1, 3}, Data: []float32{0.5, 0.4, 0.6}}
	weights := tr.Weights()
	w, bias := weights["layer1.weight"], weights["layer1.bias"]
	if len(w.Data) != 6 || len(bias.Data) != 2 {
		t.Fatalf("weights %v", weights)
	}
	margin, norm := float64(bias.Data[0]-bias.Data[1]), 0.0
	for i := range 3 { // the weights are 3 inputs x 2 classes
		d := float64(w.Data[2*i] - w.Data[2*i+1])
		margin += d * float64(x.Data[i])
		norm += d * d
	}
	loss, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Classes: []int{0}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := math.Log1p(math.Exp(-margin + radius*math.Sqrt(norm))); math.Abs(loss-want) > 1e-5 {
		t.Errorf("loss %.6f, want %.6f", loss, want)
	}
}

// TestTimeLimitOfDifferentiation sets a limit for all models of the process, so it runs alone.
func TestTimeLimitOfDifferentiation(t *testing.T) {
	rt := orttest.Load(t)
	m, err := MLP(1, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	rt.LimitRuns(time.Nanosecond)
	defer rt.LimitRuns(0)
	_, err = New(rt, Spec{Model: m, Loss: CrossEntropy, Optimiser: SGD{Rate: 0.1}})
	if late := (*engine.TimeLimitError)(nil); !errors.As(err, &late) {
		t.Errorf("error %v, want that the time limit has passed", err)
	}
}
