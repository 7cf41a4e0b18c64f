package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/gram"
)

func randomRows(n, p int) []float32 {
	g := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n*p)
	for i := range x {
		x[i] = float32(g.NormFloat64()) + 3
	}
	return x
}

// summed makes a block as SEIS does.
func summed(rows []float32, p int) Block {
	sum := make([]float64, p)
	SumRows(sum, rows)
	return CentreSummed(rows, sum)
}

// How blocks become sums on one core, with the products of a library and with those of package gram.
func BenchmarkScatter(b *testing.B) {
	blas := Accelerate()
	blas.SetThreads(1)
	ways := map[string]func(rows []float32, p int) Block{"library": summed}
	if gram.Available() {
		ways["kernel"] = late
	}
	var scratch Scratch
	for _, c := range []struct{ n, d int }{{512, 1024}, {1024, 256}, {1024, 64}} {
		rows := randomRows(c.n, 2*c.d)
		run := func(way, what string, products int, add func()) {
			b.Run(fmt.Sprintf("n=%d/d=%d/%s/%s", c.n, c.d, what, way), func(b *testing.B) {
				for b.Loop() {
					add()
				}
				b.ReportMetric(2*float64(products)*float64(c.n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		for way, block := range ways {
			s, g, cross, perm := NewScatter[float64](2*c.d), NewScatter[float32](2*c.d), NewCross(c.d), rand.Perm(c.n)
			whole, half := len(s.Data), len(cross.Data)
			run(way, "whole", whole, func() { s.Add(block(rows, 2*c.d), nil, &scratch) })
			run(way, "part", whole, func() { s.Add(block(rows, 2*c.d), g, &scratch) })
			run(way, "null", half, func() { cross.Add(block(rows, 2*c.d), perm, &scratch) })
			run(way, "centre", 0, func() { block(rows, 2*c.d) })
		}
	}
}

// late makes a block of which package gram forms the products.
func late(rows []float32, p int) Block {
	sum := make([]float64, p)
	SumRows(sum, rows)
	return centreLate(rows, sum)
}
