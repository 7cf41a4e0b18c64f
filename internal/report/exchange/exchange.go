// Package exchange writes the scores of a run in the forms that other places read: the evaluation
// results of Hugging Face's model pages, a section of a model card, the schema of Every Eval Ever,
// JUnit's XML, and a badge.
//
// All but the badge hold the scores of an overview: for each model the means over values of a
// transformation, of whole models if the run has such, and of layers otherwise.
package exchange

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/table"
	"github.com/noether-ml/noether/scores"
)

// A Run is what is written.
type Run struct {
	Rows       []scores.Row
	Record     scores.Record
	Replicates *report.Replicates // for the sentences of a model card; may be nil
	// Every writes all statistics, not only the accuracy and those with a direction.
	Every bool
}

// overview returns the rows of the overview. A score of the untransformed data, which the scores of
// a run repeat for each transformation, is there once and without one.
func (r *Run) overview() []scores.Row {
	titles := r.titles()
	var rows []scores.Row
	seen := map[string]bool{}
	for _, row := range table.Select(r.Rows, table.Options{Every: r.Every, Measures: r.Record.Measures}) {
		if titles.Statistic(&row).Untransformed {
			row.Transform, row.Parameter = "", ""
		}
		if key := row.Model + "\x00" + id(&row); !seen[key] {
			seen[key] = true
			rows = append(rows, row)
		}
	}
	return rows
}

// shown returns the rows of the overview that have a value, and the number of those without.
func (r *Run) shown() (rows []scores.Row, without int, err error) {
	all := r.overview()
	for _, row := range all {
		if !math.IsNaN(row.Value) && !math.IsInf(row.Value, 0) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, 0, errors.New("no score has a value")
	}
	return rows, len(all) - len(rows), nil
}

// models returns the names of the models of rows, in their order.
func models(rows []scores.Row) []string {
	var names []string
	for _, row := range rows {
		if !slices.Contains(names, row.Model) {
			names = append(names, row.Model)
		}
	}
	return names
}

// one returns the only model of rows. what says what holds one model.
func one(rows []scores.Row, what string) (string, error) {
	names := models(rows)
	if len(names) > 1 {
		return "", fmt.Errorf("%s is of one model, and the scores are of %s: choose one with --model", what, strings.Join(names, ", "))
	}
	return names[0], nil
}

// titles returns the descriptors of the rows' statistics.
func (r *Run) titles() report.Measures { return report.Describe(r.Rows, r.Record.Measures) }

// sentence describes a score without its model, such as "effective invariance under tilt 15 on
// photos".
func sentence(titles report.Measures, row *scores.Row) string {
	text := titles.Statistic(row).Title
	if row.Factor != "" {
		text += " of " + row.Factor
	}
	if row.Layer != "" {
		text += " at " + row.Layer
	}
	if row.OtherModel != "" || row.OtherLayer != "" {
		text += " against " + strings.TrimSpace(row.OtherModel+" "+row.OtherLayer)
	}
	if under := strings.TrimSpace(row.Transform + " " + row.Parameter); under != "" {
		text += " under " + under
	}
	if row.Variant != "" {
		text += ", " + row.Variant
	}
	return report.Printable(text + " on " + row.Data)
}

// id identifies a score among those of its model: its names, joined by dots, with the letters of
// URLs.
func id(row *scores.Row) string {
	var parts []string
	for _, part := range []string{row.Data, row.Transform, row.Parameter, row.Layer, row.OtherModel, row.OtherLayer, row.Variant, row.Factor, row.Measure, row.Statistic} {
		if part != "" {
			parts = append(parts, slug(part))
		}
	}
	return strings.Join(parts, ".")
}

// slug replaces characters other than letters, digits, hyphens and underscores.
func slug(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '-'
	}, name)
}

// evidence returns the interval, n and warning of a score as a text.
func evidence(row *scores.Row) string {
	var parts []string
	if interval := report.Interval(row.Low, row.High); interval != "" {
		parts = append(parts, "95 % interval "+interval)
	}
	parts = append(parts, fmt.Sprintf("n = %d", row.N))
	if row.Warning != "" {
		parts = append(parts, "warning: "+report.Printable(row.Warning))
	}
	return strings.Join(parts, "; ")
}
