package similarity

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// accelerate loads the BLAS of the machine, once.
var accelerate = sync.OnceFunc(func() { blas.Load() })

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

// arrays returns pairs of representations (as Source, a matrix that is read row by row) by their
// size: X.npy and Y.npy of the folder that NOETHER_BENCH_ARRAYS names, or else random ones of two
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

// BenchmarkValue measures the statistics that the programs in the folder bench of the repository
// compare with those of another library.
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

// BenchmarkGrid measures a grid, all pairs of layers of two networks, from activations to scores.
// The activations of all layers are given batch by batch to an accumulator, the running sums.
// NOETHER_BENCH_GRID is the number of samples, of layers of a network and of values of a layer,
// such as "5000 50 0". Where the number of values is 0, layers have 16, 32 or 64, as the pooled
// maps of a ResNet-56.
func BenchmarkGrid(b *testing.B) {
	accelerate()
	n, count, width := 500, 10, 0
	if text := os.Getenv("NOETHER_BENCH_GRID"); text != "" {
		if _, err := fmt.Sscan(text, &n, &count, &width); err != nil {
			b.Fatal(err)
		}
	}
	g := measure.Grid{Layout: measure.NewLayout(n)}
	for i := range count {
		p := width
		if width == 0 {
			p = 16 << (3 * i / count)
		}
		layer := tensor.Layer{Name: fmt.Sprint("layer", i), Shape: []int{p}, Axes: "NC"}
		g.A, g.B = append(g.A, layer), append(g.B, layer)
		for j := range count {
			g.Pairs = append(g.Pairs, [2]int{i, j})
		}
	}
	// Statistics that are computed from sums and products of the activations.
	moments := []string{LinearCKA, CCA, SVCCA, Procrustes, LinearRegression}
	for _, c := range []struct {
		name       string
		statistics []string
		interval   bool
	}{{"minibatch-cka", []string{MinibatchCKA}, false}, {"linear-cka", []string{LinearCKA}, false}, {"moments", moments, false}, {"moments-with-intervals", moments, true}} {
		s := Defaults()
		// Null: also the score of shuffled pairs of samples, which chance alone gives.
		s.Statistics, s.Interval, s.Null = c.statistics, c.interval, c.interval
		m, err := New(s)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			var spent, drawn time.Duration // processor time of the measure, and of drawing the activations
			began := machine.CPUTime()
			for b.Loop() {
				acc, err := m.New(g)
				for from := 0; from < n && err == nil; from += batchOfGrid {
					b.StopTimer()
					at := machine.CPUTime()
					batch := gridBatch(g, from, min(from+batchOfGrid, n))
					drawn += machine.CPUTime() - at
					b.StartTimer()
					err = acc.Update(batch)
				}
				if err == nil {
					_, err = acc.Scores()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			spent = machine.CPUTime() - began - drawn
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
			b.ReportMetric(spent.Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(float64(machine.PeakMemory())/(1<<20), "MiB-peak")
		})
	}
}

// batchOfGrid is the number of samples of a call of Update, so that no more activations than these
// are in memory at a time.
const batchOfGrid = 250

// gridBatch returns random activations of all layers on the samples at the places from (inclusive)
// to to (exclusive), which are positions in the order of reading. Layer i of one network shares
// latent variables with layer i of the other.
func gridBatch(g measure.Grid, from, to int) *measure.PairBatch {
	n, batch := to-from, &measure.PairBatch{}
	for i, layer := range g.A {
		p := layer.Shape[0]
		x, y := correlated(uint64(from*len(g.A)+i), n, p, p)
		batch.A, batch.B = append(batch.A, tensor.Tensor{Shape: []int{n, p}, Data: x}), append(batch.B, tensor.Tensor{Shape: []int{n, p}, Data: y})
	}
	for i := from; i < to; i++ {
		batch.Place, batch.Index, batch.Label = append(batch.Place, i), append(batch.Index, i), append(batch.Label, 0)
	}
	return batch
}
