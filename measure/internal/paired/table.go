package paired

import (
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// A table holds sums over samples: for each part of the data (all of it, then each class) and each jackknife
// group a sum per column, and how many samples went into them.
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

// add adds one sample's values to a part.
func (t *table) add(part, group int, values []float64) {
	cell := part*t.groups + group
	t.count[cell]++
	row := t.sum[cell*t.columns : (cell+1)*t.columns]
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

// n is the number of samples of a part.
func (t *table) n(part int) int {
	n := 0
	for g := range t.groups {
		n += t.count[part*t.groups+g]
	}
	return n
}

// mean is a column's mean over a part; NaN over no samples.
func (t *table) mean(part, column int) float64 {
	return t.total(part, column) / float64(t.n(part))
}

func (t *table) total(part, column int) float64 {
	var sum float64
	for g := range t.groups {
		sum += t.at(part, g, column)
	}
	return sum
}

func (t *table) at(part, group, column int) float64 {
	return t.sum[(part*t.groups+group)*t.columns+column]
}

// replicates are a column's means over a part with each group left out in turn. They are sums of the groups that stay, not
// a difference from the total, so that a part whose values are all equal has replicates equal to its mean.
func (t *table) replicates(part, column int) []measure.Replicate {
	n := t.n(part)
	var out []measure.Replicate
	for g := range t.groups {
		left := t.count[part*t.groups+g]
		if left == 0 || left == n {
			continue
		}
		var sum float64
		for other := range t.groups {
			if other != g {
				sum += t.at(part, other, column)
			}
		}
		out = append(out, measure.Replicate{Value: sum / float64(n-left), Left: left})
	}
	return out
}

func (t *table) write(w *state.Writer) {
	w.Floats(t.sum)
	w.Ints(t.count)
}

func (t *table) read(r *state.Reader) {
	r.FloatsInto(t.sum)
	count := r.Ints()
	if len(count) != len(t.count) {
		r.Fail(errOtherSite)
		return
	}
	for _, n := range count {
		if n < 0 {
			r.Fail(errOtherSite)
			return
		}
	}
	copy(t.count, count)
}
