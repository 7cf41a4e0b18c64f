package equivariance_test

import (
	"testing"

	_ "github.com/noether-ml/noether/internal/simd/avx"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// resNet18 has the sides and channels of the feature maps of a ResNet-18 for images of 224 x 224,
// and the number of tensors of each size.
var resNet18 = []struct{ side, channels, tensors int }{{112, 64, 2}, {56, 64, 11}, {28, 128, 11}, {14, 256, 11}, {7, 512, 11}}

// BenchmarkResNet18 measures all feature maps of a ResNet-18, with random values, on pairs of an
// image and a transformed image. random, in equivariance_test.go, returns normal values for a seed
// and a shape.
func BenchmarkResNet18(b *testing.B) {
	// A quarter turn, a rotation by another angle, a translation by fractions of the side, and a
	// transformation that moves nothing.
	for name, tr := range map[string]transform.Transform{
		"quarter": transform.Rotate{Angle: transform.Fixed(90)}, "turn": transform.Rotate{Angle: transform.Fixed(20)},
		"shift": transform.Translate{X: transform.Fixed(0.03), Y: transform.Fixed(0.05)}, "colour": transform.Brightness{Factor: transform.Fixed(1.2)},
	} {
		b.Run(name, func(b *testing.B) {
			const n = 16 // pairs
			values := 0
			type layer struct {
				acc   measure.Accumulator
				batch *measure.Batch
				count int // tensors of this size
			}
			var layers []layer
			m := equivariance.New(equivariance.Settings{})
			for _, l := range resNet18 {
				// The layout, the order of the samples, has more of them than the benchmark reads.
				site := measure.Site{Layer: tensor.Layer{Name: "z", Shape: []int{l.channels, l.side, l.side}, Axes: "NCHW"}, Layout: measure.NewLayout(1 << 20), Motion: transform.Motions(tr)}
				acc, err := m.New(site)
				if err != nil {
					b.Fatal(err)
				}
				// Place is the position of a sample in the layout, Index that in the data set, and
				// Ops has the transformation of each sample.
				batch := &measure.Batch{Clean: random(1, n, l.channels, l.side, l.side), Transformed: random(2, n, l.channels, l.side, l.side)}
				for i := range n {
					batch.Place, batch.Index, batch.Label, batch.Motions = append(batch.Place, i), append(batch.Index, i), append(batch.Label, measure.NoLabel), append(batch.Motions, transform.MotionOf(tr.Draw(nil)))
				}
				layers = append(layers, layer{acc, batch, l.tensors})
				values += l.tensors * l.channels * l.side * l.side * n
			}
			for b.Loop() {
				for _, l := range layers {
					for range l.count {
						if err := l.acc.Update(l.batch); err != nil {
							b.Fatal(err)
						}
						for i := range l.batch.Place {
							l.batch.Place[i] += n
						}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(values), "ns/value")
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)/n, "ms/pair")
		})
	}
}
