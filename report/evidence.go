package report

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Replicates holds the jackknife replicates of the scores of a run: the value of each score without
// one group of samples, for each group. They make the intervals of differences between scores on the
// same samples narrower. A nil *Replicates has none.
type Replicates struct {
	cells map[replicateKey][]*scores.Cell
}

// A replicateKey identifies the cells of several values of a parameter.
type replicateKey struct {
	model, otherModel, data, transform, measure string
	trial                                       int
}

// NewReplicates returns the replicates of the scores of cells. A cell has the scores of one measure
// for one model, data set, parameter value of a transformation, and trial (a repetition of all
// random draws). For intervals of means, cells must include the derived cells, which hold means
// over values or trials (see scores.Derived). Scores with a factor, such as those of single
// classes, are left out.
func NewReplicates(cells []scores.Cell) *Replicates {
	out := &Replicates{map[replicateKey][]measure.Replicate{}}
	replicated := func(s measure.Score) bool { return s.Factor == "" && len(s.Replicates) > 1 }
	for _, c := range cells {
		if !slices.ContainsFunc(c.Layers, func(l scores.Layer) bool { return slices.ContainsFunc(l.Scores, replicated) }) {
			continue
		}
		rows, i := c.Rows(""), 0 // in the order of the loops; the study "" is no part of the key
		for _, l := range c.Layers {
			for _, s := range l.Scores {
				if replicated(s) {
					out.byKey[replicateKeyOf(&rows[i])] = s.Replicates
				}
			}
		}
	}
	return nil
}

// difference returns the difference b - a of two scores of a run with its 95 % interval. If both
// are of the same data and have replicates, the interval is that of the paired difference. Otherwise
// the scores are treated as independent: the half widths of their intervals add in quadrature.
func (p *Replicates) difference(a, b *scores.Row) scores.Difference {
	score := func(r *scores.Row) measure.Score {
		return measure.Score{Value: r.Value, Low: r.Low, High: r.High, N: r.N, Replicates: p.of(r)}
	}
	d := scores.Subtract(score(a), score(b), a.Data == b.Data)
	d.A, d.B = *a, *b
	return d
}

// An evidence says how certain it is that two scores differ.
type evidence int

const (
	insignificant evidence = iota // the interval of the difference includes 0
	unknown                       // there is no interval
	certain                       // the interval of the difference excludes 0
)

// evidence returns how certain it is that two scores differ. This is the rule for all sentences of
// a report.
func (p *Replicates) evidence(a, b *scores.Row) evidence {
	d := p.difference(a, b)
	switch {
	case math.IsNaN(d.Low) || math.IsNaN(d.High):
		return unknown
	case d.Significant():
		return certain
	}
	return insignificant
}
