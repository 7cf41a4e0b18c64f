package figure

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// quarters are the names of four parts of a range, the lowest first, as Figure 8 of Plachouras et
// al. 2025 has them.
var quarters = []string{"– –", "–", "+", "+ +"}

// areInParts reports whether rows are of several factors under transformations, none of which
// stands for all samples, in parts of the transformations' ranges.
func areInParts(rows []scores.Row) bool {
	parts := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Parameter == "" })
	several := func(f Field) bool { return len(distinct(nil, parts, f)) > 1 }
	return several("parameter") && several("factor") && !slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Factor == "" || r.Transform == "" })
}

// inParts keeps the rows of single parts of a range, or of single values, in order, and puts each
// part's name in place of its parameter, so that those of transformations with different ranges
// come together: what the field part tells.
func inParts(rows []scores.Row) []scores.Row {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Parameter == "" })
	known := map[string][]string{}
	for _, r := range rows {
		if !slices.Contains(known[r.Transform], r.Parameter) {
			known[r.Transform] = append(known[r.Transform], r.Parameter)
		}
	}
	for _, parts := range known {
		slices.SortStableFunc(parts, report.ByNumber)
	}
	place := func(r scores.Row) int { return slices.Index(known[r.Transform], r.Parameter) }
	slices.SortStableFunc(rows, func(a, b scores.Row) int { return cmp.Compare(place(a), place(b)) })
	for i, r := range rows {
		at := place(r)
		rows[i].Parameter = strconv.Itoa(at + 1)
		if len(known[r.Transform]) == len(quarters) {
			rows[i].Parameter = quarters[at]
		}
	}
	return rows
}
