// Package scores holds the rows that a study yields: reading and writing them as CSV and Parquet,
// and what is derived from them (means over the values of a transformation, means and intervals
// over trials).
package scores

import "strings"

// A Row is one score with all that identifies it: a line of scores.csv. Fields that do not apply
// are empty; numbers that do not apply are NaN, and empty in the files.
type Row struct {
	Study      string
	Model      string
	Layer      string // "" for scores of the whole model
	Depth      int    // of the layer; -1 where there is none
	OtherModel string
	OtherLayer string
	Data       string
	Transform  string
	// Value of the transformation's parameter; "" where it has one value, a range, or for the mean
	// over values.
	Parameter string
	Trial     int // 0, 1, ...; -1 for what is derived over trials
	Measure   string
	Variant   string
	Factor    string
	Statistic string
	Value     float64
	Low       float64
	High      float64
	Null      float64
	N         int
	Warning   string // warnings, joined by "; "
}

// Columns are the names of the columns in scores.csv, in order. They are a public contract.
var Columns = []string{
	"study", "model", "layer", "depth", "other_model", "other_layer", "data", "transform", "parameter", "trial",
	"measure", "variant", "factor", "statistic", "value", "low", "high", "null", "n", "warning",
}

// Place says in few words what the score is of: model, layer, data, transformation with its
// parameter, variant and factor, as far as they apply.
func (r Row) Place() string {
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
