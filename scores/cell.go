package scores

import (
	"cmp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
)

// A Cell holds the scores of one measure for a model (or pair), data set, parameter value and
// trial. Means are computed from cells, because only these have the replicates of their intervals.
type Cell struct {
	Model      string
	OtherModel string // "" if the measure is of one model
	Data       string
	Transform  string
	// Parameter is the value of the parameter, "" for a single value, a range, and the mean over
	// values.
	Parameter string
	// Drawn holds the values drawn for the trial, if all samples share them; the parameter of rows
	// that have no other.
	Drawn   string
	Trial   int // 0, 1, ...; MeanOverTrials for means over trials
	Measure string
	Layers  []Layer // for scores of the whole model: one layer without a name
	// PeakMemory is the peak memory of the process, in bytes, during the cell's pass; 0 if unknown.
	PeakMemory int64
}

// MeanOverTrials is the Trial of a mean over trials.
const MeanOverTrials = -1

// NoDepth is the Depth of scores that do not belong to a layer.
const NoDepth = -1

// A Layer holds the scores of one layer, or of a pair of layers of two models.
type Layer struct {
	Name   string // "" for the whole model
	Depth  int    // nodes on the longest path from the input; NoDepth for the whole model
	Other  string // the layer that it is compared with; "" if it is not compared
	Scores []measure.Score
}

// Rows returns the scores of the cell as rows of the given study, in the same order.
func (c Cell) Rows(study string) []Row { return c.appendRows(nil, study) }

func (c *Cell) appendRows(rows []Row, study string) []Row {
	for _, l := range c.Layers {
		for i := range l.Scores {
			s := &l.Scores[i]
			rows = append(rows, Row{
				Study: study, Model: c.Model, Layer: l.Name, Depth: l.Depth, OtherModel: c.OtherModel, OtherLayer: l.Other,
				Data: c.Data, Transform: c.Transform, Parameter: c.ParameterOf(s), Trial: c.Trial,
				Measure: c.Measure, Variant: s.Variant, Factor: s.Factor, Statistic: s.Statistic,
				Value: s.Value, Low: s.Low, High: s.High, Null: s.Null, N: s.N, Warning: strings.Join(s.Warnings, "; "), P: chanceP(s),
			})
		}
	}
	return rows
}

// ParameterOf returns the parameter of the row of a score of the cell.
func (c *Cell) ParameterOf(s *measure.Score) string {
	return cmp.Or(s.Parameter, c.Parameter, c.Drawn)
}

// Table returns the rows of a study: those of the cells and of the means derived from them.
func Table(study string, cells []Cell, failed ...Failure) []Row {
	return Rows(study, Derived(cells, failed...))
}

// Rows returns the scores of cells as rows of the given study, in the same order. Their adjusted
// p-values are those of one family.
func Rows(study string, cells []Cell) []Row {
	n := 0
	for _, c := range cells {
		for _, l := range c.Layers {
			n += len(l.Scores)
		}
	}
	rows := slices.Grow([]Row(nil), n)
	for i := range cells {
		rows = cells[i].appendRows(rows, study)
	}
	adjustRows(rows)
	return rows
}

// Derived returns the cells, then their means over values, then the means over trials of both. Each
// of the three parts keeps the order of the cells. A mean that would include a failed cell is left
// out: it would be another quantity under the same name.
func Derived(cells []Cell, failed ...Failure) []Cell {
	values := overValues(cells)
	trials := append(overTrials(cells), overTrials(values)...)
	incomplete := meansOf(failed)
	all := slices.Clone(cells)
	for _, c := range append(values, trials...) {
		if !incomplete[c.identity()] {
			all = append(all, c)
		}
	}
	return all
}

// meansOf returns the identities of all means that would include a failed cell.
func meansOf(failed []Failure) map[cellID]bool {
	out := map[cellID]bool{}
	for _, f := range failed {
		c := f.cell()
		overTrials := c
		overTrials.Trial = MeanOverTrials
		overValues := c
		overValues.Parameter = ""
		overBoth := overTrials
		overBoth.Parameter = ""
		for _, mean := range []Cell{overTrials, overValues, overBoth} {
			out[mean.identity()] = true
		}
	}
	return out
}

// A cellID is equal for cells of the same models, data, transformation, parameter, trial and
// measure.
type cellID struct {
	model, otherModel, data, transform, parameter, measure string
	trial                                                  int
}

func (c *Cell) identity() cellID {
	return cellID{c.Model, c.OtherModel, c.Data, c.Transform, c.Parameter, c.Measure, c.Trial}
}
