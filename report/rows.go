package report

import (
	"github.com/noether-ml/noether/scores"
)

// Overview returns the rows that summarise a run, in the order of the study: for each score the mean over the values of its parameter and over
// trials, where there is one. Rows of single classes and factors are left out where a row of all samples stands for them.
func Overview(rows []scores.Row) []scores.Row { return overview(rows) }

// OverTrials returns the rows that stand for their trials, in their order: what is derived over them, or the first. Each value of a
// parameter has its own.
func OverTrials(rows []scores.Row) []scores.Row {
	c := choose(rows)
	var kept []scores.Row
	for i, r := range rows {
		if c.trial[i] {
			kept = append(kept, r)
		}
	}
	return kept
}

// ModelLabel names the model of a row, or the two that are compared.
func ModelLabel(r *scores.Row) string { return modelLabel(r) }

// Headline returns the statistics worth a first look: those with a direction, or all where none has one.
func (m Measure) Headline() []Statistic { return m.headline() }

// Printable replaces what would steer a terminal or hide in a page (control characters, and the marks that reverse the direction of
// text) by "?".
func Printable(s string) string { return printable(s) }

// Shorten brings a name to at most width cells by cutting out its middle.
func Shorten(s string, width int) string { return shorten(s, width) }

// Number writes a value as the report's tables do: with three decimals; large and whole ones with fewer.
func Number(v float64) string { return number(v) }

// Interval writes "[0.905, 0.919]", or "" where there is none.
func Interval(low, high float64) string { return interval(low, high) }
