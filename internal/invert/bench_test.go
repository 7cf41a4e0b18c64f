package invert_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/invert"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
)

// benchSearch measures steps of an inversion of a model's penultimate layer: gradient descent on
// images until their activations are those of the images x. An operation is a step. random, in
// invert_test.go, returns images with uniform values in [0, 1).
func benchSearch(b *testing.B, path string, side, batch int) {
	m, err := modeltest.Open(b, path, model.Options{Layers: []string{"penultimate"}, Preprocess: cifarPreprocess, Size: [2]int{side, side}}, ort.NetworkOptions{Device: os.Getenv("NOETHER_BENCH_DEVICE")})
	if err != nil {
		b.Fatal(err)
	}
	x, start := random(seed.Rand(1), batch, 3, side, side), random(seed.Rand(2), batch, 3, side, side)
	s, err := invert.New(invert.Match(m, m.Layers()[0]), invert.Options{Steps: 2 + b.N, Batch: batch}) // and one more, which evaluates the last images
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	steps := 0
	var before time.Duration
	_, err = s.Run(b.Context(), invert.Problem{Images: x, Start: start, Progress: func(invert.Progress) {
		if steps++; steps == 3 { // the first steps allocate; b.N remain
			before = machine.CPUTime()
			b.ResetTimer()
		}
	}})
	b.StopTimer()
	if err != nil {
		b.Fatal(err)
	}
	spent := machine.CPUTime() - before
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "images/s")
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N*batch)/1000, "cpu-ms/image")
}

// BenchmarkStep measures the model named by NOETHER_BENCH_MODEL, with images of side
// NOETHER_BENCH_SIZE in batches of NOETHER_BENCH_BATCH, on the device that NOETHER_BENCH_DEVICE
// names (the CPU without it). The default is the ResNet-20 of the test data with 25 images.
func BenchmarkStep(b *testing.B) {
	number := func(name string, byDefault int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return byDefault
	}
	path := os.Getenv("NOETHER_BENCH_MODEL")
	if path == "" {
		path = testdata.Path(b, "models", "resnet20-cifar10.onnx")
	}
	benchSearch(b, path, number("NOETHER_BENCH_SIZE", 32), number("NOETHER_BENCH_BATCH", 25))
}
