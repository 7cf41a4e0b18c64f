package train

import (
	"fmt"
	"os"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// envDevice is the environment variable with the device of the benchmarks; without it the CPU.
const envDevice = "NOETHER_BENCH_DEVICE"

// BenchmarkProbe measures an epoch of the regression probe (a network trained on the vectors of a
// layer) of docs/results/performance.md, an MLP of sizes 768, 512, 256 and 1 in batches of 32. With
// spin, threads of ONNX Runtime wait for work in a busy loop. With stepsPerRun 8, one run of the
// graph makes eight optimiser steps.
func BenchmarkProbe(b *testing.B) {
	for _, spin := range []bool{false, true} {
		for _, perRun := range []int{1, 8} {
			b.Run(fmt.Sprintf("spin=%v/stepsPerRun=%d", spin, perRun), func(b *testing.B) {
				const n = 2048
				m, err := MLP(1, 768, 512, 256, 1) // the first argument is the seed
				if err != nil {
					b.Fatal(err)
				}
				tr, err := New(orttest.Load(b), Spec{Model: m, Loss: SquaredError, Optimiser: Adam{Rate: 1e-3, WeightDecay: 1e-3},
					StepsPerRun: perRun, Engine: ort.Options{Spin: spin, Device: os.Getenv(envDevice)}})
				if err != nil {
					b.Fatal(err)
				}
				defer tr.Close()
				r, x, y := seed.Rand(1, "probe"), tensor.New(n, 768), tensor.New(n, 1)
				for _, t := range []tensor.Tensor{x, y} {
					for i := range t.Data {
						t.Data[i] = float32(r.NormFloat64())
					}
				}
				data := &Arrays{Inputs: []tensor.Tensor{x}, Targets: Targets{Target: y}}
				before := machine.CPUTime()
				for b.Loop() {
					if _, err := tr.Fit(b.Context(), data, nil, FitOptions{Epochs: 1}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "samples/s")
				b.ReportMetric((machine.CPUTime()-before).Seconds()*1e6/float64(n*b.N), "cpu-us/sample")
			})
		}
	}
}

// BenchmarkSGD measures a step of SGD with momentum and weight decay, on the ResNet-18 for CIFAR of
// docs/results/performance.md with batches of 32 and of 128, and on the convolutional network of
// papers/effective-invariance/training/cifar.yaml, which has no residual connections, with batches
// of 64.
func BenchmarkSGD(b *testing.B) {
	resnet := ResNet{Shape: []int{3, 32, 32}, Classes: 10, Widths: []int{64, 128, 256, 512}, Blocks: []int{2}, Seed: 1}
	convnet := ConvNet{Shape: []int{3, 32, 32}, Classes: 10, Widths: []int{16, 32, 64, 128}, Dropout: 0.3, Seed: 1}
	for _, c := range []struct {
		name  string
		batch int
		build func() (*onnx.Model, error)
	}{{"cifar_resnet18", 32, resnet.Build}, {"cifar_resnet18_128", 128, resnet.Build}, {"cifar_convnet", 64, convnet.Build}} {
		b.Run(c.name, func(b *testing.B) {
			m, err := c.build()
			if err != nil {
				b.Fatal(err)
			}
			tr, err := New(orttest.Load(b), Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Engine: ort.Options{Spin: true, Device: os.Getenv(envDevice)},
				Optimiser: SGD{Rate: 0.01, Momentum: 0.9, WeightDecay: 5e-4}})
			if err != nil {
				b.Fatal(err)
			}
			defer tr.Close()
			batch := Batch{Inputs: []tensor.Tensor{tensor.New(c.batch, 3, 32, 32)}}
			r := seed.Rand(1, "sgd")
			for i := range batch.Inputs[0].Data {
				batch.Inputs[0].Data[i] = r.Float32()
			}
			for range c.batch {
				batch.Classes = append(batch.Classes, r.IntN(10))
			}
			step := func() {
				if _, err := tr.Step(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			step() // the first step allocates the buffers
			before := machine.CPUTime()
			for b.Loop() {
				step()
			}
			images := float64(c.batch * b.N)
			b.ReportMetric(images/b.Elapsed().Seconds(), "images/s")
			b.ReportMetric((machine.CPUTime()-before).Seconds()*1e3/images, "cpu-ms/image")
		})
	}
}

// BenchmarkAdversarial measures training steps of the ResNet-18 for CIFAR in batches of 32: on
// unchanged images, and with each defence (method of adversarial training) on adversarial examples
// from one step of gradient ascent.
func BenchmarkAdversarial(b *testing.B) {
	m, err := ResNet{Shape: []int{3, 32, 32}, Classes: 10, Widths: []int{64, 128, 256, 512}, Blocks: []int{2}, Seed: 1}.Build()
	if err != nil {
		b.Fatal(err)
	}
	const n = 32
	r, batch := seed.Rand(1, "adversarial"), Batch{Inputs: []tensor.Tensor{tensor.New(n, 3, 32, 32)}, Targets: Targets{Classes: make([]int, n)}}
	for i := range batch.Inputs[0].Data {
		batch.Inputs[0].Data[i] = r.Float32()
	}
	for _, defence := range []Defence{"", AdversarialTraining, TRADES, MART} {
		b.Run("defence="+string(defence), func(b *testing.B) {
			spec := Spec{Model: m, Loss: CrossEntropy, TrainingMode: true, Optimiser: SGD{Rate: 0.001, Momentum: 0.9}}
			if defence != "" {
				spec.Adversarial = &Adversarial{Defence: defence, Norm: "l2", Radius: 0.5, Steps: 1, Beta: 6}
			}
			tr, err := New(orttest.Load(b), spec)
			if err != nil {
				b.Fatal(err)
			}
			defer tr.Close()
			for b.Loop() {
				if _, err := tr.Step(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
