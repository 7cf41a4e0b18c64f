package model_test

import (
	"context"
	"os"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// envModel names the environment variable that holds the path of the model that the benchmarks run, for instance
// ResNet-18 at 224 as export.py of the peers writes it.
const envModel = "NOETHER_BENCH_MODEL"

// benchmarkTaps measures a run of 8 pictures that reads the layers of a pattern, in pictures a second.
func benchmarkTaps(b *testing.B, scores bool, layers ...string) {
	path := os.Getenv(envModel)
	if path == "" {
		b.Skipf("%s is not set: no model to measure", envModel)
	}
	m, err := model.Open(orttest.Load(b), path, model.Options{Layers: layers, Size: [2]int{224, 224}, Spin: true})
	if err != nil {
		b.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), scores)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const batch = 8
	buf, err := s.NewBuffers(batch)
	if err != nil {
		b.Fatal(err)
	}
	f := m.Frame()
	height, width := f.Height, f.Width
	if height == 0 || width == 0 {
		height, width = 224, 224
	}
	pictures := make([]tensor.Tensor, batch)
	for i := range pictures {
		pictures[i] = tensor.New(f.Channels, height, width)
		for j := range pictures[i].Data {
			pictures[i].Data[j] = float32((i+j*7)%256) / 255
		}
	}
	run := func() {
		if err := s.Run(context.Background(), pictures, buf); err != nil {
			b.Fatal(err)
		}
	}
	run()
	before := machine.CPUTime()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64((machine.CPUTime()-before).Microseconds())/float64(batch*b.N)/1e3, "cpu-ms/image")
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "images/s")
	b.ReportMetric(float64(len(m.Layers())), "layers")
}

// BenchmarkBare reads the output alone: what the engine can do.
func BenchmarkBare(b *testing.B) { benchmarkTaps(b, true) }

// BenchmarkTapsRelu reads the outputs of all ReLUs.
func BenchmarkTapsRelu(b *testing.B) { benchmarkTaps(b, false, "op:Relu") }

// BenchmarkTapsAll reads every tensor.
func BenchmarkTapsAll(b *testing.B) { benchmarkTaps(b, false, "all") }
