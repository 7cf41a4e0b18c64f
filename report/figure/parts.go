package figure

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// quarterNames are the names of the four parts of a range, the lowest first, as in Figure 8 of
// Plachouras et al. 2025.
var quarterNames = []string{"– –", "–", "+", "+ +"}

// areInParts reports whether rows are scores of several factors for parts of the ranges of
// transformations, without scores over all factors.
func areInParts(rows []scores.Row) bool {
	parts := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return r.Parameter == "" })
	several := func(f Field) bool { return len(distinct(nil, parts, f)) > 1 }
	return several("parameter") && several("factor") && !slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Factor == "" || r.Transform == "" })
}

// inParts returns the rows of single parts of a range, or of single values, in order. It replaces
// the parameter by the name of the part, so that transformations with different ranges share
// columns; see the field part.
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
		if len(known[r.Transform]) == len(quarterNames) {
			rows[i].Parameter = quarterNames[at]
		}
	}
	return rows
}
