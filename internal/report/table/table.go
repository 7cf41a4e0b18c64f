// Package table formats scores as tables for papers and web pages: a line for each model (and data
// set, layer or class, where they differ), a column for each statistic under each transformation,
// and in each cell a value with its 95 % interval.
//
//	t, err := table.Of(rows, table.Options{})
//	err = t.LaTeX(file)
package table

import (
	"errors"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Options are the options of Of.
type Options struct {
	// Every includes all statistics, not only the accuracy and those with a direction.
	Every bool
	Plain bool // omit intervals

	// Descriptors of the rows' measures. A measure without one is shown by its name.
	Measures []measure.Descriptor
}

// A Table holds the labels, columns and lines of a table.
type Table struct {
	Labels  []string // names of the columns that identify a line
	Columns []Column
	Lines   []Line
}

// A Column holds one statistic under one transformation.
type Column struct {
	// Transform includes the parameter value. It is "" if there is no transformation or the
	// statistic does not depend on it.
	Transform string
	Measure   string
	Statistic measure.StatisticDescriptor
}

// A Line holds the scores of one model (and data set, layer, class and so on, as Labels say).
type Line struct {
	Labels []string
	Cells  []Cell // one for each column
}

// A Cell is a value with its interval, each "" if absent.
type Cell struct{ Value, Interval string }

// labels are the fields that may identify a line, besides the model.
var labels = []report.Field{"data", "layer", "other", "variant", "factor"}

// Of makes a table of rows. Rows that summarise others replace them. Layers are left out if there
// are scores of whole models. It fails if there are no scores.
func Of(rows []scores.Row, o Options) (*Table, error) {
	shown := Select(rows, o)
	if len(shown) == 0 {
		return nil, errors.New("no scores for the table")
	}
	measures := report.Describe(shown, o.Measures)
	t := &Table{Labels: []string{"model"}}
	varying := []report.Field{"model"}
	for _, f := range labels {
		if len(f.Distinct(measures, shown)) > 1 {
			varying = append(varying, f)
			t.Labels = append(t.Labels, f.Title())
		}
	}
	names := make([][]string, len(shown)) // labels of the line of each row
	for i := range shown {
		for _, f := range varying {
			names[i] = append(names[i], report.Printable(f.Of(measures, &shown[i])))
		}
	}
	keys := columnKeys(shown, names)
	columns := map[columnKey]int{}
	for _, i := range columnOrder(keys) {
		if _, seen := columns[keys[i]]; !seen {
			columns[keys[i]] = len(t.Columns)
			t.Columns = append(t.Columns, Column{report.Printable(keys[i].transform), shown[i].Measure, measures.Statistic(&shown[i])})
		}
	}
	lines := map[string]int{}
	for i, r := range shown {
		key := strings.Join(names[i], "\x00")
		line, seen := lines[key]
		if !seen {
			line = len(t.Lines)
			lines[key] = line
			t.Lines = append(t.Lines, Line{names[i], make([]Cell, len(t.Columns))})
		}
		cell := &t.Lines[line].Cells[columns[keys[i]]]
		if *cell != (Cell{}) {
			continue // repeated for every transformation
		}
		if cell.Value = report.Number(r.Value); !o.Plain {
			cell.Interval = report.Interval(r.Low, r.High)
		}
	}
	return t, nil
}

// Select returns the rows that the table shows.
func Select(rows []scores.Row, o Options) []scores.Row {
	shown := report.Overview(rows)
	if !o.Every {
		shown = headlines(shown, o.Measures)
	}
	if models := slices.DeleteFunc(slices.Clone(shown), func(r scores.Row) bool { return r.Layer != "" }); len(models) > 0 {
		shown = models
	}
	return shown
}

// headlines returns the rows of statistics with a direction (all of a measure that has none), and
// of the accuracy on untransformed data.
func headlines(rows []scores.Row, known []measure.Descriptor) []scores.Row {
	shown := map[[2]string]bool{{"accuracy", "clean"}: true}
	for _, m := range report.Describe(rows, known) {
		for _, s := range report.Headline(m) {
			shown[[2]string{m.Name, s.Name}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return !shown[[2]string{r.Measure, r.Statistic}] })
}

type columnKey struct{ transform, measure, statistic string }

// columnKeys returns the column of each row, whose line names identify. A statistic that is the
// same under all transformations has a column without one.
func columnKeys(rows []scores.Row, names [][]string) []columnKey {
	type lineStatistic struct{ line, measure, statistic string }
	first := map[lineStatistic]float64{}
	varies := map[columnKey]bool{}
	several := false
	for i, r := range rows {
		several = several || r.Transform != rows[0].Transform
		k := lineStatistic{strings.Join(names[i], "\x00"), r.Measure, r.Statistic}
		before, seen := first[k]
		if seen && !scores.ApproxEqual(before, r.Value) {
			varies[columnKey{"", r.Measure, r.Statistic}] = true
		}
		first[k] = r.Value
	}
	keys := make([]columnKey, len(rows))
	for i, r := range rows {
		keys[i] = columnKey{"", r.Measure, r.Statistic}
		if varies[keys[i]] || !several {
			keys[i].transform = strings.TrimSuffix(r.Transform+" "+r.Parameter, " ")
		}
	}
	return keys
}

// columnOrder returns the indices of rows in the order of their columns: first those without a
// transformation, then by transformation.
func columnOrder(keys []columnKey) []int {
	place := map[string]int{"": 0}
	order := make([]int, len(keys))
	for i, k := range keys {
		order[i] = i
		if _, seen := place[k.transform]; !seen {
			place[k.transform] = len(place)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return place[keys[i].transform] - place[keys[j].transform] })
	return order
}
