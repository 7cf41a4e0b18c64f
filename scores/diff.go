package scores

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// A Difference is one score of two runs.
type Difference struct {
	A, B   Row     // the same score in the one and in the other; they may name different models
	Value  float64 // B - A
	Low    float64 // a 95 % interval of it; NaN where there is none
	High   float64
	Paired bool // the interval knows that both were measured on the same samples
}

// Rounding is what two computations of one score may differ by, relative to the score or to 1: the
// order in which samples are added depends on batches, cores and shards.
const Rounding = 1e-6

// Beyond reports whether the difference is more than chance, and more than rounding: its interval
// does not hold 0, and it is larger than Rounding.
func (d Difference) Beyond() bool {
	return (d.Low > 0 || d.High < 0) && math.Abs(d.Value) > Rounding*max(1, math.Abs(d.A.Value), math.Abs(d.B.Value))
}

// ByChance is how many of the differences would lie beyond their 95 % intervals if nothing
// differed: one in twenty of those that have one.
func ByChance(differences []Difference) float64 {
	n := 0
	for _, d := range differences {
		if !math.IsNaN(d.Low) {
			n++
		}
	}
	return 0.05 * float64(n)
}

// A Comparison says how the scores of two runs are matched.
type Comparison struct {
	// Models renames the models of the first run to those of the second; nil: by name.
	Models map[string]string
	// SameSamples reports whether a data set of that name holds the same samples in the same order
	// in both runs, so that scores can be compared sample group by sample group.
	SameSamples func(data string) bool
}

// Diff compares the cells of two runs, those that are derived included (see Derived), and returns a
// difference for every score that both have, in the order of the first run.
//
// Where both were measured on the same samples the interval is the jackknife's of the difference:
// what a sample does to both scores cancels, so differences show that two separate intervals would
// hide. Elsewhere the two intervals are added as independent ones are, half widths by their
// squares.
func (c Comparison) Diff(a, b []Cell) []Difference {
	type key struct {
		cell  string
		score scoreKey
	}
	type entry struct {
		cell  Cell
		layer Layer
		score measure.Score
	}
	other := map[key]entry{}
	for _, cell := range b {
		for _, l := range cell.Layers {
			for _, s := range l.Scores {
				other[key{cell.identity(), keyOf(l, s)}] = entry{cell, l, s}
			}
		}
	}
	var out []Difference
	for _, cell := range a {
		renamed := cell
		renamed.Model, renamed.OtherModel = c.rename(cell.Model), c.rename(cell.OtherModel)
		for _, l := range cell.Layers {
			for _, s := range l.Scores {
				match, ok := other[key{renamed.identity(), keyOf(l, s)}]
				if !ok {
					continue
				}
				d := c.difference(s, match.score, cell.Data)
				d.A, d.B = cell.row(l, s), match.cell.row(match.layer, match.score)
				out = append(out, d)
			}
		}
	}
	return out
}

func (c Comparison) rename(model string) string {
	if to, ok := c.Models[model]; ok {
		return to
	}
	return model
}

// row is one score of the cell.
func (c Cell) row(l Layer, s measure.Score) Row {
	l.Scores = []measure.Score{s}
	c.Layers = []Layer{l}
	return c.Rows("")[0]
}

func (c Comparison) difference(a, b measure.Score, data string) Difference {
	d := Difference{Value: b.Value - a.Value, Low: math.NaN(), High: math.NaN()}
	if c.SameSamples != nil && c.SameSamples(data) && a.N == b.N {
		if r, ok := pairedReplicates(a.Replicates, b.Replicates); ok {
			d.Low, d.High = resample.Jackknife(d.Value, a.N, r)
			d.Paired = !math.IsNaN(d.Low)
		}
	}
	if !d.Paired {
		half := math.Hypot((a.High-a.Low)/2, (b.High-b.Low)/2)
		d.Low, d.High = d.Value-half, d.Value+half
	}
	return d
}

