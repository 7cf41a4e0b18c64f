package paired

import "github.com/noether-ml/noether/measure"

// rowColumns holds the columns of successive samples that Spec.PairRows computed: own of each pair,
// shuffled of a transformed row with the clean row before it.
type rowColumns struct {
	from, to      int // the samples, [from, to) of the batch
	own, shuffled []float64
}

// of returns the own and shuffled columns of sample i, nil if they were not computed.
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

// compute computes the columns of sample i and of those after it in its block. a.open holds the
// incomplete blocks with their latest clean row, nil without a null. If Spec.Pair would fail for
// one of them, r is empty afterwards.
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
