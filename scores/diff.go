package scores

import (
	"fmt"
	"maps"
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
	// P is the p-value of the hypothesis that the scores are equal: below 0.05 exactly if the
	// interval excludes 0. It is NaN without an interval.
	P float64
	// Adjusted is P after Holm's correction for the differences of one comparison; see Adjust.
	Adjusted float64

	freedom float64 // degrees of freedom of the interval
}

// rounding is the tolerance for the same score, relative to the larger of it and 1: summation order
// depends on batches, cores and shards.
const rounding = 1e-6

// ExpectedByChance returns how many intervals would exclude 0 without real differences, before any
// correction: one in twenty.
func ExpectedByChance(differences []Difference) float64 {
	n := 0
	for _, d := range differences {
		if !math.IsNaN(d.Low) {
			n++
		}
	}
	return 0.05 * float64(n)
}

// Significant reports whether the difference is beyond chance after the correction for the number
// of differences, and exceeds rounding.
func (d Difference) Significant() bool { return d.Adjusted < Level && d.beyondRounding() }

func (d Difference) beyondRounding() bool {
	return math.Abs(d.Value) > rounding*max(1, math.Abs(d.A.Value), math.Abs(d.B.Value))
}

// beyondRounding reports whether two values differ by more than rounding.
func beyondRounding(a, b float64) bool {
	return math.Abs(a-b) > rounding*max(1, math.Abs(a), math.Abs(b))
}

// Corrected returns the interval of the difference, widened by the correction for the number of
// differences: it excludes 0 exactly if Adjusted is below 0.05.
func (d Difference) Corrected() (low, high float64) {
	half := (d.High - d.Low) / 2
	if d.P > 0 && d.Adjusted > d.P {
		half = resample.Widen(half, d.Adjusted/d.P, d.freedom)
	}
	return d.Value - half, d.Value + half
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
	// Models maps models of the first run to the second; others are matched by name, but for models
	// of the second run that Models names.
	Models map[string]string
	// Only leaves out models that Models does not name.
	Only bool
	// SameSamples reports whether a data set has the same samples in order in both runs, so
	// replicates can be paired; nil: none has.
	SameSamples func(data string) bool
}

// Diff compares the cells of two runs. It returns a difference for every common score, in the order
// of the first run, but for scores that depend on the number of samples
// (measure.SampleSizeWarning), if that differs. They are one family of claims; see Adjust.
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
		if renamed.Model == "" || renamed.OtherModel == "" && cell.OtherModel != "" {
			continue
		}
		for _, l := range cell.Layers {
			for _, s := range l.Scores {
				match, ok := other[key{renamed.identity(), scoreKeyOf(l, s)}]
				if !ok || s.N != match.score.N && measure.DependsOnSampleSize(strings.Join(s.Warnings, "; ")) {
					continue
				}
				d := Subtract(s, match.score, c.SameSamples != nil && c.SameSamples(cell.Data))
				d.A, d.B = cell.row(l, s), match.cell.row(match.layer, match.score)
				out = append(out, d)
			}
		}
	}
	Adjust(out)
	return out
}

// rename returns the model of the second run that a model is compared with; "" if there is none.
func (c Comparison) rename(model string) string {
	if to, ok := c.Models[model]; ok {
		return to
	}
	if c.Only || slices.Contains(slices.Collect(maps.Values(c.Models)), model) {
		return ""
	}
	return model
}

func (c Cell) row(l Layer, s measure.Score) Row {
	l.Scores = []measure.Score{s}
	c.Layers = []Layer{l}
	return c.Rows("")[0] // without a name of the study
}

// Subtract returns b - a, without rows, with Diff's interval, as a family of one claim.
func Subtract(a, b measure.Score, sameSamples bool) Difference {
	d := Difference{Value: b.Value - a.Value}
	half := math.NaN()
	if sameSamples && a.N == b.N {
		if r, ok := pairedReplicates(a.Replicates, b.Replicates); ok {
			low, high := resample.Jackknife(d.Value, a.N, r)
			d.Paired = !math.IsNaN(low)
			half, d.freedom = resample.Combine([]float64{(high - low) / 2, a.Spread, b.Spread}, []float64{float64(len(r) - 1), a.Freedom, b.Freedom})
		}
	}
	if !d.Paired {
		half, d.freedom = resample.Combine([]float64{(a.High - a.Low) / 2, (b.High - b.Low) / 2}, []float64{freedomOf(a), freedomOf(b)})
	}
	d.Low, d.High = d.Value-half, d.Value+half
	d.P = resample.PValue(d.Value, half, d.freedom)
	if !math.IsNaN(half) && !beyondRounding(a.Value, b.Value) {
		d.P = 1
	}
	d.Adjusted = d.P
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

// A Condition is a criterion on the difference B - A, as in `effective-invariance.ei < -0.02`. It
// is met by a difference whose whole interval is beyond the bound or, if it ends in an exclamation
// mark, whose value is.
type Condition struct {
	Selector             Selector
	Less                 bool // met by differences below the bound; otherwise by those above it
	Bound                float64
	IncludeInsignificant bool // the interval does not matter
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
