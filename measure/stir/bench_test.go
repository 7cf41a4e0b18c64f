package stir_test

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/measure/stir"
)

// BenchmarkSTIR measures STIR on 100 images between a ResNet-20 and a ResNet-32, with the paper's
// 1,000 steps, or with NOETHER_BENCH_OPTIMISER=adam and 150 steps. NOETHER_BENCH_STEPS and
// NOETHER_BENCH_IMAGES set other numbers.
func BenchmarkSTIR(b *testing.B) {
	images := 100
	if n, err := strconv.Atoi(os.Getenv("NOETHER_BENCH_IMAGES")); err == nil {
		images = n
	}
	one, other, x := resnet(b, "resnet20"), resnet(b, "resnet32"), cifar(b, images)
	s := stir.Defaults()
	if o := os.Getenv("NOETHER_BENCH_OPTIMISER"); o != "" {
		s.Optimiser = o
	}
	if n, err := strconv.Atoi(os.Getenv("NOETHER_BENCH_STEPS")); err == nil {
		s.Steps = n
	}
	before := processorTime(b)
	for b.Loop() {
		scores, err := stir.Compare(b.Context(), one, other, x, s, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(value(b, scores, "representation-distance", "").Value, "distance")
		v := value(b, scores, "stir", "")
		b.ReportMetric(v.Value, "stir")
		b.ReportMetric(v.Low, "low")
		b.ReportMetric(v.High, "high")
		b.ReportMetric(value(b, scores, "cka", "").Value, "cka")
	}
	b.ReportMetric((processorTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
}

// processorTime returns the CPU time of the process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
