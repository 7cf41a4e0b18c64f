package scores

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Filter selects rows of the table of scores. Each list holds names or patterns such as
// "resnet*"; an empty list matches all rows. * matches any text, including slashes.
type Filter struct {
	Measure, Statistic, Model, Data, Transform, Parameter, Layer, Variant, Factor []string
}

// Rows returns the rows that match the filter. A name or pattern without a match is an error, so
// that a misspelt name is no empty result, and so is no row at all.
func (f Filter) Rows(rows []Row) ([]Row, error) {
	for _, c := range f.criteria() {
		for _, pattern := range c.patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("invalid %s pattern %q: %w", c.name, pattern, err)
			}
			if !slices.ContainsFunc(rows, func(r Row) bool { return Matches(pattern, c.value(&r)) }) {
				return nil, fmt.Errorf("no score has the %s %q; available: %s", c.name, pattern, firstNames(DistinctValues(rows, c.value)))
			}
		}
	}
	var out []Row
	for i := range rows {
		if f.Matches(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	if len(out) == 0 && len(rows) > 0 {
		return nil, errors.New("no score matches all filters")
	}
	return out, nil
}

// Matches reports whether a row matches the filter.
func (f Filter) Matches(r *Row) bool {
	for _, c := range f.criteria() {
		if len(c.patterns) > 0 && !slices.ContainsFunc(c.patterns, func(p string) bool { return Matches(p, c.value(r)) }) {
			return false
		}
	}
	return true
}

// A criterion is one list of a Filter: the patterns that a field of a row must match.
type criterion struct {
	name     string // of the field, for errors
	patterns []string
	value    func(*Row) string // the field
}

func (f Filter) criteria() []criterion {
	return []criterion{
		{"measure", f.Measure, func(r *Row) string { return r.Measure }},
		{"statistic", f.Statistic, func(r *Row) string { return r.Statistic }},
		{"model", f.Model, func(r *Row) string { return r.Model }},
		{"data", f.Data, func(r *Row) string { return r.Data }},
		{"transform", f.Transform, func(r *Row) string { return r.Transform }},
		{"parameter", f.Parameter, func(r *Row) string { return r.Parameter }},
		{"layer", f.Layer, func(r *Row) string { return r.Layer }},
		{"variant", f.Variant, func(r *Row) string { return r.Variant }},
		{"factor", f.Factor, func(r *Row) string { return r.Factor }},
	}
}

// Matches reports whether a name equals a pattern or matches it, as by path.Match, except that *
// also matches slashes, which layer names have.
func Matches(pattern, name string) bool {
	if pattern == name {
		return true
	}
	escape := strings.NewReplacer("/", "\x01")
	ok, _ := path.Match(escape.Replace(pattern), escape.Replace(name))
	return ok
}

// DistinctValues returns the distinct non-empty values of a field, in order of appearance.
func DistinctValues(rows []Row, field func(*Row) string) []string {
	var out []string
	seen := map[string]bool{"": true}
	last := "" // adjacent rows mostly have the same value
	for i := range rows {
		if v := field(&rows[i]); v != last && !seen[v] {
			seen[v] = true
			out = append(out, v)
			last = v
		}
	}
	return out
}

func firstNames(names []string) string {
	if len(names) > 8 {
		names = append(slices.Clone(names[:8]), "…")
	}
	return strings.Join(names, ", ")
}
