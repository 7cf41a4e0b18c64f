package similarity

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/linalg"
)

// A batchGram is the Gram matrix of a minibatch, prepared for the unbiased estimate of HSIC.
type batchGram struct {
	m     int       // number of samples
	k     []float64 // m x m, symmetric, zero diagonal
	sums  []float64 // of the rows
	total float64   // sum of all values
}

// newBatchGram takes m x p values, which it centres in place, for smaller rounding errors.
func newBatchGram(rows []float64, p int) batchGram {
	linalg.Centre64(rows, p)
	m := len(rows) / p
	b := batchGram{m: m, k: make([]float64, m*m), sums: make([]float64, m)}
	blas64.Syrk(blas.NoTrans, 1, blas64.General{Rows: m, Cols: p, Stride: p, Data: rows}, 0,
		blas64.Symmetric{Uplo: blas.Upper, N: m, Stride: m, Data: b.k})
	for i := range m {
		b.k[i*m+i] = 0
		for j := i + 1; j < m; j++ {
			v := b.k[i*m+j]
			b.k[j*m+i] = v
			b.sums[i] += v
			b.sums[j] += v
		}
	}
	b.total = floats.Sum(b.sums)
	return b
}

// hsic returns the unbiased estimate for at least minBatch samples (Nguyen et al. 2021, equation
// 3).
func (b batchGram) hsic(o batchGram) float64 {
	m := float64(b.m)
	t := floats.Dot(b.k, o.k) + b.total*o.total/((m-1)*(m-2)) - 2/(m-2)*floats.Dot(b.sums, o.sums)
	return t / (m * (m - 3))
}

// minBatch is the smallest minibatch that has an unbiased estimate of HSIC.
const minBatch = 4

// minibatchTotals holds sums of HSIC times number of samples over minibatches.
type minibatchTotals struct {
	n      []int       // number of samples of each group
	self   [][]float64 // of each layer with itself: by layer and group
	across [][]float64 // of the two layers of a pair: by pair and group
}

func newMinibatchTotals(layers, pairs, groups int) *minibatchTotals {
	m := &minibatchTotals{n: make([]int, groups)}
	for range layers {
		m.self = append(m.self, make([]float64, groups))
	}
	for range pairs {
		m.across = append(m.across, make([]float64, groups))
	}
	return m
}

// add adds a minibatch; pairLayers returns a pair's layers as indices in grams.
func (m *minibatchTotals) add(group int, grams []batchGram, pairLayers func(pair int) (u, v int)) {
	samples := grams[0].m
	m.n[group] += samples
	for u, g := range grams {
		m.self[u][group] += float64(samples) * g.hsic(g)
	}
	for i := range m.across {
		u, v := pairLayers(i)
		m.across[i][group] += float64(samples) * grams[u].hsic(grams[v])
	}
}

func (m *minibatchTotals) merge(o *minibatchTotals) {
	for g, n := range o.n {
		m.n[g] += n
	}
	for u, values := range o.self {
		floats.Add(m.self[u], values)
	}
	for i, values := range o.across {
		floats.Add(m.across[i], values)
	}
}

// hsicTotals are weighted sums of HSIC of layers X and Y, over n samples together.
type hsicTotals struct {
	n          int
	xy, xx, yy float64 // of X with Y, and of each with itself
}

func (s hsicTotals) plus(o hsicTotals) hsicTotals {
	return hsicTotals{s.n + o.n, s.xy + o.xy, s.xx + o.xx, s.yy + o.yy}
}

func (s hsicTotals) cka() float64 { return ratio(s.xy, s.xx, s.yy) }

// estimate returns minibatch CKA of layers u and v; its null, the mean over shuffles, is 0.
func (m *minibatchTotals) estimate(pair, u, v int) estimate {
	groups := make([]hsicTotals, len(m.n))
	var all hsicTotals
	for g := range groups {
		groups[g] = hsicTotals{m.n[g], m.across[pair][g], m.self[u][g], m.self[v][g]}
		all = all.plus(groups[g])
	}
	if all.n == 0 {
		return undefinedEstimate(tooFewFor(MinibatchCKA, minBatch))
	}
	if e, ok := constantEstimate(all.xx <= 0, all.yy <= 0); ok {
		return e // a layer is constant: 1 if both are, else 0
	}
	e := estimate{value: all.cka()}
	for _, g := range groups {
		if g.n > 0 && g.n < all.n {
			rest := all.plus(hsicTotals{-g.n, -g.xy, -g.xx, -g.yy})
			e.replicates = append(e.replicates, replicate(rest.cka(), g.n))
		}
	}
	return e
}

// minibatchCKA takes minibatches of up to size samples, but none of fewer than four, with groups
// from cuts[g] up to cuts[g+1]; nil: one.
func minibatchCKA(ctx context.Context, x, y *centredSample, size int, cuts []int) (estimate, error) {
	totals := newMinibatchTotals(2, 1, max(1, len(cuts)-1))
	err := walkBoth(ctx, x, y, size, cuts, func(n int, rowsX, rowsY []float64, group int) {
		if n >= minBatch {
			grams := []batchGram{newBatchGram(rowsX, x.p), newBatchGram(rowsY, y.p)}
			totals.add(group, grams, func(int) (u, v int) { return 0, 1 })
		}
	})
	return totals.estimate(0, 0, 1), err
}