// pairedReplicates are the differences of replicates that leave out the same samples.
func pairedReplicates(a, b []measure.Replicate) ([]measure.Replicate, bool) {
	if len(a) < 2 || len(a) != len(b) {
		return nil, false
	}
	out := make([]measure.Replicate, len(a))
	for i := range a {
		if a[i].Left != b[i].Left {
			return nil, false
		}
		out[i] = measure.Replicate{Value: b[i].Value - a[i].Value, Left: a[i].Left}
	}
	return out, true
}

// A Condition is what a difference must not be, as a user writes it: `effective-invariance.ei <
// -0.02`, a selector, a comparison and a bound on B - A. Only differences beyond chance count,
// unless it ends in an exclamation mark.
type Condition struct {
	Selector Selector
	Less     bool // the difference is below the bound; else above
	Bound    float64
	Any      bool // chance or not
}

// ParseCondition reads a condition.
func ParseCondition(text string) (Condition, error) {
	c := Condition{}
	rest, sure := strings.CutSuffix(strings.TrimSpace(text), "!")
	c.Any = sure
	at := strings.IndexAny(rest, "<>")
	if at < 0 {
		return c, fmt.Errorf("%q is no condition: write SCORE < NUMBER or SCORE > NUMBER, for instance 'effective-invariance.ei < -0.02'", text)
	}
	c.Less = rest[at] == '<'
	var err error
	if c.Selector, err = ParseSelector(strings.TrimSpace(rest[:at])); err != nil {
		return c, err
	}
	if c.Bound, err = strconv.ParseFloat(strings.TrimSpace(rest[at+1:]), 64); err != nil || math.IsNaN(c.Bound) || math.IsInf(c.Bound, 0) {
		return c, fmt.Errorf("%q is no condition: %q is no number", text, strings.TrimSpace(rest[at+1:]))
	}
	return c, nil
}

// String is the condition as ParseCondition reads it.
func (c Condition) String() string {
	text := fmt.Sprintf("%s > %g", c.Selector, c.Bound)
	if c.Less {
		text = fmt.Sprintf("%s < %g", c.Selector, c.Bound)
	}
	if c.Any {
		text += "!"
	}
	return text
}

// FailingValues returns the rows whose values, in place of differences, meet the condition: with
// their whole interval, where they have one and chance is not to count; the worst first. It fails
// where the selector names none, as Failing does.
func (c Condition) FailingValues(rows []Row) ([]Row, error) {
	named := c.Selector.matching(rows)
	if len(named) == 0 {
		return nil, fmt.Errorf("no score is %s; there are %s", c.Selector, strings.Join(available(rows), ", "))
	}
	out := slices.DeleteFunc(named, func(r Row) bool { return !c.met(r) })
	slices.SortStableFunc(out, func(a, b Row) int {
		if c.Less {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Compare(b.Value, a.Value)
	})
	return out, nil
}

// met reports whether a score is beyond the bound.
func (c Condition) met(r Row) bool {
	low, high := r.Low, r.High
	if c.Any || math.IsNaN(low) || math.IsNaN(high) {
		low, high = r.Value, r.Value
	}
	return c.Less && high < c.Bound || !c.Less && low > c.Bound
}

// Failing returns the differences that meet the condition. It fails where the selector names none,
// lest a slip in a name pass every gate.
func (c Condition) Failing(differences []Difference) ([]Difference, error) {
	var out []Difference
	named := false
	for _, d := range differences {
		if len(c.Selector.matching([]Row{d.A})) == 0 {
			continue
		}
		named = true
		if (c.Any || d.Beyond()) && (c.Less && d.Value < c.Bound || !c.Less && d.Value > c.Bound) {
			out = append(out, d)
		}
	}
	if !named {
		var rows []Row
		for _, d := range differences {
			rows = append(rows, d.A)
		}
		return nil, fmt.Errorf("no score that both runs have is %s; there are %s", c.Selector, strings.Join(available(rows), ", "))
	}
	slices.SortStableFunc(out, func(a, b Difference) int {
		switch {
		case math.Abs(a.Value) > math.Abs(b.Value):
			return -1
		case math.Abs(a.Value) < math.Abs(b.Value):
			return 1
		}
		return 0
	})
	return out, nil
}
