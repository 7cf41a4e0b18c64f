package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/testdata"
)

// benchStudy returns a study of a ResNet-20 on the first limit images of the CIFAR-10 test set. Its
// work is that of bench.py, the PyTorch program of docs/results/performance.md.
func benchStudy(b *testing.B, limit int, layers, transforms, measures string) *study.Study {
	b.Helper()
	text := fmt.Sprintf(`name: bench
data: [{name: cifar10, cifar10: %q, limit: %d}]
models: [{name: resnet20, onnx: %q, preprocess: {mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}, layers: [%q]}]
transforms: [%s]
measures: [%s]
`, testdata.Path(b, "cifar10", "test_batch.bin"), limit, testdata.Path(b, "models", "resnet20-cifar10.onnx"), layers, transforms, measures)
	s, err := study.Parse("bench.yaml", []byte(text), nil)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// benchRun measures complete runs of a study: reading, forward passes, measures and files. images
// is the number of images of a run, as bench.py counts them. NOETHER_BENCH_DEVICE is the device, by
// default the CPU.
func benchRun(b *testing.B, s *study.Study, images int) {
	library := blas.Load()
	// The library, the memory limits and the garbage collector are set as the command sets them.
	o := study.Options{Runtime: orttest.Load(b), Device: os.Getenv("NOETHER_BENCH_DEVICE"), BLAS: &library, Memory: machine.MemoryLimit(), Free: machine.FreeMemory()}
	machine.BoundGarbage(int64(s.Memory))
	for b.Loop() {
		start := time.Now()
		if _, err := study.Run(b.Context(), s, filepath.Join(b.TempDir(), "run"), o); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(images)/time.Since(start).Seconds(), "images/s")
	}
	b.ReportMetric(float64(peakBytes(b))/(1<<20), "MiB-peak")
	b.Logf("BLAS: %s", library)
}

// peakBytes returns the peak memory of the process, or 0 if the system does not report it. Run only
// one benchmark per process.
func peakBytes(b *testing.B) int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return kib << 10
}

// BenchmarkEffectiveInvariance measures effective invariance under rotations by 90, 180 and 270
// degrees on the CIFAR-10 test set, as bench.py ei does. Each image has four forward passes, and
// the rate counts these.
func BenchmarkEffectiveInvariance(b *testing.B) {
	benchRun(b, benchStudy(b, 10000, "output", "{name: quarter, rotate: {values: [90, 180, 270]}}", "effective-invariance"), 40000)
}

// BenchmarkSEIS measures SEIS, the scores of package measure/seis, at the 19 convolutions, for
// 1,000, 2,000 and 10,000 pairs of a clean and a transformed image. A null is the score of shuffled
// pairs. bench.py seis has 2,000 pairs.
func BenchmarkSEIS(b *testing.B) {
	for _, c := range []struct {
		name, settings string
		n              int
	}{
		{"scores", "{null: false, interval: false}", 2000},
		{"null", "{interval: false}", 2000},
		{"null-and-interval", "{}", 2000},
		{"scores-1000", "{null: false, interval: false}", 1000},
		{"scores-10000", "{null: false, interval: false}", 10000},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchRun(b, benchStudy(b, c.n, "op:Conv", "{name: tilt, rotate: [-15, 15]}", "seis: "+c.settings), c.n)
		})
	}
}
