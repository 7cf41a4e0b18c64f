package seis

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// blurredNoise fills a batch with square feature maps of white noise, blurred along rows and
// columns by the filter (1 3 3 1). Their spectrum decays. At 32 x 32 positions the rank of the
// subspace that holds 99 % of the variance is about that of the first layers of a trained ResNet.
func blurredNoise(g *rand.Rand, z tensor.Tensor, side int) {
	for m := 0; m < len(z.Data); m += side * side {
		plane := z.Data[m : m+side*side]
		for i := range plane {
			plane[i] = float32(g.NormFloat64())
		}
		for line := range side {
			blur(plane[line*side:], 1, side)
		}
		for line := range side {
			blur(plane[line:], side, side)
		}
	}
}

// blur replaces each of n values of x, which are step apart, by a weighted sum of it and the three
// that follow. After the last value follows the first.
func blur(x []float32, step, n int) {
	line := make([]float32, n)
	for i := range n {
		line[i] = x[i*step]
	}
	for i := range n {
		x[i*step] = line[i] + 3*line[(i+1)%n] + 3*line[(i+2)%n] + line[(i+3)%n]
	}
}

// BenchmarkSEIS times SEIS (Subspace-based Equivariance and Invariance Scores) of layers of the
// three shapes that a CIFAR ResNet-20 has (7, 6 and 6 layers), without the network. It uses 2,000
// pairs (z, z') of activations, as the command "bench.py seis" of the reference implementations
// does (docs/results/performance.md). Positions is the number of positions above which maps are
// pooled; here none are.
func BenchmarkSEIS(b *testing.B) {
	const n, batch = 2000, 64
	for _, layer := range []struct{ channels, side int }{{16, 32}, {32, 16}, {64, 8}} {
		for _, v := range []struct {
			name     string
			settings Settings
		}{
			{"scores alone", Settings{Variance: 0.99, Positions: 3136}},
			{"null", Settings{Variance: 0.99, Positions: 3136, Null: true}},
			{"null+interval", Defaults()},
		} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", layer.channels, layer.side, layer.side, v.name), func(b *testing.B) {
				g := rand.New(rand.NewPCG(1, 1))
				z, zt := tensor.New(batch, layer.channels, layer.side, layer.side), tensor.New(batch, layer.channels, layer.side, layer.side)
				// What is measured: a layer, and the division of n samples into groups (Layout).
				site := measure.Site{Layer: tensor.Layer{Shape: z.Shape[1:], Axes: "NCHW"}, Layout: measure.NewLayout(n)}
				var batches []*measure.Batch
				for range 2 {
					blurredNoise(g, z, layer.side)
					blurredNoise(g, zt, layer.side)
					for i := range zt.Data {
						zt.Data[i] += z.Data[i]
					}
					batches = append(batches, &measure.Batch{Clean: z.Clone(), Transformed: zt.Clone()})
				}
				for b.Loop() {
					a, err := New(v.settings).New(site)
					if err != nil {
						b.Fatal(err)
					}
					for lo := 0; lo < n; lo += batch {
						part := *batches[lo/batch%2]
						hi := min(lo+batch, n)
						for p := lo; p < hi; p++ { // place in the order of reading, and index in the data
							part.Place, part.Index = append(part.Place, p), append(part.Index, p)
						}
						part.Clean, part.Transformed = part.Clean.Slice(0, hi-lo), part.Transformed.Slice(0, hi-lo)
						if err := a.Update(&part); err != nil {
							b.Fatal(err)
						}
					}
					scores, err := a.Scores()
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(scores[2].Value, "rank") // the third statistic
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
				b.ReportMetric(float64(New(v.settings).Cost(site))/1e6, "accumulator-MB")
			})
		}
	}
}
