package figure

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/scores"
)

// A Filter chooses rows. Each list names what is kept, by names or patterns such as "resnet*"; an empty list keeps all. In a pattern *
// stands for any text, / among it.
type Filter struct {
	Measure, Statistic, Model, Data, Transform, Parameter, Layer, Variant, Factor []string
}

// Rows returns the rows that the filter keeps. A name that no row bears is an error, lest a slip pass for an empty run.
func (f Filter) Rows(rows []scores.Row) ([]scores.Row, error) {
	for _, c := range f.criteria() {
		for _, pattern := range c.patterns {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, fmt.Errorf("%s %q is no pattern: %w", c.name, pattern, err)
			}
			if !slices.ContainsFunc(rows, func(r scores.Row) bool { return matches(pattern, c.of(&r)) }) {
				return nil, fmt.Errorf("no score has the %s %q; there are %s", c.name, pattern, some(known(rows, c.of)))
			}
		}
	}
	var out []scores.Row
	for i := range rows {
		if f.Keeps(&rows[i]) {
			out = append(out, rows[i])
		}
	}
	if len(out) == 0 && len(rows) > 0 {
		return nil, fmt.Errorf("%w: no score meets all filters at once", errEmpty)
	}
	return out, nil
}

// Keeps reports whether the filter keeps a row.
func (f Filter) Keeps(r *scores.Row) bool {
	for _, c := range f.criteria() {
		if len(c.patterns) > 0 && !slices.ContainsFunc(c.patterns, func(p string) bool { return matches(p, c.of(r)) }) {
			return false
		}
	}
	return true
}

type criterion struct {
	name     string
	patterns []string
	of       func(*scores.Row) string
}

func (f Filter) criteria() []criterion {
	return []criterion{
		{"measure", f.Measure, func(r *scores.Row) string { return r.Measure }},
		{"statistic", f.Statistic, func(r *scores.Row) string { return r.Statistic }},
		{"model", f.Model, func(r *scores.Row) string { return r.Model }},
		{"data", f.Data, func(r *scores.Row) string { return r.Data }},
		{"transform", f.Transform, plainTransform},
		{"parameter", f.Parameter, func(r *scores.Row) string { return r.Parameter }},
		{"layer", f.Layer, func(r *scores.Row) string { return r.Layer }},
		{"variant", f.Variant, func(r *scores.Row) string { return r.Variant }},
		{"factor", f.Factor, func(r *scores.Row) string { return r.Factor }},
	}
}

// matches is path.Match with names of layers, whose slashes divide nothing here.
func matches(pattern, name string) bool {
	if pattern == name {
		return true
	}
	flat := strings.NewReplacer("/", "\x01")
	ok, _ := path.Match(flat.Replace(pattern), flat.Replace(name))
	return ok
}

func known(rows []scores.Row, of func(*scores.Row) string) []string {
	var out []string
	for i := range rows {
		if v := of(&rows[i]); v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// headlines keeps, where the rows hold several statistics, those worth a first look: with a direction, and with bounds where any has
// them, so that they compare. A statistic asked for by a filter is alone and so stays.
func headlines(rows []scores.Row) []scores.Row {
	keep := map[string]bool{}
	for _, m := range report.Describe(rows) {
		shown := m.Headline()
		bounded := slices.DeleteFunc(slices.Clone(shown), func(s report.Statistic) bool { return !(s.Max-s.Min < 1e9) })
		if len(bounded) > 0 {
			shown = bounded
		}
		for _, s := range shown {
			keep[m.Name+"."+s.Name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return !keep[r.Measure+"."+r.Statistic] })
}
