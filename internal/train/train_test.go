package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/accel"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A goldenCase is a training of eight steps in PyTorch, by testdata/golden.py, of an MLP of sizes
// 5, 7 and 3.
type goldenCase struct {
	Optimiser, Loss string
	Clip            float64 // maximum norm of the gradient; 0: no clipping
	// Weight and bias of layer 1, then of layer 2, before and after the steps.
	Start, End [][]float64
	Losses     []float64                  // of each step
	Batches    []struct{ X, T []float64 } // inputs, and targets or classes
}

// optimisers are those of testdata/golden.py, by goldenCase.Optimiser.
var optimisers = map[string]Optimiser{
	"sgd":      SGD{Rate: 0.1, WeightDecay: 0.01},
	"momentum": SGD{Rate: 0.05, Momentum: 0.9},
	"nesterov": SGD{Rate: 0.05, Momentum: 0.9, Nesterov: true, WeightDecay: 0.01},
	"adam":     Adam{Rate: 0.01, WeightDecay: 0.1},
	"adamw":    AdamW{Rate: 0.01, WeightDecay: 0.1},
}

func lossOf(t *testing.T, name string) Loss {
	t.Helper()
	for _, l := range Losses() {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("there is no loss %s", name)
	return Loss{}
}

// floats returns a tensor of the values v, or of zeros if there are none.
func floats(v []float64, shape ...int) tensor.Tensor {
	t := tensor.New(shape...)
	for i, x := range v {
		t.Data[i] = float32(x)
	}
	return t
}

// weights returns Start or End as tensors by name.
func (c *goldenCase) weights(from [][]float64) map[string]tensor.Tensor {
	return map[string]tensor.Tensor{
		"layer1.weight": floats(from[0], 5, 7), "layer1.bias": floats(from[1], 7),
		"layer2.weight": floats(from[2], 7, 3), "layer2.bias": floats(from[3], 3),
	}
}

func (c *goldenCase) batches() []Batch {
	var out []Batch
	for _, b := range c.Batches {
		batch := Batch{Inputs: []tensor.Tensor{floats(b.X, 6, 5)}}
		if c.Loss == "cross-entropy" {
			for _, k := range b.T {
				batch.Classes = append(batch.Classes, int(k))
			}
		} else {
			batch.Target = floats(b.T, 6, 3)
		}
		out = append(out, batch)
	}
	return out
}

// newMLP returns a trainer of an MLP of given sizes and seed 1, closed at the end of the test.
func newMLP(t *testing.T, spec Spec, sizes ...int) *Trainer {
	t.Helper()
	m, err := MLP(1, sizes...)
	if err != nil {
		t.Fatal(err)
	}
	spec.Model = m
	trainer, err := New(orttest.Load(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { trainer.Close() })
	return trainer
}

// Optimisers, losses and gradient clipping agree with PyTorch, with one or several optimiser steps
// in a run of the graph, and with or without (NoAcceleration) native operators: Noether's, of
// package internal/accel, in place of slower ones of ONNX Runtime.
func TestGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 9 { // as many as golden.py writes
		t.Fatalf("%d cases, want 9", len(cases))
	}
	for _, c := range cases {
		for _, spec := range []Spec{{StepsPerRun: 1}, {StepsPerRun: 3}, {StepsPerRun: 3, Engine: ort.Options{NoAcceleration: true}}} {
			spec.Loss, spec.Optimiser, spec.Clip = lossOf(t, c.Loss), optimisers[c.Optimiser], c.Clip
			tr := newMLP(t, spec, 5, 7, 3)
			if err := tr.SetWeights(c.weights(c.Start)); err != nil {
				t.Fatal(err)
			}
			metrics, err := tr.steps(t.Context(), c.batches())
			if err != nil {
				t.Fatal(err)
			}
			name := c.Optimiser + " " + c.Loss
			for i, want := range c.Losses {
				if d := math.Abs(metrics[i].Loss - want); !(d < 2e-5*max(1, want)) {
					t.Errorf("%s: the loss of step %d differs by %g", name, i, d)
				}
			}
			got, want := tr.Weights(), c.weights(c.End)
			for key, w := range want {
				for i, v := range w.Data {
					if d := math.Abs(float64(got[key].Data[i] - v)); !(d < 5e-5) {
						t.Fatalf("%s, %d steps in a run, NoAcceleration %v: %s[%d] differs by %g", name, spec.StepsPerRun, spec.Engine.NoAcceleration, key, i, d)
					}
				}
			}
		}
	}
}

// linearData returns n samples of y = A x + c for random x. A linear network fits them exactly.
func linearData(n int, key uint64) *Arrays {
	r := seed.Rand(key, "line")
	x, y := tensor.New(n, 4), tensor.New(n, 2)
	for i := range n {
		for j := range 4 {
			x.At(i).Data[j] = float32(r.NormFloat64())
		}
		v := x.At(i).Data
		y.At(i).Data[0], y.At(i).Data[1] = v[0]-2*v[3]+0.5, 0.25*v[1]+v[2]
	}
	return &Arrays{Inputs: []tensor.Tensor{x}, Targets: Targets{Target: y}}
}

func TestFit(t *testing.T) {
	t.Parallel()
	// The schedule warms up for 10 steps.
	tr := newMLP(t, Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.03}, Schedule: Cosine(10)}, 4, 2)
	epochs, err := tr.Fit(t.Context(), linearData(200, 1), linearData(50, 2), FitOptions{Epochs: 40, Batch: 16, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	last := epochs[len(epochs)-1]
	if len(epochs) != 40 || last.Validation > 1e-6 || epochs[0].Train < 0.1 {
		t.Errorf("%d epochs, want 40; the last is %+v, want a validation loss of at most 1e-6; the first is %+v, want a training loss of at least 0.1",
			len(epochs), last, epochs[0])
	}
	w := tr.Weights()["layer1.weight"]
	// 4 inputs x 2 outputs: A of linearData, transposed.
	want := []float32{1, 0, 0, 0.25, 0, 1, -2, 0}
	for i, v := range want {
		if math.Abs(float64(w.Data[i]-v)) > 2e-3 {
			t.Errorf("weight %d is %g, want %g", i, w.Data[i], v)
		}
	}
}

var errStop = errors.New("stop")

// A stoppingCheckpoint is kept in memory. It stops the training when it has been saved a given
// number of times.
type stoppingCheckpoint struct {
	checkpoint.Memory
	stopAfter int
}

func (s *stoppingCheckpoint) Save(write func(io.Writer) error) error {
	if err := s.Memory.Save(write); err != nil {
		return err
	}
	if s.Saves == s.stopAfter {
		return errStop
	}
	return nil
}

// A training that stops and resumes from its checkpoint gives the weights of one that does not
// stop. Neither a checkpoint of other settings nor a truncated one is accepted.
func TestResume(t *testing.T) {
	t.Parallel()
	spec := Spec{Loss: SquaredError, Optimiser: AdamW{Rate: 0.01, WeightDecay: 0.1}, Schedule: Cosine(5), StepsPerRun: 2}
	fitting := FitOptions{Epochs: 6, Batch: 32, Seed: 9, Patience: 4}
	fit := func(f FitOptions) (*Trainer, []Epoch, error) {
		tr := newMLP(t, spec, 4, 8, 2)
		epochs, err := tr.Fit(t.Context(), linearData(150, 1), linearData(40, 2), f)
		return tr, epochs, err
	}
	whole, epochs, err := fit(fitting)
	if err != nil {
		t.Fatal(err)
	}
	saved := &stoppingCheckpoint{stopAfter: 3}
	fitting.Checkpoint = saved
	if _, _, err := fit(fitting); !errors.Is(err, errStop) {
		t.Fatalf("the training did not stop: %v", err)
	}
	resumed, again, err := fit(fitting)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(epochs) {
		t.Fatalf("%d epochs, want %d", len(again), len(epochs))
	}
	for i := range epochs {
		epochs[i].Seconds, again[i].Seconds = 0, 0
		// As text, since NaN differs from itself.
		if a, b := fmt.Sprint(epochs[i]), fmt.Sprint(again[i]); a != b {
			t.Errorf("epoch %d: %s, want %s", i+1, b, a)
		}
	}
	for name, w := range whole.Weights() {
		for i, v := range resumed.Weights()[name].Data {
			if v != w.Data[i] {
				t.Fatalf("%s[%d] is %g, want %g", name, i, v, w.Data[i])
			}
		}
	}
	fitting.Seed = 10
	if _, _, err := fit(fitting); err == nil || !strings.Contains(err.Error(), "another training") {
		t.Errorf("a checkpoint of a training with another seed: error %v", err)
	}
	fitting.Seed = 9
	for cut := 0; cut < len(saved.State); cut += 97 { // trying every length would take too long
		fitting.Checkpoint = &checkpoint.Memory{State: saved.State[:cut]}
		if _, _, err := fit(fitting); err == nil {
			t.Fatalf("the first %d of %d bytes of a checkpoint: no error", cut, len(saved.State))
		}
	}
}

// A trainer restarted with a network gives the results of a new one. A network of other layer sizes
// is an error.
func TestRestart(t *testing.T) {
	t.Parallel()
	spec := Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.01, WeightDecay: 0.1}, Schedule: Cosine(5)}
	fit := func(tr *Trainer) string {
		epochs, err := tr.Fit(t.Context(), linearData(150, 1), linearData(40, 2), FitOptions{Epochs: 3, Seed: 9})
		if err != nil {
			t.Fatal(err)
		}
		for i := range epochs {
			epochs[i].Seconds = 0
		}
		return fmt.Sprint(epochs, tr.Weights())
	}
	tr := newMLP(t, spec, 4, 8, 2)
	first := fit(tr)
	for seed, same := range map[uint64]bool{1: true, 2: false} { // newMLP has seed 1
		m, err := MLP(seed, 4, 8, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := tr.Restart(m); err != nil {
			t.Fatal(err)
		}
		if again := fit(tr); (again == first) != same {
			t.Errorf("restarted with the weights of seed %d: same results as with seed 1: %v, want %v", seed, !same, same)
		}
	}
	other, err := MLP(1, 4, 9, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.Restart(other); err == nil || !strings.Contains(err.Error(), "have shape") {
		t.Errorf("a network of other layer sizes: error %v", err)
	}
}

// Early stopping ends the training after as many epochs without improvement as the patience, and
// restores the weights of the best epoch.
func TestEarlyStopping(t *testing.T) {
	t.Parallel()
	r := seed.Rand(4, "noise")
	noise := func(n int) *Arrays {
		a := linearData(n, 5)
		for i := range a.Target.Data {
			a.Target.Data[i] = float32(r.NormFloat64())
		}
		return a
	}
	tr := newMLP(t, Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.02}}, 4, 64, 2)
	validation := noise(100)
	epochs, err := tr.Fit(t.Context(), noise(40), validation, FitOptions{Epochs: 300, Batch: 8, Patience: 5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	last := epochs[len(epochs)-1]
	if last.Number == 300 || last.Number-last.Best != 5 {
		t.Fatalf("the last epoch is %+v, want it five after the best", last)
	}
	metrics, err := tr.Evaluate(t.Context(), validation, 30)
	if err != nil {
		t.Fatal(err)
	}
	if best := epochs[last.Best-1].Validation; math.Abs(metrics.Loss-best) > 1e-6 {
		t.Errorf("the final loss is %g, want the best, %g", metrics.Loss, best)
	}
}

// Model returns the trained network. Of its weights only those of Spec.Parameters have changed.
func TestModel(t *testing.T) {
	t.Parallel()
	tr := newMLP(t, Spec{Loss: CrossEntropy, Optimiser: SGD{Rate: 0.1}, Parameters: []string{"layer2.weight"}}, 4, 6, 3)
	before, _ := MLP(1, 4, 6, 3)
	data := linearData(20, 1)
	data.Target, data.Classes = tensor.Tensor{}, make([]int, 20)
	if _, err := tr.Fit(t.Context(), data, nil, FitOptions{Epochs: 2}); err != nil {
		t.Fatal(err)
	}
	m, err := tr.Model()
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range before.Weights() {
		a, _ := before.Tensor(w.Name)
		b, err := m.Tensor(w.Name)
		if err != nil {
			t.Fatal(err)
		}
		same := true
		for i := range a.Data {
			same = same && a.Data[i] == b.Data[i]
		}
		if same != (w.Name != "layer2.weight") {
			t.Errorf("%s is unchanged: %v, want %v", w.Name, same, !same)
		}
	}
	if len(m.Inputs()) != 1 || tr.done != 2 {
		// Each of 2 epochs has one step, since 20 samples fit into one batch.
		t.Errorf("the model has the inputs %v, want one; the trainer counts %d steps, want 2", m.Inputs(), tr.done)
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	m, err := MLP(1, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	good := Spec{Model: m, Loss: SquaredError, Optimiser: SGD{Rate: 0.1}}
	for name, change := range map[string]func(*Spec){
		"no model":           func(s *Spec) { s.Model = nil },
		"no loss":            func(s *Spec) { s.Loss = Loss{} },
		"no optimiser":       func(s *Spec) { s.Optimiser = nil },
		"rate 0":             func(s *Spec) { s.Optimiser = Adam{} },
		"rate NaN":           func(s *Spec) { s.Optimiser = SGD{Rate: math.NaN()} },
		"momentum 1":         func(s *Spec) { s.Optimiser = SGD{Rate: 1, Momentum: 1} },
		"beta 2":             func(s *Spec) { s.Optimiser = AdamW{Rate: 1, Beta1: 2} },
		"unknown output":     func(s *Spec) { s.Output = "z" },
		"unknown parameter":  func(s *Spec) { s.Parameters = []string{"w"} },
		"repeated parameter": func(s *Spec) { s.Parameters = []string{"layer1.bias", "layer1.bias"} },
		"clip -1":            func(s *Spec) { s.Clip = -1 },
	} {
		spec := good
		change(&spec)
		if tr, err := New(rt, spec); err == nil {
			tr.Close()
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	tr, err := New(rt, good)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	x, y := tensor.New(2, 4), tensor.New(2, 3)
	for name, b := range map[string]Batch{
		"empty":         {},
		"two inputs":    {Inputs: []tensor.Tensor{x, x}, Targets: Targets{Target: y}},
		"input width":   {Inputs: []tensor.Tensor{tensor.New(2, 5)}, Targets: Targets{Target: y}},
		"target length": {Inputs: []tensor.Tensor{x}, Targets: Targets{Target: tensor.New(3, 3)}},
		"target width":  {Inputs: []tensor.Tensor{x}, Targets: Targets{Target: tensor.New(2, 2)}},
	} {
		if _, err := tr.Step(t.Context(), b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	x.Data[3] = float32(math.NaN())
	if _, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Target: y}}); err == nil || !strings.Contains(err.Error(), "loss is NaN") {
		t.Errorf("an input of NaN: error %v", err)
	}
	x.Data[3] = 0
	if _, err := tr.Step(t.Context(), Batch{Inputs: []tensor.Tensor{x}, Targets: Targets{Target: y}}); err != nil {
		t.Errorf("a step after a failed step: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.Fit(ctx, linearData(10, 1), nil, FitOptions{Epochs: 1}); err == nil {
		t.Error("a cancelled context: no error")
	}
	if _, err := tr.Fit(t.Context(), linearData(10, 1), nil, FitOptions{Epochs: 1, Patience: 1}); err == nil {
		t.Error("patience without validation: no error")
	}
	if _, err := MLP(1, 4); err == nil {
		t.Error("an MLP without layers: no error")
	}
	if _, err := rewrite.WeightsAsInputs(m, "none"); err == nil {
		t.Error("a missing weight as an input: no error")
	}
	if _, err := rewrite.WithWeights(m, map[string]tensor.Tensor{"layer1.bias": tensor.New(2)}); err == nil {
		t.Error("weights of another shape: no error")
	}
}

// Native operators (package internal/accel) replace the convolutions, their gradients and the
// updates of Adam in the graph of a training step. Their domain is noether, that of standard
// operators is empty.
func TestAcceleratedStep(t *testing.T) {
	if accel.Width() == 0 { // values in a SIMD vector; 0: there are no native operators
		t.Skip("needs the native operators: a build for amd64 without the tag noaccel, on a CPU with AVX2")
	}
	m, err := ResNet{Shape: []int{3, 9, 12}, Classes: 3, Widths: []int{16, 24}, Blocks: []int{1}, Seed: 1}.Build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := newProgram(Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Optimiser: Adam{Rate: 1e-3, WeightDecay: 1e-3}, Schedule: Constant})
	if err != nil {
		t.Fatal(err)
	}
	step, err := p.step()
	if err != nil {
		t.Fatal(err)
	}
	nodes, convolutions := map[string]int{}, 0 // nodes: the number of each operator
	for _, n := range m.Nodes() {
		if n.GetOpType() == "Conv" {
			convolutions++
		}
	}
	if step, err = accel.Rewrite(step); err != nil {
		t.Fatal(err)
	}
	for _, n := range step.Nodes() {
		nodes[n.GetDomain()+"."+n.GetOpType()]++
	}
	// The first convolution needs no gradient with respect to its input.
	for op, want := range map[string]int{
		"noether.Conv": convolutions, "noether.ConvTranspose": convolutions - 1, "noether.ConvKernelGradient": convolutions,
		"noether.Adam": len(p.parameters), ".Conv": 0, ".ConvTranspose": 0,
	} {
		if nodes[op] != want {
			t.Errorf("%d nodes %s, want %d", nodes[op], op, want)
		}
	}
}
