package model_test

import (
	"context"
	"os"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
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

// BenchmarkEngine is a session of the engine for the file as it is, its output bound in place: what the engine can do without us.
func BenchmarkEngine(b *testing.B) {
	path := os.Getenv(envModel)
	if path == "" {
		b.Skipf("%s is not set: no model to measure", envModel)
	}
	rt := orttest.Load(b)
	graph, err := onnx.Read(path)
	if err != nil {
		b.Fatal(err)
	}
	input, output := graph.Inputs()[0].Name, graph.Outputs()[0].Name
	s, err := rt.NewSessionFromFile(path, []string{input}, []string{output}, ort.Options{Spin: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	const batch = 8
	pixels := make([]float32, batch*3*224*224)
	for i := range pixels {
		pixels[i] = float32(i*7%256) / 255
	}
	x, err := ort.Wrap(rt, pixels, batch, 3, 224, 224)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Close()
	outputs := []*ort.Value{nil}
	run := func() {
		if err := s.Run(b.Context(), []*ort.Value{x}, outputs); err != nil {
			b.Fatal(err)
		}
	}
	run()
	defer outputs[0].Close()
	for b.Loop() {
		run()
	}
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "images/s")
}

// BenchmarkBare reads the output alone: what our session can do.
func BenchmarkBare(b *testing.B) { benchmarkTaps(b, true) }

// BenchmarkTapsRelu reads the outputs of all ReLUs.
func BenchmarkTapsRelu(b *testing.B) { benchmarkTaps(b, false, "op:Relu") }

// BenchmarkTapsAll reads every tensor.
func BenchmarkTapsAll(b *testing.B) { benchmarkTaps(b, false, "all") }
