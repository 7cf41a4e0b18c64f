package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/papers/internal/tablefile"
	"github.com/noether-ml/noether/scores"
)

// A layout says which scores a table has, and what its rows and columns are. The table can also
// have differences: the scores with a value in of, minus those with the value minus, of the field
// by.
type layout struct {
	row, column, statistics []string            // fields that name rows and columns; statistics that are shown
	shown                   map[string][]string // by field: the values that are shown; all if it has none
	of                      []string            // values of the field by; see above
	minus, by               string
	unpaired                bool     // a difference is that of two means, over trainings that share no seed
	digits                  int      // decimal places
	names                   []string // OLD=NEW or FIELD:OLD=NEW, see rename
}

// A training is what the name of a model states.
type training struct {
	series, network, seed, epoch string
}

// seeded matches the name of a model that has a seed: its series, seed, network and epoch.
var seeded = regexp.MustCompile(`^(?:(.*)/)?seed-([^-/]+)-?([^/]*)(?:/epoch-(\d+))?$`)

// trainingOf reads the name of a model, such as series/seed-2-augment-plain/epoch-3. The network is
// what follows the seed, or the series if nothing does. Other models have no seed.
func trainingOf(model string) training {
	m := seeded.FindStringSubmatch(model)
	if m == nil {
		return training{network: model}
	}
	t := training{series: m[1], network: m[3], seed: m[2], epoch: m[4]}
	t.network = cmp.Or(t.network, m[1])
	return t
}

// A cell has the values of one statistic by seed. A difference has those that are subtracted too.
type cell struct {
	row         []string
	column      string
	difference  bool
	plus, minus tablefile.Sample
}

// write writes the table of the means over seeds: the statistics in the order of l.statistics, and
// each in the order of rows. It is CSV with a line for each cell. Where rows has means over trials
// or over the values of a parameter, the scores of single trials or values are left out. A
// statistic null-NAME is the null of NAME.
func (l *layout) write(out io.Writer, rows []scores.Row) error {
	if len(l.row) == 0 || len(l.column) == 0 || len(l.statistics) == 0 {
		return errors.New("table needs -row, -column and -score")
	}
	type aggregation struct{ trials, values bool }
	key := func(r scores.Row) [5]string { return [5]string{r.Model, r.Data, r.Transform, r.Layer, r.Statistic} }
	means := map[[5]string]aggregation{} // what each score has means over: trials, or parameter values
	for _, r := range rows {
		m := means[key(r)]
		means[key(r)] = aggregation{m.trials || r.Trial == scores.MeanOverTrials, m.values || r.Parameter == ""}
	}
	var cells []*cell
	for _, wanted := range l.statistics {
		statistic, null := strings.CutPrefix(wanted, "null-")
		for _, r := range rows {
			if m := means[key(r)]; r.Statistic != statistic || m.trials && r.Trial != scores.MeanOverTrials || m.values && r.Parameter != "" {
				continue
			}
			value := r.Value
			if null {
				value = r.Null
			}
			if err := l.add(&cells, r, wanted, value); err != nil {
				return err
			}
		}
	}
	if len(cells) == 0 {
		return errors.New("no score is chosen")
	}
	table := [][]string{append(slices.Clone(l.row), "statistic", "value", "low", "high")}
	for _, c := range cells {
		table = append(table, slices.Concat(c.row, []string{c.column}, l.cell(c)))
	}
	return csv.NewWriter(out).WriteAll(table)
}

// fieldsOf returns the fields of a score that rows and columns can be named by.
func fieldsOf(r scores.Row, statistic string) map[string]string {
	t := trainingOf(r.Model)
	return map[string]string{"series": t.series, "network": t.network, "epoch": t.epoch, "layer": r.Layer, "data": r.Data, "transform": r.Transform, "score": statistic}
}

// shows reports whether a score with the given fields is shown.
func (l *layout) shows(fields map[string]string) bool {
	for field, values := range l.shown {
		if !slices.Contains(values, fields[field]) {
			return false
		}
	}
	return true
}

