package model_test

import (
	"context"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// envModel names the environment variable that holds the path of the model that the benchmarks run,
// for instance a ResNet-18 at 224 x 224.
const envModel = "NOETHER_BENCH_MODEL"

// Environment variables with settings of the benchmarks.
const (
	envBatch   = "NOETHER_BENCH_BATCH"   // batch size; default: 8
	envSize    = "NOETHER_BENCH_SIZE"    // side of the square images in pixels; default: 224
	envThreads = "NOETHER_BENCH_THREADS" // threads of ONNX Runtime; default: one for each core
	envLayers  = "NOETHER_BENCH_LAYERS"  // patterns of the layers that BenchmarkLayers reads
)

// setting returns the number in an environment variable, or fallback if it is unset.
func setting(b *testing.B, name string, fallback int) int {
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatalf("%s: %v", name, err)
	}
	return n
}

// benchmarkLayers measures forward passes of a batch that read the layers that match the patterns
// (op:Relu: the outputs of ReLUs) and, if output is set, the output of the model.
// Spin lets the threads of ONNX Runtime wait busily between runs.
func benchmarkLayers(b *testing.B, output bool, layers ...string) {
	path := os.Getenv(envModel)
	if path == "" {
		b.Skipf("%s is not set: no model to measure", envModel)
	}
	batch, size := setting(b, envBatch, 8), setting(b, envSize, 224)
	m, err := modeltest.Open(b, path, model.Options{Layers: layers, Size: [2]int{size, size}}, ort.NetworkOptions{Threads: setting(b, envThreads, 0), Spin: true})
	if err != nil {
		b.Fatal(err)
	}
	s, err := m.NewSession(m.Layers(), output)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	buf, err := s.NewBuffers(batch)
	if err != nil {
		b.Fatal(err)
	}
	f := m.Frame()
	height, width := f.Height, f.Width
	if height == 0 || width == 0 { // the model takes any size
		height, width = size, size
	}
	images := make([]tensor.Tensor, batch)
	for i := range images {
		images[i] = tensor.New(f.Channels, height, width)
		for j := range images[i].Data {
			images[i].Data[j] = float32((i+j*7)%256) / 255
		}
	}
	run := func() {
		if err := s.Run(context.Background(), images, buf); err != nil {
			b.Fatal(err)
		}
	}
	for range 2 {
		run()
	}
	leastCPU := time.Duration(math.MaxInt64)
	for b.Loop() {
		before := machine.CPUTime()
		run()
		leastCPU = min(leastCPU, machine.CPUTime()-before)
	}
	b.ReportMetric(float64(leastCPU.Microseconds())/float64(batch)/1e3, "cpu-ms/image")
	b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "images/s")
	values := 0
	for _, l := range m.Layers() {
		values += tensor.Size(l.Shape)
	}
	b.ReportMetric(float64(len(m.Layers())), "layers")
	b.ReportMetric(float64(4*values)/(1<<20), "MiB/image")
	if peak := machine.PeakMemory(); peak > 0 {
		b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	}
}

// BenchmarkEngine runs the unchanged file in a session of ONNX Runtime, without preprocessing and
// without reading layers, as an upper bound of the images per second.
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
	s, err := rt.NewSessionFromFile(path, []string{input}, []string{output}, ort.Options{Threads: setting(b, envThreads, 0), Spin: true})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	batch, size := setting(b, envBatch, 8), setting(b, envSize, 224)
	pixels := make([]float32, batch*3*size*size)
	for i := range pixels {
		pixels[i] = float32(i*7%256) / 255
	}
	x, err := ort.Wrap(rt, pixels, batch, 3, size, size)
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

// BenchmarkOutput reads no layers, only the output.
func BenchmarkOutput(b *testing.B) { benchmarkLayers(b, true) }

// BenchmarkLayersRelu reads the outputs of all ReLUs.
func BenchmarkLayersRelu(b *testing.B) { benchmarkLayers(b, false, "op:Relu") }

// BenchmarkLayers reads the layers of the patterns in NOETHER_BENCH_LAYERS, with commas between
// them.
func BenchmarkLayers(b *testing.B) {
	pattern := os.Getenv(envLayers)
	if pattern == "" {
		b.Skipf("%s is not set: no layers to read", envLayers)
	}
	benchmarkLayers(b, false, strings.Split(pattern, ",")...)
}

// BenchmarkLayersAll reads every layer: each tensor that depends on the image and whose first axis
// is the batch.
func BenchmarkLayersAll(b *testing.B) { benchmarkLayers(b, false, "all") }
