// Package report shows scores to people: a table in the terminal, and a page for the browser that
// is one file and works without a network.
//
// It needs nothing but score rows and the record of the run. Most rows are details: a row for each
// value of a transformation's parameter, for each trial, for each class. What is shown first are
// the rows that summarise them, the mean over the values and what is derived over trials; the page
// keeps the details within reach.
//
// Names of models, layers and transforms come from other people's files. They are shown as text and
// nothing else: escaped in the page, where a content security policy also forbids every script but
// the report's own and every request, and stripped of control characters in the terminal.
package report

import (
	"slices"

	"github.com/noether-ml/noether/scores"
)

// A Level says how far a row summarises others.
type Level int

const (
	Detail     Level = iota // a row of one trial, where another row stands for the trials
	OverTrial               // the row for all trials at one value of the parameter
	OverValues              // the row for all trials and all values of the parameter
)

// An identity is everything that tells a row's score from another one, besides trial and parameter.
type identity struct {
	model, layer, otherModel, otherLayer, data, transform, measure, variant, factor, statistic string
}

func identify(r *scores.Row) identity {
	return identity{r.Model, r.Layer, r.OtherModel, r.OtherLayer, r.Data, r.Transform, r.Measure, r.Variant, r.Factor, r.Statistic}
}

// Levels returns the level of each row. The row for all trials is what is derived over them, or the
// first trial. The row for all values is their mean, or each value where there is no mean.
func Levels(rows []scores.Row) []Level {
	type value struct {
		id        identity
		parameter string
	}
	best := make(map[value]int, len(rows))
	mean := make(map[identity]bool)
	for i := range rows {
		r := &rows[i]
		v := value{identify(r), r.Parameter}
		if j, seen := best[v]; !seen || r.Trial < rows[j].Trial {
			best[v] = i
		}
		if r.Parameter == "" {
			mean[v.id] = true
		}
	}
	levels := make([]Level, len(rows))
	for v, i := range best {
		levels[i] = OverTrial
		if v.parameter == "" || !mean[v.id] {
			levels[i] = OverValues
		}
	}
	return levels
}

// Overview returns the rows to show first, in the order of the study: a mean over values stands
// where the first of its values does, which comes before the means in a run's scores. Rows of
// single classes and factors are among them where no row of all samples stands for them: what a
// probe reads of a hue, or firing rates along the phase of gratings.
func Overview(rows []scores.Row) []scores.Row {
	type subject struct{ measure, statistic, model, other, data, transform, variant string }
	type standing struct {
		place int // of its first row
		whole bool
	}
	of := make([]*standing, len(rows))
	subjects := map[subject]*standing{}
	for i := range rows {
		r := &rows[i]
		s := subject{r.Measure, r.Statistic, r.Model, r.OtherModel, r.Data, r.Transform, r.Variant}
		if subjects[s] == nil {
			subjects[s] = &standing{place: i}
		}
		of[i] = subjects[s]
		of[i].whole = of[i].whole || r.Factor == ""
	}
	var shown []int
	for i, level := range Levels(rows) {
		if level == OverValues && (rows[i].Factor == "" || !of[i].whole) {
			shown = append(shown, i)
		}
	}
	slices.SortStableFunc(shown, func(a, b int) int { return of[a].place - of[b].place })
	kept := make([]scores.Row, len(shown))
	for at, i := range shown {
		kept[at] = rows[i]
	}
	return kept
}

// distinct returns the different non-empty values of a field, in order of appearance.
func distinct(rows []scores.Row, field func(*scores.Row) string) []string {
	var values []string
	seen := map[string]bool{"": true}
	for i := range rows {
		if v := field(&rows[i]); !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}

func byModel(r *scores.Row) string     { return r.Model }
func byData(r *scores.Row) string      { return r.Data }
func byTransform(r *scores.Row) string { return r.Transform }
func byMeasure(r *scores.Row) string   { return r.Measure }

// OverTrials returns the rows that stand for their trials, in their order: what is derived over
// them, or the first. Each value of a parameter has its own.
func OverTrials(rows []scores.Row) []scores.Row {
	var kept []scores.Row
	for i, level := range Levels(rows) {
		if level >= OverTrial {
			kept = append(kept, rows[i])
		}
	}
	return kept
}
