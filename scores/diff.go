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

// A Difference is the difference of one score between two runs.
type Difference struct {
	A, B   Row     // the score in the first and the second run; their models may have different names
	Value  float64 // B - A
	Low    float64 // 95 % interval; NaN if there is none
	High   float64
	Paired bool // the interval is that of scores measured on the same samples
}

// rounding is the tolerance for the same score, relative to the larger of it and 1: summation order
// depends on batches, cores and shards.
const rounding = 1e-6

// Significant reports whether the interval excludes 0 and the difference exceeds rounding.
func (d Difference) Significant() bool {
	return (d.Low > 0 || d.High < 0) && math.Abs(d.Value) > rounding*max(1, math.Abs(d.A.Value), math.Abs(d.B.Value))
}

// ExpectedByChance returns how many intervals would exclude 0 without real differences: one in
// twenty.
func ExpectedByChance(differences []Difference) float64 {
	n := 0
	for _, d := range differences {
		if !math.IsNaN(d.Low) {
			n++
		}
	}
	return 0.05 * float64(n)
}

// Distinct keeps the first difference of each model and data set of an untransformed statistic,
// which recurs under every transformation.
func Distinct(all []Difference, untransformed func(measure, statistic string) bool) []Difference {
	seen := map[Row]bool{}
	var out []Difference
	for _, d := range all {
		if untransformed(d.A.Measure, d.A.Statistic) {
			identity := Row{Model: d.A.Model, OtherModel: d.A.OtherModel, Layer: d.A.Layer, Data: d.A.Data,
				Measure: d.A.Measure, Statistic: d.A.Statistic, Variant: d.A.Variant, Factor: d.A.Factor}
			if seen[identity] {
				continue
			}
			seen[identity] = true
		}
		out = append(out, d)
	}
	return out
}

// A Comparison specifies how the scores of two runs are matched.
type Comparison struct {
	// Models maps models of the first run to the second; others are matched by name.
	Models map[string]string
	// SameSamples reports whether a data set has the same samples in order in both runs, so
	// replicates can be paired; nil: none has.
	SameSamples func(data string) bool
}

// Diff compares the cells of two runs. It returns a difference for every common score, in the order
// of the first run.
//
// Scores of the same samples with replicates get the jackknife interval of the difference, narrower
// than two separate ones, since common effects cancel. Otherwise half widths add in quadrature, as
// if independent.
func (c Comparison) Diff(a, b []Cell) []Difference {
	type key struct {
		cell  cellID
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
				other[key{cell.identity(), scoreKeyOf(l, s)}] = entry{cell, l, s}
			}
		}
	}
	var out []Difference
	for _, cell := range a {
		renamed := cell
		renamed.Model, renamed.OtherModel = c.rename(cell.Model), c.rename(cell.OtherModel)
		for _, l := range cell.Layers {
			for _, s := range l.Scores {
				match, ok := other[key{renamed.identity(), scoreKeyOf(l, s)}]
				if !ok {
					continue
				}
				d := Subtract(s, match.score, c.SameSamples != nil && c.SameSamples(cell.Data))
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

func (c Cell) row(l Layer, s measure.Score) Row {
	l.Scores = []measure.Score{s}
	c.Layers = []Layer{l}
	return c.Rows("")[0] // without a name of the study
}

// Subtract returns b - a, without rows, with Diff's interval.
func Subtract(a, b measure.Score, sameSamples bool) Difference {
	d := Difference{Value: b.Value - a.Value, Low: math.NaN(), High: math.NaN()}
	if sameSamples && a.N == b.N {
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

// pairedReplicates returns the differences of replicates, and false if groups differ.
func pairedReplicates(a, b []measure.Replicate) ([]measure.Replicate, bool) {
	if len(a) < 2 || len(a) != len(b) {
		return nil, false
	}
	out := make([]measure.Replicate, len(a))
	for i := range a {
		if a[i].Left != b[i].Left { // the numbers of observations that the replicates leave out
			return nil, false
		}
		out[i] = measure.Replicate{Value: b[i].Value - a[i].Value, Left: a[i].Left}
	}
	return out, true
}

// A Condition is a criterion on the difference B - A, as in `effective-invariance.ei < -0.02`. Only
// significant differences count, unless it ends in an exclamation mark.
type Condition struct {
	Selector             Selector
	Less                 bool // met by differences below the bound; otherwise by those above it
	Bound                float64
	IncludeInsignificant bool // include differences that are not significant
}

// ParseCondition parses a condition.
func ParseCondition(text string) (Condition, error) {
	c := Condition{}
	rest, anyDifference := strings.CutSuffix(strings.TrimSpace(text), "!")
	c.IncludeInsignificant = anyDifference
	at := strings.IndexAny(rest, "<>")
	if at < 0 {
		return c, fmt.Errorf("invalid condition %q: write SCORE < NUMBER or SCORE > NUMBER, for instance 'effective-invariance.ei < -0.02'", text)
	}
	c.Less = rest[at] == '<'
	var err error
	if c.Selector, err = ParseSelector(strings.TrimSpace(rest[:at])); err != nil {
		return c, err
	}
	if c.Bound, err = strconv.ParseFloat(strings.TrimSpace(rest[at+1:]), 64); err != nil || math.IsNaN(c.Bound) || math.IsInf(c.Bound, 0) {
		return c, fmt.Errorf("invalid condition %q: %q is not a number", text, strings.TrimSpace(rest[at+1:]))
	}
	return c, nil
}

// String returns the condition in the form that ParseCondition reads.
func (c Condition) String() string {
	text := fmt.Sprintf("%s > %g", c.Selector, c.Bound)
	if c.Less {
		text = fmt.Sprintf("%s < %g", c.Selector, c.Bound)
	}
	if c.IncludeInsignificant {
		text += "!"
	}
	return text
}

// FailingValues returns the rows whose values meet the condition, the most extreme first. The whole
// interval must meet it, unless it ends in an exclamation mark. A selector that matches no row is
// an error.
func (c Condition) FailingValues(rows []Row) ([]Row, error) {
	matched := c.Selector.matching(rows)
	if len(matched) == 0 {
		return nil, fmt.Errorf("no score matches %s; available: %s", c.Selector, strings.Join(available(rows), ", "))
	}
	out := slices.DeleteFunc(matched, func(r Row) bool { return !c.metBy(r) })
	slices.SortStableFunc(out, func(a, b Row) int {
		if c.Less {
			return cmp.Compare(a.Value, b.Value)
		}
		return cmp.Compare(b.Value, a.Value)
	})
	return out, nil
}

func (c Condition) metBy(r Row) bool {
	low, high := r.Low, r.High
	if c.IncludeInsignificant || math.IsNaN(low) || math.IsNaN(high) {
		low, high = r.Value, r.Value
	}
	return c.Less && high < c.Bound || !c.Less && low > c.Bound
}

// Failing returns the differences that meet the condition, the largest first. A selector that
// matches none is an error, so that a misspelt name does not pass.
func (c Condition) Failing(differences []Difference) ([]Difference, error) {
	var out []Difference
	matched := false
	for _, d := range differences {
		if len(c.Selector.matching([]Row{d.A})) == 0 {
			continue
		}
		matched = true
		if (c.IncludeInsignificant || d.Significant()) && (c.Less && d.Value < c.Bound || !c.Less && d.Value > c.Bound) {
			out = append(out, d)
		}
	}
	if !matched {
		var rows []Row
		for _, d := range differences {
			rows = append(rows, d.A)
		}
		return nil, fmt.Errorf("no score of both runs matches %s; available: %s", c.Selector, strings.Join(available(rows), ", "))
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	return out, nil
}
