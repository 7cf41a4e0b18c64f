package stir_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/procedure/stir"
)

// BenchmarkSTIR measures STIR (similarity through inverted representations; Nanda et al. 2022) of a
// ResNet-32 given a ResNet-20, both trained on CIFAR-10. Gradient descent inverts each image: it
// finds another image with the same representation by the ResNet-20. STIR is the similarity of the
// ResNet-32's representations of both. By default the benchmark inverts 100 images in the paper's
// 1,000 optimiser steps, or in 150 with NOETHER_BENCH_OPTIMISER=adam. NOETHER_BENCH_STEPS and
// NOETHER_BENCH_IMAGES set other numbers.
func BenchmarkSTIR(b *testing.B) {
	images := 100
	if n, err := strconv.Atoi(os.Getenv("NOETHER_BENCH_IMAGES")); err == nil {
		images = n
	}
	first, second, x := resnet(b, "resnet20"), resnet(b, "resnet32"), cifar(b, images)
	s := stir.Defaults()
	if o := os.Getenv("NOETHER_BENCH_OPTIMISER"); o != "" {
		s.Optimiser = o
	}
	if n, err := strconv.Atoi(os.Getenv("NOETHER_BENCH_STEPS")); err == nil {
		s.Steps = n
	}
	before := machine.CPUTime()
	for b.Loop() {
		scores, err := stir.Compare(b.Context(), first, second, x, s, 1)
		if err != nil {
			b.Fatal(err)
		}
		// value returns a statistic in a variant, of which "" is the default.
		b.ReportMetric(value(b, scores, "representation-distance", "").Value, "distance")
		v := value(b, scores, "stir", "")
		b.ReportMetric(v.Value, "stir")
		b.ReportMetric(v.Low, "low")
		b.ReportMetric(v.High, "high")
		b.ReportMetric(value(b, scores, "cka", "").Value, "cka")
	}
	b.ReportMetric((machine.CPUTime()-before).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
}
