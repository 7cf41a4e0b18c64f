package report

import (
	"maps"
	"math"
	"slices"

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

// of returns the score of a row with its replicates; without them if they are unknown.
func (p *Replicates) of(r *scores.Row) measure.Score {
	plain := measure.Score{Value: r.Value, Low: r.Low, High: r.High, N: r.N}
	if p == nil || r.Factor != "" {
		return plain
	}
	for _, c := range p.cells[replicateKey{r.Model, r.OtherModel, r.Data, r.Transform, r.Measure, r.Trial}] {
		for i := range c.Layers {
			l := &c.Layers[i]
			if l.Name != r.Layer || l.Other != r.OtherLayer {
				continue
			}
			for j := range l.Scores {
				s := &l.Scores[j]
				if s.Statistic == r.Statistic && s.Variant == r.Variant && s.Factor == "" && c.ParameterOf(s) == r.Parameter {
					plain.Replicates, plain.Spread, plain.Freedom = s.Replicates, s.Spread, s.Freedom
					return plain
				}
			}
		}
	}
	return plain
}

// difference returns the difference b - a of two scores of a run with its 95 % interval. If both
// are of the same data and have replicates, the interval is that of the paired difference.
// Otherwise the scores are treated as independent: the half widths of their intervals add in
// quadrature.
func (p *Replicates) difference(a, b *scores.Row) scores.Difference {
	d := scores.Subtract(p.of(a), p.of(b), a.Data == b.Data)
	d.A, d.B = *a, *b
	return d
}

// An evidence says how certain it is that two scores differ.
type evidence int

const (
	insignificant evidence = iota // the difference may be chance
	unknown                       // there is no interval
	certain                       // the difference is more than chance
)

// claims decides which of the claims of some sentences hold: claims that two scores differ, which
// are one family. A program that makes the sentences runs twice. In the first run p-values are
// collected, and no claim holds; in the second those hold whose p-value Holm's correction accepts.
type claims struct {
	replicates *Replicates
	collecting bool
	p          map[claim]float64 // p-values of the claims
	adjusted   map[claim]float64 // the same after the correction
	cutoff     float64           // largest p-value of a claim that holds
}

// A claim is that two scores differ, or that one differs from 0 if the second is the zero identity.
type claim struct{ a, b identity }

// An identity is what distinguishes a score of a run from others.
type identity struct {
	model, layer, otherModel, otherLayer, data, transform, parameter, measure, variant, factor, statistic string
	trial                                                                                                 int
}

func identityOf(r *scores.Row) identity {
	return identity{r.Model, r.Layer, r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Parameter, r.Measure, r.Variant, r.Factor, r.Statistic, r.Trial}
}

// withClaims returns what make makes with the claims that hold.
func withClaims[T any](replicates *Replicates, make func(*claims) T) T {
	c := &claims{replicates: replicates, collecting: true, p: map[claim]float64{}, cutoff: -1}
	make(c)
	c.decide()
	return make(c)
}

func (c *claims) decide() {
	c.collecting = false
	all := slices.Collect(maps.Keys(c.p))
	p := make([]float64, len(all))
	for i, of := range all {
		p[i] = c.p[of]
	}
	c.adjusted = map[claim]float64{}
	for i, adjusted := range scores.Holm(p) {
		c.adjusted[all[i]] = adjusted
		if adjusted < scores.Level {
			c.cutoff = max(c.cutoff, p[i])
		}
	}
}

// evidence returns how certain it is that two scores differ. The pair is the most different of
// among pairs, for all of which its p-value accounts.
func (c *claims) evidence(a, b *scores.Row, among int) evidence {
	if a.N != b.N && (measure.DependsOnSampleSize(a.Warning) || measure.DependsOnSampleSize(b.Warning)) {
		return insignificant // the scores are not comparable
	}
	e, _ := c.judge(claim{identityOf(a), identityOf(b)}, c.replicates.difference(a, b), among)
	return e
}

// judge returns how certain a difference is, and the difference with its p-value after the
// correction. It is the largest of among differences.
func (c *claims) judge(of claim, d scores.Difference, among int) (evidence, scores.Difference) {
	if math.IsNaN(d.P) {
		return unknown, d
	}
	p := min(1, d.P*float64(max(1, among)))
	held := c.holds(of, p)
	d.Adjusted = max(p, c.adjusted[of])
	if held {
		return certain, d
	}
	return insignificant, d
}

// holds reports whether a claim with the p-value p, which may be NaN, holds.
func (c *claims) holds(of claim, p float64) bool {
	if !c.collecting {
		return p <= c.cutoff
	}
	if known, seen := c.p[of]; !math.IsNaN(p) && (!seen || p > known) {
		c.p[of] = p
	}
	return false
}

// pairs returns the number of pairs of n scores.
func pairs(n int) int { return n * (n - 1) / 2 }
