package scores

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
)

// A Cell is the finished work of one measure for a model, some data, one value of a
// transformation's parameter and one trial. A study keeps each in a file of its own (see
// WriteCell); rows are made from cells, and so are means over values and trials (see Table), since
// cells still have the replicates that an interval of a mean needs.
type Cell struct {
	Model      string
	OtherModel string // "" where the measure concerns one model
	Data       string
	Transform  string
	// "" where the transformation has one value or a range, and for the mean over values
	Parameter string
	Trial     int // 0, 1, ...; MeanOverTrials for what is derived over trials
	Measure   string
	Layers    []Layer // one with no name for scores of the whole model
	// Bytes that the process held at most while it worked at the cell and what shared its pass; 0:
	// not known.
	PeakMemory int64
}

// MeanOverTrials is the trial of what is derived over trials.
const MeanOverTrials = -1

// NoDepth is the depth of what is no layer.
const NoDepth = -1

// A Layer holds the scores of one layer, or of a pair of layers of two models.
type Layer struct {
	Name   string // "" for the whole model
	Depth  int    // NoDepth for the whole model
	Other  string // the layer of the other model; usually empty
	Scores []measure.Score
}

// Rows returns the cell's scores as rows, in the order that they have in it.
func (c Cell) Rows(study string) []Row {
	var rows []Row
	for _, l := range c.Layers {
		for _, s := range l.Scores {
			parameter := c.Parameter
			if s.Parameter != "" {
				parameter = s.Parameter
			}
			rows = append(rows, Row{
				Study: study, Model: c.Model, Layer: l.Name, Depth: l.Depth, OtherModel: c.OtherModel, OtherLayer: l.Other,
				Data: c.Data, Transform: c.Transform, Parameter: parameter, Trial: c.Trial,
				Measure: c.Measure, Variant: s.Variant, Factor: s.Factor, Statistic: s.Statistic,
				Value: s.Value, Low: s.Low, High: s.High, Null: s.Null, N: s.N, Warning: strings.Join(s.Warnings, "; "),
			})
		}
	}
	return rows
}

// Table returns the rows of a study: those of the cells and of what is derived from them.
func Table(study string, cells []Cell, failed ...Failure) []Row {
	var rows []Row
	for _, c := range Derived(cells, failed...) {
		rows = append(rows, c.Rows(study)...)
	}
	return rows
}

// Derived returns the cells, then their means over values, then the means over trials of both.
// Within each the order is that of the cells, so models, layers and values stay as the study has
// them. A mean that a failed cell belongs to is left out: over the others alone it would be another
// number under the same name.
func Derived(cells []Cell, failed ...Failure) []Cell {
	values := OverValues(cells)
	trials := append(OverTrials(cells), OverTrials(values)...)
	lacking := meansOf(failed)
	all := slices.Clone(cells)
	for _, c := range append(values, trials...) {
		if !lacking[c.identity()] {
			all = append(all, c)
		}
	}
	return all
}

// meansOf are the identities of every mean that some failed cell belongs to.
func meansOf(failed []Failure) map[string]bool {
	out := map[string]bool{}
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

// identity is a string that two cells share if they differ in their scores alone.
func (c Cell) identity() string {
	return fmt.Sprintf("%q %q %q %q %q %d %q", c.Model, c.OtherModel, c.Data, c.Transform, c.Parameter, c.Trial, c.Measure)
}
