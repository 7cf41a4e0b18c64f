package paired

import "github.com/noether-ml/noether/measure"

// rowColumns holds the columns of successive samples of a batch that Spec.PairRows computed. A Spec
// specifies a measure, and the columns are the values that it computes from a pair of rows: the
// vectors of one sample, clean and transformed. own has the columns of each sample's pair, shuffled
// those of a transformed row with the clean row of the sample before.
type rowColumns struct {
	from, to      int // the samples, [from, to) of the batch
	own, shuffled []float64
}

// of returns the columns of sample i of the batch, and those of its shuffled pair. They are nil if
// they were not computed.
func (r *rowColumns) of(i int) (own, shuffled []float64) {
	if i < r.from || i >= r.to {
		return nil, nil
	}
	n := len(r.own) / (r.to - r.from)
	at := (i - r.from) * n
	if r.shuffled != nil {
		shuffled = r.shuffled[at : at+n]
	}
	return r.own[at : at+n], shuffled
}

// compute computes the columns of sample i of the batch, and of the samples after it in the same
// block, a range of successive places (positions in the random order of the samples). a.open holds
// the blocks that are not complete yet, with the latest clean row. It is nil if no shuffled pairs
// are needed. If Spec.Pair would return an error for one of the samples, r holds no columns
// afterwards.
func (r *rowColumns) compute(a *accumulator, b *measure.Batch, i int) {
	block := b.Place[i] / a.site.Layout.Block
	r.from, r.to = i, i+1
	for r.to < len(b.Place) && b.Place[r.to]/a.site.Layout.Block == block {
		r.to++
	}
	n := (r.to - r.from) * len(a.spec.Columns)
	var previous []float32
	r.own, r.shuffled = make([]float64, n), nil
	if a.open != nil {
		r.shuffled = make([]float64, n)
		if o := a.open[block]; o != nil {
			previous = o.clean
		}
	}
	if !a.spec.PairRows(r.own, r.shuffled, previous, b.Clean.Slice(r.from, r.to).Data, b.Transformed.Slice(r.from, r.to).Data) {
		r.to = r.from
	}
}
