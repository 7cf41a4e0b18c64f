package paired

import (
	"slices"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// A table holds sums and counts for each part (all samples, then each class), group and column.
type table struct {
	parts, groups, columns int
	sum                    []float64 // parts x groups x columns
	count                  []int     // parts x groups
}

func newTable(parts, groups, columns int) table {
	return table{parts, groups, columns, make([]float64, parts*groups*columns), make([]int, parts*groups)}
}

func (t *table) clone() table {
	c := newTable(t.parts, t.groups, t.columns)
	c.merge(t)
	return c
}

func (t *table) add(part, group int, values []float64) {
	k := part*t.groups + group
	t.count[k]++
	row := t.sum[k*t.columns : (k+1)*t.columns]
	for i, v := range values {
		row[i] += v
	}
}

func (t *table) merge(o *table) {
	for i, v := range o.sum {
		t.sum[i] += v
	}
	for i, n := range o.count {
		t.count[i] += n
	}
}

func (t *table) n(part int) int {
	n := 0
	for g := range t.groups {
		n += t.count[part*t.groups+g]
	}
	return n
}

func (t *table) mean(part, column int) float64 {
	return t.sumWithout(-1, part, column) / float64(t.n(part))
}

// means returns the means of all columns over a part and all groups but one; -1: over all groups.
func (t *table) means(group, part int) []float64 {
	n := t.n(part)
	if group >= 0 {
		n -= t.count[part*t.groups+group]
	}
	out := make([]float64, t.columns)
	for c := range out {
		out[c] = t.sumWithout(group, part, c) / float64(n)
	}
	return out
}

// sumWithout returns the sum of a column over a part and all groups but one; -1: over all groups.
func (t *table) sumWithout(group, part, column int) float64 {
	var sum float64
	for g := range t.groups {
		if g != group {
			sum += t.at(part, g, column)
		}
	}
	return sum
}

func (t *table) at(part, group, column int) float64 {
	return t.sum[(part*t.groups+group)*t.columns+column]
}

// replicates returns a column's means without one group, each the sum over the other groups, not
// the total less the group: if all values are 0, or all 1, the replicates equal the mean exactly.
func (t *table) replicates(part, column int) []measure.Replicate {
	n := t.n(part)
	var out []measure.Replicate
	for g := range t.groups {
		left := t.count[part*t.groups+g]
		if left == 0 || left == n {
			continue
		}
		out = append(out, measure.Replicate{Value: t.sumWithout(g, part, column) / float64(n-left), Left: left})
	}
	return out
}

func (t *table) Code(c *state.Codec) {
	c.Values(t.sum, t.count)
	c.Check(!slices.ContainsFunc(t.count, func(n int) bool { return n < 0 }), "%w", errOtherSite)
}
