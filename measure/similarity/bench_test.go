package similarity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/noether-ml/noether/linalg"
)

var accelerate = sync.OnceFunc(func() { linalg.Accelerate() })

// correlated returns two representations that share some latent variables, n x p and n x q.
func correlated(seed uint64, n, p, q int) (x, y []float32) {
	g := rand.New(rand.NewPCG(seed, 7))
	const latent = 40
	wx, wy := make([]float32, latent*p), make([]float32, latent*q)
	for _, w := range [][]float32{wx, wy} {
		for i := range w {
			w[i] = float32(g.NormFloat64()) / 3
		}
	}
	z := make([]float32, latent)
	draw := func(w []float32, p int) []float32 {
		row := make([]float32, p)
		for j := range row {
			row[j] = float32(g.NormFloat64()) / 2
		}
		for l, v := range z {
			for j := range row {
				row[j] += v * w[l*p+j]
			}
		}
		for j := range row {
			row[j] = max(row[j], 0)
		}
		return row
	}
	for range n {
		for l := range z {
			z[l] = float32(g.NormFloat64()) / float32(1+l/4)
		}
		x, y = append(x, draw(wx, p)...), append(y, draw(wy, q)...)
	}
	return x, y
}

// The sizes that the peer is compared on: more samples than variables, and fewer.
func BenchmarkValue(b *testing.B) {
	accelerate()
	for _, size := range []struct{ n, p int }{{2000, 512}, {10000, 512}, {2000, 2048}, {500, 4096}} {
		x, y := correlated(1, size.n, size.p, size.p)
		sx, _ := Of(x, size.n, size.p)
		sy, _ := Of(y, size.n, size.p)
		for _, statistic := range []string{LinearCKA, DebiasedCKA, SVCCA, PWCCA, Procrustes} {
			b.Run(fmt.Sprintf("%s/%dx%d", statistic, size.n, size.p), func(b *testing.B) {
				for b.Loop() {
					if _, err := Value(context.Background(), statistic, sx, sy, Defaults()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
