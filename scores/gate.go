package scores

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure/resample"
)

// A Gate is a condition with what it is tested on: differences, or values of scores, which are
// differences from 0. See Condition.Select and Condition.SelectValues.
type Gate struct {
	Condition Condition
	On        []Difference
}

// Select returns the differences that a condition is about. A selector that matches none is an
// error, so that a misspelt name does not pass.
func (c Condition) Select(differences []Difference) ([]Difference, error) {
	var out []Difference
	var rows []Row
	for _, d := range differences {
		rows = append(rows, d.A)
		if len(c.Selector.matching([]Row{d.A})) > 0 {
			out = append(out, d)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no score of both runs matches %s; available: %s", c.Selector, strings.Join(available(rows), ", "))
	}
	return out, nil
}

// SelectValues returns the rows that a condition is about, as differences from 0. The value of a
// row without an interval counts as exact. A selector that matches no row is an error.
func (c Condition) SelectValues(rows []Row) ([]Difference, error) {
	matched := c.Selector.matching(rows)
	if len(matched) == 0 {
		return nil, c.Selector.noMatch(rows)
	}
	var out []Difference
	for _, r := range matched {
		d := Difference{A: r, B: r, Value: r.Value, Low: r.Low, High: r.High}
		if math.IsNaN(r.Low) || math.IsNaN(r.High) {
			d.Low, d.High = r.Value, r.Value
		}
		out = append(out, d)
	}
	return out, nil
}

// Met returns for each gate what meets its condition, the most extreme first. All gates are one
// family of claims: where nothing really is beyond its bound, some condition is met with a
// probability of at most 5 %. Exceptions are conditions that end in an exclamation mark.
func Met(gates []Gate) [][]Difference {
	var p []float64
	for _, g := range gates {
		for _, d := range g.On {
			p = append(p, g.Condition.p(d))
		}
	}
	adjusted := Holm(p)
	out := make([][]Difference, len(gates))
	for i, g := range gates {
		for k, d := range g.On {
			if g.Condition.IncludeInsignificant && g.Condition.beyond(d) || adjusted[k] < Level {
				out[i] = append(out[i], d)
			}
		}
		adjusted = adjusted[len(g.On):]
		slices.SortStableFunc(out[i], func(a, b Difference) int {
			if g.Condition.Less {
				return cmp.Compare(a.Value, b.Value)
			}
			return cmp.Compare(b.Value, a.Value)
		})
	}
	return out
}

func (c Condition) beyond(d Difference) bool {
	return c.Less && d.Value < c.Bound || !c.Less && d.Value > c.Bound
}

// p returns the p-value of the hypothesis that a difference is not beyond the bound; NaN if there
// is no such test.
func (c Condition) p(d Difference) float64 {
	half := d.Value - d.Low // on the side of the bound
	if c.Less {
		half = d.High - d.Value
	}
	moved := d
	moved.Value -= c.Bound
	switch {
	case c.IncludeInsignificant || math.IsNaN(half):
		return math.NaN()
	case !c.beyond(d) || !moved.beyondRounding():
		return 1
	}
	return resample.PValue(d.Value-c.Bound, half, cmp.Or(d.freedom, unknownFreedom))
}

// FailingValues returns the rows whose values meet the condition, the most extreme first, as one
// family of claims. A selector that matches no row is an error.
func (c Condition) FailingValues(rows []Row) ([]Row, error) {
	on, err := c.SelectValues(rows)
	if err != nil {
		return nil, err
	}
	var out []Row
	for _, d := range Met([]Gate{{c, on}})[0] {
		out = append(out, d.A)
	}
	return out, nil
}

// Failing returns the differences that meet the condition, the most extreme first, as one family of
// claims. A selector that matches none is an error.
func (c Condition) Failing(differences []Difference) ([]Difference, error) {
	on, err := c.Select(differences)
	if err != nil {
		return nil, err
	}
	return Met([]Gate{{c, on}})[0], nil
}