// add enters a value into its cell, and into those of the differences that it belongs to.
func (l *layout) add(cells *[]*cell, r scores.Row, statistic string, value float64) error {
	fields, seed := fieldsOf(r, statistic), trainingOf(r.Model).seed
	if !l.shows(fields) {
		return nil
	}
	own := fields[l.by]
	if err := l.enter(cells, fields, false, false, seed, value); err != nil {
		return err
	}
	for _, of := range l.of {
		if own != of && own != l.minus {
			continue
		}
		fields[l.by] = l.rename(l.by, of) + " - " + l.rename(l.by, l.minus)
		if err := l.enter(cells, fields, true, own == l.minus, seed, value); err != nil {
			return err
		}
	}
	return nil
}

// enter adds the value of a seed to the cell of the fields. difference says that the cell is a
// difference, and minus that the value is subtracted.
func (l *layout) enter(cells *[]*cell, fields map[string]string, difference, minus bool, seed string, value float64) error {
	label := func(names []string) (out []string) {
		for _, n := range names {
			out = append(out, l.rename(n, fields[n]))
		}
		return out
	}
	row, column := label(l.row), strings.Join(label(l.column), ", ")
	i := slices.IndexFunc(*cells, func(c *cell) bool { return slices.Equal(c.row, row) && c.column == column })
	if i < 0 {
		i = len(*cells)
		*cells = append(*cells, &cell{row, column, difference, tablefile.Sample{}, tablefile.Sample{}})
	}
	to := (*cells)[i].plus
	if minus {
		to = (*cells)[i].minus
	}
	if _, ok := to[seed]; ok {
		return fmt.Errorf("two scores belong to row %q, column %q and seed %q: name more fields in -row or -column", row, column, seed)
	}
	to[seed] = value
	return nil
}

// rename returns the label of a value of a field.
func (l *layout) rename(field, label string) string {
	for _, n := range l.names {
		if from, to, ok := strings.Cut(n, "="); ok && (from == label || from == field+":"+label) {
			return to
		}
	}
	return label
}

// cell returns a mean and its 95 % interval: Student's, or Welch's of an unpaired difference.
func (l *layout) cell(c *cell) []string {
	values := c.plus.Values()
	if c.difference {
		values = c.plus.Minus(c.minus)
	}
	mean, half := resample.Student(values)
	if c.difference && l.unpaired {
		mean, half = resample.Welch(c.minus.Values(), c.plus.Values())
	}
	return tablefile.Cells(fmt.Sprintf("%%.%df", l.digits), mean, mean-half, mean+half)
}

// correlations writes a row for each data set and a column for each score of each file: Pearson's
// r, Spearman's rho, and the interval of r. A file may be TEXT=FILE, where TEXT is added to the
// titles of its columns. The Variant of a correlation names both quantities, as SCORE ~ OTHER. A
// score without Spearman's rho is an error.
func (l *layout) correlations(out io.Writer, files []string) error {
	table := [][]string{{"test set", "statistic", "value", "spearman", "low", "high"}}
	for _, file := range files {
		text, name, ok := strings.Cut(file, "=")
		if !ok {
			text, name = "", file
		}
		rows, err := tablefile.ReadScores(name)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Statistic != "pearson" {
				continue
			}
			i := slices.IndexFunc(rows, func(o scores.Row) bool {
				return o.Statistic == "spearman" && o.Data == r.Data && o.Variant == r.Variant && o.Model == r.Model
			})
			if i < 0 {
				return fmt.Errorf("%s: no rank correlation of %s on %s", name, r.Variant, r.Data)
			}
			score, _, _ := strings.Cut(r.Variant, " ~ ")
			column := strings.TrimSpace(l.rename("score", score) + " " + text)
			signed := func(v float64) string { return fmt.Sprintf("%+.2f", v) }
			table = append(table, []string{l.rename("data", r.Data), column, signed(r.Value), signed(rows[i].Value), signed(r.Low), signed(r.High)})
		}
	}
	return csv.NewWriter(out).WriteAll(table)
}
