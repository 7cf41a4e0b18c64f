package html

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// binTable has a row for each bin of each distribution.
func binTable(all []report.Distribution, models []scores.ModelRecord) tableData {
	type bin struct {
		*report.Distribution
		text string
		i    int
	}
	var bins []bin
	for i := range all {
		text := all[i].Sentence()
		for k := range all[i].Counts {
			bins = append(bins, bin{&all[i], text, k})
		}
	}
	edge := func(b bin, i int) float64 { return b.Low + (b.High-b.Low)*float64(i)/float64(len(b.Counts)) }
	return packTable(bins, append(subjectColumns(models, func(b bin) *report.Subject { return &b.Subject }, "model", "layer", "data", "transform", "parameter", "factor"),
		column[bin]{name: "text", text: func(b bin) string { return b.text }},
		column[bin]{name: "from", title: "from", number: func(b bin) float64 { return edge(b, b.i) }},
		column[bin]{name: "to", title: "to", number: func(b bin) float64 { return edge(b, b.i+1) }},
		column[bin]{name: "count", title: "count", number: func(b bin) float64 { return float64(b.Counts[b.i]) }},
		column[bin]{name: "share", title: "share", number: func(b bin) float64 { return float64(b.Counts[b.i]) / float64(b.N()) }},
		column[bin]{name: "mean", title: "mean", number: func(b bin) float64 { return b.Mean }},
	))
}

// ranks is the number of equal shares of the units of a layer, ordered by their values.
const ranks = 40

// rankTable has a row for each share of the units of each layer, with the value in its middle.
func rankTable(all []report.Distribution, models []scores.ModelRecord) tableData {
	type rank struct {
		*report.Distribution
		text string
		i    int
	}
	var rows []rank
	sentences := report.MiddleUnits(all)
	for i := range all {
		for k := range ranks {
			if all[i].Of == "unit" {
				rows = append(rows, rank{&all[i], sentences[i], k})
			}
		}
	}
	return packTable(rows, append(subjectColumns(models, func(r rank) *report.Subject { return &r.Subject }, "model", "layer", "transform", "factor"),
		column[rank]{name: "text", text: func(r rank) string { return r.text }},
		column[rank]{name: "from", title: "share of the units, from", number: func(r rank) float64 { return float64(r.i) / ranks }},
		column[rank]{name: "to", title: "to", number: func(r rank) float64 { return float64(r.i+1) / ranks }},
		column[rank]{name: "value", title: "value", number: func(r rank) float64 { return r.Quantile((float64(r.i) + 0.5) / ranks) }},
		column[rank]{name: "n", title: "units", number: func(r rank) float64 { return float64(r.N()) }},
	))
}

// stepTable has a row for each step of each tuning curve.
func stepTable(all []report.TuningCurve, models []scores.ModelRecord) tableData {
	type step struct {
		*report.TuningCurve
		subject               *report.Subject
		amount, value, firing float64 // firing: share of the curve's steps at which the unit fires
	}
	var steps []step
	for i := range all {
		c, first, firing := &all[i], len(steps), all[i].Firing()
		subject := &report.Subject{Of: "step", Model: c.Model, Layer: c.Layer, Data: c.Data, Transform: c.Transform, Measure: c.Measure, Factor: c.Factor}
		for k, v := range c.Values {
			steps = append(steps, step{c, subject, c.Amounts[k], v, firing})
		}
		slices.SortStableFunc(steps[first:], func(a, b step) int { return cmp.Compare(a.amount, b.amount) })
	}
	t := packTable(steps, append(subjectColumns(models, func(s step) *report.Subject { return s.subject }, "model", "layer", "factor"),
		column[step]{name: "text", text: func(s step) string { return s.Sentence() }},
		column[step]{name: "unit", title: "unit", text: func(s step) string { return fmt.Sprint("unit ", s.Unit) }},
		column[step]{name: "amount", title: "amount", number: func(s step) float64 { return s.amount }},
		column[step]{name: "value", title: "value", number: func(s step) float64 { return s.value }},
		column[step]{name: "threshold", title: "threshold", number: func(s step) float64 { return s.Threshold }},
		column[step]{name: "fires", title: "fires", text: func(s step) string { return map[bool]string{true: "yes", false: "no"}[s.Fires(s.value)] }},
		// The sentences of the curves with the largest weight are shown.
		column[step]{name: "weight", number: func(s step) float64 { return s.firing }},
	))
	delete(t.Texts, "statistic") // a curve belongs to all statistics of its measure
	return t
}

// subjectColumns returns the columns that the tables of all attachments have. Those named by shown
// get a title, with which the page shows them. subject returns what a row describes.
func subjectColumns[T any](models []scores.ModelRecord, subject func(T) *report.Subject, shown ...string) []column[T] {
	depth := depths(models)
	columns := []column[T]{
		{name: "of", text: func(r T) string { return subject(r).Of }},
		{name: "model", text: func(r T) string { return subject(r).Model }},
		{name: "layer", text: func(r T) string { return subject(r).Layer }},
		{name: "data", text: func(r T) string { return subject(r).Data }},
		{name: "transform", text: func(r T) string { return subject(r).Transform }},
		{name: "parameter", text: func(r T) string { return subject(r).Parameter }},
		{name: "measure", text: func(r T) string { return subject(r).Measure }},
		{name: "factor", text: func(r T) string { return subject(r).Factor }},
		{name: "statistic", text: func(r T) string { return subject(r).Statistic }},
		{name: "depth", number: func(r T) float64 { return float64(depth(subject(r).Model, subject(r).Layer)) }},
	}
	for i, c := range columns { // titles by report.Field, a property of scores that charts show
		if slices.Contains(shown, c.name) {
			columns[i].title = report.Field(c.name).Title()
		}
	}
	return columns
}

// withAlternatives returns the images with alternative texts: the caption or title where none is
// given.
func withAlternatives(images []report.Image) []report.Image {
	out := slices.Clone(images)
	for i := range out {
		out[i].Alt = cmp.Or(out[i].Alt, out[i].Caption, out[i].Title)
	}
	return out
}
