package exchange

import (
	"io"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/junit"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/scores"
)

// WriteJUnit writes the scores as JUnit's XML: a suite for each model, a case for each score, with
// its value as output. What could not be measured is an error. A score by itself neither passes nor
// fails: policies judge.
func (r *Run) WriteJUnit(w io.Writer) error {
	rows := r.overview()
	titles := r.titles()
	all := junit.Suites{Name: r.Record.Study}
	names := models(rows)
	for _, f := range r.Record.Failed {
		if !slices.Contains(names, f.Model) {
			names = append(names, f.Model)
		}
	}
	for _, name := range names {
		suite := junit.Suite{Name: name}
		for i := range rows {
			row := &rows[i]
			if row.Model != name {
				continue
			}
			c := junit.Case{Name: sentence(titles, row), Class: name}
			switch {
			case math.IsNaN(row.Value) && row.Measure == scores.BreakingDescriptor().Name: // beyond what was tried, or before
				c.Output = evidence(row)
			case math.IsNaN(row.Value):
				c.Error = &junit.Problem{Message: "no value; " + evidence(row), Type: "missing"}
			default:
				c.Output = report.Number(row.Value) + "; " + evidence(row)
			}
			suite.Add(c)
		}
		for _, f := range r.Record.Failed {
			if f.Model == name {
				suite.Add(junit.Case{Name: report.Printable(f.Describe()), Class: name, Error: &junit.Problem{Message: report.Printable(f.Error), Type: "failure"}})
			}
		}
		all.Suites = append(all.Suites, suite)
	}
	return all.Write(w)
}
