package similarity

import (
	"context"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// A batchGram is the Gram matrix of a minibatch with what the unbiased estimate of HSIC takes of it.
type batchGram struct {
	m     int
	k     []float64 // m x m, symmetric, zero diagonal
	sums  []float64 // of its rows
	total float64
}

// newBatchGram computes the Gram matrix of rows, which must be centred: m x p. The estimate does not depend on the mean, but what a
// large one would round away it does.
func newBatchGram(rows []float64, p int) batchGram {
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
	b.total = sum(b.sums)
	return b
}

// hsic is the unbiased estimate of HSIC of two representations of a minibatch of four samples or more (Nguyen et al. 2021, equation 3).
func (b batchGram) hsic(o batchGram) float64 {
	m := float64(b.m)
	t := dot(b.k, o.k) + b.total*o.total/((m-1)*(m-2)) - 2/(m-2)*dot(b.sums, o.sums)
	return t / (m * (m - 3))
}

// minBatch is the fewest samples that an unbiased estimate of HSIC can be had of.
const minBatch = 4

// A batchSum adds up HSIC over minibatches, each counting as much as it has samples.
type batchSum struct {
	n          int // samples
	xy, xx, yy float64
}

func (s *batchSum) add(m int, xy, xx, yy float64) {
	w := float64(m)
	s.n, s.xy, s.xx, s.yy = s.n+m, s.xy+w*xy, s.xx+w*xx, s.yy+w*yy
}

func (s batchSum) plus(o batchSum) batchSum {
	return batchSum{s.n + o.n, s.xy + o.xy, s.xx + o.xx, s.yy + o.yy}
}

func (s batchSum) less(o batchSum) batchSum {
	return batchSum{s.n - o.n, s.xy - o.xy, s.xx - o.xx, s.yy - o.yy}
}

func (s batchSum) cka() float64 { return ratio(s.xy, s.xx, s.yy) }

// minibatchCKA is the ratio of sums of unbiased HSIC over minibatches. Its mean over shuffles is 0.
func minibatchCKA(groups []batchSum) estimate {
	var all batchSum
	for _, g := range groups {
		all = all.plus(g)
	}
	if all.n == 0 {
		return undefined(tooFewFor(MinibatchCKA, minBatch))
	}
	if e, ok := constants(all.xx <= 0, all.yy <= 0); ok {
		return e
	}
	e := estimate{value: all.cka()}
	for _, g := range groups {
		if g.n > 0 && g.n < all.n {
			e.replicates = append(e.replicates, replicate(all.less(g).cka(), g.n))
		}
	}
	return e
}

// batches computes minibatch CKA of two samples, in minibatches of at most size.
func batches(ctx context.Context, x, y *sample, size int, cuts []int) (estimate, error) {
	groups := make([]batchSum, max(1, len(cuts)-1))
	bx, by := make([]float64, size*x.p), make([]float64, size*y.p)
	err := walk(ctx, x.n, size, cuts, func(from, to, group int) error {
		m := to - from
		if m < minBatch {
			return nil
		}
		if err := x.read(from, to, bx[:m*x.p]); err != nil {
			return err
		}
		if err := y.read(from, to, by[:m*y.p]); err != nil {
			return err
		}
		k, l := newBatchGram(wideChunk(bx[:m*x.p], x.p).wide, x.p), newBatchGram(wideChunk(by[:m*y.p], y.p).wide, y.p)
		groups[group].add(m, k.hsic(l), k.hsic(k), l.hsic(l))
		return nil
	})
	return minibatchCKA(groups), err
}
