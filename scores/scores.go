// Package scores holds the scores of a study and reads and writes their files.
//
// A Cell is what a run stores: the scores of one measure for one model, data set, value of a
// transformation and trial. A Row is one score with everything that identifies it, a line of
// scores.csv. Table turns cells into rows and adds derived ones: means over the values of a
// transformation, and means and intervals over trials. A run is one execution of a study; its
// folder holds the cells.
//
//	rows, err := scores.ReadCSV(file)
//	rows, err = scores.Filter{Model: []string{"resnet*"}}.Rows(rows)
//	err = scores.WriteCSV(out, rows)
//
// A Record describes the run that the scores are from. A Comparison computes the differences
// between two runs, with intervals, and a Condition tests rows or differences, as for a gate in
// continuous integration.
package scores

import "strings"

// A Row is one score with everything that identifies it: a line of scores.csv. Text that does not
// apply is empty, a number NaN, empty in the files.
type Row struct {
	Study      string
	Model      string
	Layer      string // "" for scores of the whole model
	Depth      int    // of the layer; NoDepth if there is none
	OtherModel string
	OtherLayer string
	Data       string
	Transform  string
	// Parameter is one of a list of values, the one drawn for a trial, or the midpoint of a part of
	// the range, for measures that score parts. It is "" without one, for the mean over values, and
	// if each sample has its own.
	Parameter string
	Trial     int // 0, 1, ...; MeanOverTrials for a mean over trials
	Measure   string
	Variant   string  // version of the statistic, such as the kind of probe; "" if there is only one
	Factor    string  // the factor (a known property of samples, such as hue) or class that the score is about; else ""
	Statistic string  // one of the measure's statistics
	Value     float64 // of the statistic
	Low       float64 // lower end of the 95 % interval
	High      float64 // upper end
	Null      float64 // value expected by chance
	N         int     // number of observations, usually samples
	Warning   string  // warnings, joined by "; "
	// P is the p-value of the hypothesis that the score is its null, below 0.05 exactly if the
	// interval excludes the null; 0 without an interval or a null.
	P float64
	// PAdjusted is P after Holm's correction for all scores of the table; 0 without one.
	PAdjusted float64
}

// Columns are the names of the columns of scores.csv, in order. They are a public contract.
var Columns = []string{
	"study", "model", "layer", "depth", "other_model", "other_layer", "data", "transform", "parameter", "trial",
	"measure", "variant", "factor", "statistic", "value", "low", "high", "null", "n", "warning",
	"p", "p_adjusted",
}

// columnsBefore is the number of columns of scores.csv of versions without p-values.
var columnsBefore = len(Columns) - 2

// Describe describes what the score belongs to: model, layer, data, transformation and so on, as
// far as they apply.
func (r Row) Describe() string {
	transform := r.Transform
	if r.Parameter != "" {
		transform += "=" + r.Parameter
	}
	var parts []string
	for _, part := range []string{r.Model, r.OtherModel, r.Layer, r.Data, transform, r.Variant, r.Factor} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
