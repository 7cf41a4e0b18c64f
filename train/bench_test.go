package train

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/ort/orttest"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkProbe is an epoch of the regression probe of DESIGN.md's speed table, 768-512-256-1 in batches of 32.
func BenchmarkProbe(b *testing.B) {
	for _, spin := range []bool{false, true} {
		for _, together := range []int{1, 8} {
			b.Run(fmt.Sprintf("spin=%v/together=%d", spin, together), func(b *testing.B) {
				const n = 2048
				m, err := MLP(1, 768, 512, 256, 1)
				if err != nil {
					b.Fatal(err)
				}
				tr, err := New(orttest.Load(b), Spec{Model: m, Loss: SquaredError, Optimiser: Adam{Rate: 1e-3, WeightDecay: 1e-3},
					Together: together, Engine: ort.Options{Spin: spin}})
				if err != nil {
					b.Fatal(err)
				}
				defer tr.Close()
				r, x, y := keyed.Rand(1, "probe"), tensor.New(n, 768), tensor.New(n, 1)
				for _, t := range []tensor.Tensor{x, y} {
					for i := range t.Data {
						t.Data[i] = float32(r.NormFloat64())
					}
				}
				data := &Arrays{Inputs: []tensor.Tensor{x}, Target: y}
				for b.Loop() {
					if _, err := tr.Fit(b.Context(), data, nil, Fitting{Epochs: 1}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
