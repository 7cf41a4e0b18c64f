//go:build linux

package seis

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkCost times the accumulator (running sums) of SEIS for a layer of 64 channels and 14 x 14
// to 56 x 56 positions on 100 to 10,000 images, for the table of docs/reference/measures/seis.md.
// It reports the processor time of all updates (update-s) and of the scores (score-s) in the last
// iteration, and the peak memory of the process. blurredNoise (see bench_test.go) fills
// activations, here z and zt on x and T(x), with random maps. Run each sub-benchmark in a process
// of its own, so that the peak is its own.
func BenchmarkCost(b *testing.B) {
	const channels, batch = 64, 32
	for _, side := range []int{14, 28, 56} {
		for _, n := range []int{100, 1000, 10000} {
			for _, interval := range []bool{true, false} {
				b.Run(fmt.Sprintf("side=%d/images=%d/interval=%t", side, n, interval), func(b *testing.B) {
					g := rand.New(rand.NewPCG(1, 1))
					z, zt := tensor.New(batch, channels, side, side), tensor.New(batch, channels, side, side)
					blurredNoise(g, z, side)
					blurredNoise(g, zt, side)
					for i := range zt.Data {
						zt.Data[i] += z.Data[i]
					}
					// What is measured: a layer, and the division of n samples into groups
					// (Layout).
					site := measure.Site{Layer: tensor.Layer{Shape: z.Shape[1:], Axes: "NCHW"}, Layout: measure.NewLayout(n)}
					m := New(Settings{Variance: 0.99, Positions: 3136, Null: true, Interval: interval})
					for b.Loop() {
						a, err := m.New(site)
						if err != nil {
							b.Fatal(err)
						}
						start := processorTime()
						for lo := 0; lo < n; lo += batch {
							part := &measure.Batch{Clean: z.Slice(0, min(batch, n-lo)), Transformed: zt.Slice(0, min(batch, n-lo))}
							for p := lo; p < min(lo+batch, n); p++ {
								part.Place, part.Index = append(part.Place, p), append(part.Index, p)
							}
							if err := a.Update(part); err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric((processorTime() - start).Seconds(), "update-s")
						start = processorTime()
						if _, err := a.Scores(); err != nil {
							b.Fatal(err)
						}
						b.ReportMetric((processorTime() - start).Seconds(), "score-s")
					}
					b.ReportMetric(float64(usage().Maxrss)/1024, "peak-MiB") // Linux counts Maxrss in KiB
				})
			}
		}
	}
}

// BenchmarkFewObservations measures the processor time of a layer of one channel on 100 samples,
// that is, with 100 observations (channels of samples) of 1,024 or 3,136 positions. The accumulator
// holds the second moments of the positions ("moments") or the observations themselves ("rows").
func BenchmarkFewObservations(b *testing.B) {
	for _, side := range []int{32, 56} {
		g := rand.New(rand.NewPCG(1, 1))
		z, zt := tensor.New(100, 1, side, side), tensor.New(100, 1, side, side)
		blurredNoise(g, z, side)
		blurredNoise(g, zt, side)
		for i := range zt.Data {
			zt.Data[i] += z.Data[i]
		}
		site := siteOf("NCHW", z)
		m := New(Settings{Variance: 0.99, Positions: 3136, Null: true, Interval: true}).(*seis)
		p, _ := featureMapsOf(site.Layer, 3136)
		batch := &measure.Batch{Clean: z, Transformed: zt}
		for i := range 100 {
			batch.Place, batch.Index = append(batch.Place, i), append(batch.Index, i)
		}
		// p describes the feature maps, which are not pooled. A view holds what accumulators of the
		// layer share.
		for name, newOne := range map[string]func() measure.Accumulator{
			"moments": func() measure.Accumulator { return newAccumulator(m, site, p, m.clean.view(site, p)) },
			"rows":    func() measure.Accumulator { return newRowAccumulator(m, site, p) },
		} {
			b.Run(fmt.Sprintf("side=%d/%s", side, name), func(b *testing.B) {
				start := processorTime()
				for b.Loop() {
					a := newOne()
					if err := a.Update(batch); err != nil {
						b.Fatal(err)
					}
					if _, err := a.Scores(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((processorTime()-start).Seconds()/float64(b.N), "processor-s/op")
			})
		}
	}
}

// usage returns the resources that the process has used.
func usage() (u syscall.Rusage) {
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u
}

// processorTime returns the processor time of the process in user mode, over all threads.
func processorTime() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano())
}
