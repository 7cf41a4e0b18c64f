package report

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Replicates holds the jackknife replicates of the scores of a run, which make the intervals of
// differences between scores on the same samples narrower. A nil *Replicates has none.
type Replicates struct {
	cells map[replicateKey][]*scores.Cell
}

// A replicateKey identifies the cells of several values of a parameter.
type replicateKey struct {
	model, otherModel, data, transform, measure string
	trial                                       int
}

// NewReplicates returns the replicates of the scores of cells. For intervals of means, cells must
// include the derived cells (see scores.Derived). Scores with a factor are left out.
func NewReplicates(cells []scores.Cell) *Replicates {
	// Few of the scores of a large run are compared, so this lists cells, not scores.
	out := &Replicates{map[replicateKey][]*scores.Cell{}}
	for i := range cells {
		c := &cells[i]
		key := replicateKey{c.Model, c.OtherModel, c.Data, c.Transform, c.Measure, c.Trial}
		out.cells[key] = append(out.cells[key], c)
	}
	return out
}

// of returns the replicates of a score, or nil if they are unknown.
func (p *Replicates) of(r *scores.Row) []measure.Replicate {
	if p == nil || r.Factor != "" {
		return nil
	}
	for _, c := range p.cells[replicateKey{r.Model, r.OtherModel, r.Data, r.Transform, r.Measure, r.Trial}] {
		for i := range c.Layers {
			l := &c.Layers[i]
			if l.Name != r.Layer || l.Other != r.OtherLayer {
				continue
			}
			for j := range l.Scores {
				s := &l.Scores[j]
				if s.Statistic == r.Statistic && s.Variant == r.Variant && s.Factor == "" && c.ParameterOf(s) == r.Parameter && len(s.Replicates) > 1 {
					return s.Replicates
				}
			}
		}
	}
	return nil
}

// difference returns the difference b - a of two scores of a run with its 95 % interval. If both
// are of the same data and have replicates, the interval is that of the paired difference.
// Otherwise the scores are treated as independent: the half widths of their intervals add in
// quadrature.
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

// evidence returns how certain it is that two scores differ, for all sentences of a report.
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
