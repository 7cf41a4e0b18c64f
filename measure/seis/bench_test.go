package seis

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// structured fills a batch with square maps of white noise blurred by (1 3 3 1) along rows and
// columns. Their spectrum decays, so that the rank at 32 x 32 is about that of the first layers of
// a trained ResNet.
func structured(g *rand.Rand, z tensor.Tensor, side int) {
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

// blur replaces each value by a weighted sum of it and the three that follow, in a circle.
func blur(x []float32, step, n int) {
	line := make([]float32, n)
	for i := range n {
		line[i] = x[i*step]
	}
	for i := range n {
		x[i*step] = line[i] + 3*line[(i+1)%n] + 3*line[(i+2)%n] + line[(i+3)%n]
	}
}

// BenchmarkSEIS measures layers of a CIFAR ResNet-20 on 2,000 pairs, as peers/bench.py seis does,
// without the network: the three kinds of layer, of which the network has 7, 6 and 6.
func BenchmarkSEIS(b *testing.B) {
	const n, batch = 2000, 64
	for _, kind := range []struct{ channels, side int }{{16, 32}, {32, 16}, {64, 8}} {
		for _, v := range []struct {
			name     string
			settings Settings
		}{
			{"scores", Settings{Variance: 0.99, Positions: 3136}},
			{"null", Settings{Variance: 0.99, Positions: 3136, Null: true}},
			{"null+interval", Defaults()},
		} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", kind.channels, kind.side, kind.side, v.name), func(b *testing.B) {
				g := rand.New(rand.NewPCG(1, 1))
				z, zt := tensor.New(batch, kind.channels, kind.side, kind.side), tensor.New(batch, kind.channels, kind.side, kind.side)
				site := measure.Site{Layer: onnx.Layer{Shape: z.Shape[1:], Axes: "NCHW"}, Layout: measure.NewLayout(n)}
				var batches []*measure.Batch
				for range 2 {
					structured(g, z, kind.side)
					structured(g, zt, kind.side)
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
						for p := lo; p < hi; p++ {
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
					b.ReportMetric(scores[2].Value, "rank")
				}
				b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
				b.ReportMetric(float64(New(v.settings).Cost(site))/1e6, "MB-held")
			})
		}
	}
}
