package similarity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/linalg"
)

var accelerate = sync.OnceFunc(func() { linalg.LoadBackend() })

// correlated returns two representations that share some latent variables: n x p and n x q.
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

// arrays returns X.npy and Y.npy of the folder NOETHER_BENCH_ARRAYS, or random matrices of two
// sizes.
func arrays(b *testing.B) map[string][2]Source {
	b.Helper()
	out := map[string][2]Source{}
	if folder := os.Getenv("NOETHER_BENCH_ARRAYS"); folder != "" {
		var pair [2]Source
		for i, name := range []string{"X.npy", "Y.npy"} {
			z, err := dataset.ReadArray(b.Context(), filepath.Join(folder, name), "")
			if err != nil {
				b.Fatal(err)
			}
			pair[i] = source(b, z.Data, z.Shape[1])
		}
		n, p := pair[0].Dims()
		out[fmt.Sprintf("%dx%d", n, p)] = pair
		return out
	}
	for _, size := range []struct{ n, p int }{{2000, 512}, {500, 2048}} {
		x, y := correlated(1, size.n, size.p, size.p)
		out[fmt.Sprintf("%dx%d", size.n, size.p)] = [2]Source{source(b, x, size.p), source(b, y, size.p)}
	}
	return out
}

// BenchmarkValue measures the statistics that are compared with another library in bench.
func BenchmarkValue(b *testing.B) {
	accelerate()
	for size, pair := range arrays(b) {
		for _, statistic := range []string{LinearCKA, DebiasedCKA, SVCCA, PWCCA, Procrustes} {
			b.Run(statistic+"/"+size, func(b *testing.B) {
				for b.Loop() {
					if _, err := Value(context.Background(), statistic, pair[0], pair[1], Defaults()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
