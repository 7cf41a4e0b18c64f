// Package table formats scores as tables for papers and web pages: a line for each model (and data
// set, layer or class, where they differ), a column for each statistic under each transformation,
// and in each cell a value with its 95 % interval. A factor is a property of samples, such as their
// class, to which a row (one score of a run) is limited. A variant tells apart scores that one
// measure computes in several ways. A trial is one of several repetitions of all random draws.
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
	// Every includes all statistics, not only the accuracy and those with a direction, that is, of
	// which higher or lower values are better. A measure without such statistics always has all.
	Every bool
	Plain bool // omit intervals

	// Descriptors (titles, statistics and their ranges) of the rows' measures. A measure without
	// one is shown by its name.
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

// A field is a column that identifies a line.
type field struct {
	name  string
	value func(*scores.Row) string
}

// labels are the columns that identify a line, after the model.
var labels = []field{
	{"data", func(r *scores.Row) string { return r.Data }},
	{"layer", func(r *scores.Row) string { return r.Layer }},
	{"other layer", func(r *scores.Row) string { return r.OtherLayer }},
	{"variant", func(r *scores.Row) string { return r.Variant }},
	{"factor", func(r *scores.Row) string { return r.Factor }},
}

// Of makes a table of rows. Means over parameter values and trials replace the rows that they
// summarise. Layers are left out if there are scores of whole models. It fails if there are no
// scores.
func Of(rows []scores.Row, o Options) (*Table, error) {
	shown := report.Overview(rows)
	if len(shown) == 0 {
		shown = report.OverTrials(rows) // of classes and factors
	}
	if !o.Every {
		shown = headlines(shown, o.Measures)
	}
	if models := slices.DeleteFunc(slices.Clone(shown), func(r scores.Row) bool { return r.Layer != "" }); len(models) > 0 {
		shown = models
	}
	if len(shown) == 0 {
		return nil, errors.New("no scores for the table")
	}
	b := &builder{rows: shown, measures: report.Describe(shown, o.Measures), plain: o.Plain, lines: map[string]int{}, columns: map[columnKey]int{}}
	b.findLabels()
	for i := range shown {
		b.add(&shown[i])
	}
	return b.table(), nil
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

// A columnKey identifies a column.
type columnKey struct{ transform, measure, statistic string }

// A builder collects the lines and columns of a table.
type builder struct {
	rows     []scores.Row
	measures report.Measures
	plain    bool
	fields   []field            // of the labels
	constant map[[2]string]bool // statistics that do not depend on the transformation
	several  bool               // whether there are several transformations
	lines    map[string]int     // index of a line, by its labels
	columns  map[columnKey]int  // index of a column in out.Columns
	out      Table
	cells    []map[int]Cell // of each line, by column
}

// findLabels determines the labels in which lines differ, which always include the model, and the
// statistics that do not depend on the transformation.
func (b *builder) findLabels() {
	b.fields, b.out.Labels = []field{{"model", b.measures.ModelLabel}}, []string{"model"}
	for _, f := range labels {
		if slices.ContainsFunc(b.rows, func(r scores.Row) bool { return f.value(&r) != f.value(&b.rows[0]) }) {
			b.fields = append(b.fields, f)
			b.out.Labels = append(b.out.Labels, f.name)
		}
	}
	type lineStatistic struct{ line, measure, statistic string }
	first := map[lineStatistic]float64{}
	b.constant = map[[2]string]bool{}
	for i := range b.rows {
		r := &b.rows[i]
		b.several = b.several || r.Transform != b.rows[0].Transform
		k, s := lineStatistic{strings.Join(b.labels(r), "\x00"), r.Measure, r.Statistic}, [2]string{r.Measure, r.Statistic}
		before, seen := first[k]
		if _, known := b.constant[s]; !known {
			b.constant[s] = true
		}
		b.constant[s] = b.constant[s] && (!seen || scores.ApproxEqual(before, r.Value))
		first[k] = r.Value
	}
}

// labels returns the labels of the line of a row.
func (b *builder) labels(r *scores.Row) []string {
	var out []string
	for _, f := range b.fields {
		out = append(out, report.Printable(f.value(r)))
	}
	return out
}

// add enters a row into its line and column.
func (b *builder) add(r *scores.Row) {
	names := b.labels(r)
	key := strings.Join(names, "\x00")
	line, seen := b.lines[key]
	if !seen {
		line = len(b.out.Lines)
		b.lines[key] = line
		b.out.Lines = append(b.out.Lines, Line{Labels: names})
		b.cells = append(b.cells, map[int]Cell{})
	}
	column := b.column(r)
	if _, filled := b.cells[line][column]; filled {
		return // repeated for every transformation
	}
	cell := Cell{Value: report.Number(r.Value)}
	if !b.plain {
		cell.Interval = report.Interval(r.Low, r.High)
	}
	b.cells[line][column] = cell
}

// column returns the index of the column of a row, which it adds if there is none.
func (b *builder) column(r *scores.Row) int {
	k := columnKey{r.Transform, r.Measure, r.Statistic}
	if r.Parameter != "" {
		k.transform += " " + r.Parameter
	}
	if b.constant[[2]string{r.Measure, r.Statistic}] && b.several {
		k.transform = ""
	}
	i, seen := b.columns[k]
	if !seen {
		i = len(b.out.Columns)
		b.columns[k] = i
		b.out.Columns = append(b.out.Columns, Column{report.Printable(k.transform), r.Measure, b.measures.Statistic(r)})
	}
	return i
}

// table orders the columns: first those without a transformation, then by transformation.
func (b *builder) table() *Table {
	order := make([]int, len(b.out.Columns))
	var transforms []string
	for i, c := range b.out.Columns {
		order[i] = i
		if !slices.Contains(transforms, c.Transform) {
			transforms = append(transforms, c.Transform)
		}
	}
	place := func(i int) int {
		if t := b.out.Columns[i].Transform; t != "" {
			return 1 + slices.Index(transforms, t)
		}
		return 0
	}
	slices.SortStableFunc(order, func(i, j int) int { return place(i) - place(j) })
	t := &Table{Labels: b.out.Labels, Lines: b.out.Lines}
	for _, i := range order {
		t.Columns = append(t.Columns, b.out.Columns[i])
	}
	for n := range t.Lines {
		for _, i := range order {
			t.Lines[n].Cells = append(t.Lines[n].Cells, b.cells[n][i])
		}
	}
	return t
}
