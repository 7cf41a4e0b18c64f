package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"
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

func BenchmarkScatter(b *testing.B) {
	Accelerate()
	var scratch Scratch
	for _, c := range []struct{ n, d int }{{512, 1024}, {1024, 256}, {1024, 64}} {
		rows := randomRows(c.n, 2*c.d)
		for _, part := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/d=%d/part=%v", c.n, c.d, part), func(b *testing.B) {
				s := NewScatter[float64](2 * c.d)
				var g *Scatter[float32]
				if part {
					g = NewScatter[float32](2 * c.d)
				}
				for b.Loop() {
					s.Add(summed(rows, 2*c.d), g, &scratch)
				}
				b.ReportMetric(4*float64(c.n)*float64(c.d)*float64(c.d)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		b.Run(fmt.Sprintf("n=%d/d=%d/cross", c.n, c.d), func(b *testing.B) {
			s := NewCross(c.d)
			perm := rand.Perm(c.n)
			for b.Loop() {
				s.Add(summed(rows, 2*c.d), perm, &scratch)
			}
		})
		b.Run(fmt.Sprintf("n=%d/d=%d/centre", c.n, c.d), func(b *testing.B) {
			for b.Loop() {
				summed(rows, 2*c.d)
			}
		})
	}
}
