package train

import (
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/gpu/gputest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/tensor"
)

// TestTrainingOnWebGPU checks that training on the CPU and on WebGPU gives the same weights and
// losses, also in a second training after Restart (from the initial weights). Some epochs are
// rolled back: they increase the loss, and the weights and the optimiser's state on the device
// return to those before the epoch. The driver runs on the CPU; without it the tests are skipped.
//
// newMLP(t, spec, sizes...), linearData(samples, seed), of a linear function, and floats are in
// train_test.go. near, for agreement to 1e-4, is in network_test.go.
func TestTrainingOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	type outcome struct {
		epochs  []Epoch
		weights map[string]tensor.Tensor
	}
	var results [2][2]outcome // by device and training: before and after Restart
	for i, device := range []string{"cpu", "webgpu"} {
		spec := Spec{Loss: SquaredError, Optimiser: Adam{Rate: 0.3}, StepsPerRun: 2, Engine: ort.Options{Device: device}}
		tr := newMLP(t, spec, 4, 8, 2)
		start, err := tr.Model()
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			epochs, err := tr.Fit(t.Context(), linearData(70, 1), linearData(20, 2), FitOptions{Epochs: 4, Seed: 9, KeepLast: true, RollbackFactor: 0.5})
			if err != nil {
				t.Fatal(err)
			}
			results[i][k] = outcome{epochs, tr.Weights()}
			if err := tr.Restart(start); err != nil {
				t.Fatal(err)
			}
		}
	}
	rolledBack := 0
	for k := range 2 {
		want, got := results[0][k], results[1][k]
		for e := range want.epochs {
			near(t, "validation loss", []float64{got.epochs[e].Validation}, []float64{want.epochs[e].Validation})
			if want.epochs[e].RolledBack {
				rolledBack++
			}
		}
		for name, w := range want.weights {
			near(t, name, tensor.Float64s(got.weights[name].Data), tensor.Float64s(w.Data))
		}
	}
	if rolledBack == 0 {
		t.Error("no epoch was rolled back")
	}
}

// TestGoldenNetworkOnWebGPU compares the losses and the weights of a ResNet in steps on WebGPU with
// those of PyTorch, which readGoldenNetwork reads from testdata/network.json.
func TestGoldenNetworkOnWebGPU(t *testing.T) {
	gputest.UseDriver(t)
	golden, batches := readGoldenNetwork(t, "network")
	m, err := ResNet{Shape: []int{2, 6, 6}, Classes: 3, Widths: []int{4, 6}, Blocks: []int{1}, Seed: 1}.Build()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(orttest.Load(t), Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Optimiser: SGD{Rate: 0.05, Momentum: 0.9, WeightDecay: 5e-3}, Engine: ort.Options{Device: "webgpu"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	start := tr.Weights()
	for name, w := range start {
		start[name] = floats(golden.Start[name], w.Shape...)
	}
	if err := tr.SetWeights(start); err != nil {
		t.Fatal(err)
	}
	for i, want := range golden.Losses {
		loss, err := tr.Step(t.Context(), batches[i])
		if err != nil {
			t.Fatal(err)
		}
		near(t, "loss", []float64{loss}, []float64{want})
	}
	for name, w := range tr.Weights() {
		near(t, name, tensor.Float64s(w.Data), golden.End[name])
	}
}
