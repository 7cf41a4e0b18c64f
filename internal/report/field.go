package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// A Field is a property of rows of scores that a chart shows by an axis, a colour or a panel: one
// of FieldNames. An Axis may also name a column of numbers of its chart's table.
type Field string

// A FieldLabel holds the texts of a field.
type FieldLabel struct {
	Title string `json:"title"`
	Empty string `json:"empty,omitempty"` // shown for the empty value
}

// fields holds the labels of all fields and their values in a row. The two models of a comparison
// are "reference" and "compared", its second layer is "other"; "model" names both models. "pair"
// and "part" are for scores of probes; Parts describes the latter. "name" is the transformation
// without the value of its parameter. Without a parameter a row is the mean over its values.
var fields = map[Field]struct {
	FieldLabel
	of func(*scores.Row) string // the value of the field in a row; nil for the model, see Field.Of
}{
	"model":     {FieldLabel{"model", "none"}, nil},
	"reference": {FieldLabel{"model", "none"}, byModel},
	"compared":  {FieldLabel{"other model", "none"}, func(r *scores.Row) string { return r.OtherModel }},
	"transform": {FieldLabel{"transformation", "untransformed"}, transformLabel},
	"name":      {FieldLabel{"transformation", "untransformed"}, byTransform},
	"parameter": {FieldLabel{"value of the parameter", "mean"}, byParameter},
	"data":      {FieldLabel{"data", "none"}, byData},
	"variant":   {FieldLabel{"variant", "default"}, func(r *scores.Row) string { return r.Variant }},
	"factor":    {FieldLabel{"factor", "all samples"}, func(r *scores.Row) string { return r.Factor }},
	"layer":     {FieldLabel{"layer", "none"}, func(r *scores.Row) string { return r.Layer }},
	"other":     {FieldLabel{"other layer", "none"}, func(r *scores.Row) string { return r.OtherLayer }},
	"depth":     {FieldLabel{"depth of the layer", ""}, func(r *scores.Row) string { return fmt.Sprint(r.Depth) }},
	"statistic": {FieldLabel{"statistic", ""}, func(r *scores.Row) string { return r.Measure + "." + r.Statistic }},
	"pair":      {FieldLabel{"factor under transformation", ""}, func(r *scores.Row) string { return strings.Join(nonEmpty(r.Factor, r.Transform), " under ") }},
	"part":      {FieldLabel{"part of the range", ""}, byParameter}, // in rows whose Parameter was replaced by its part; see Parts
}

func byParameter(r *scores.Row) string { return r.Parameter }

// FieldLabels returns the labels of all fields.
func FieldLabels() map[Field]FieldLabel {
	out := make(map[Field]FieldLabel)
	for f, label := range fields {
		out[f] = label.FieldLabel
	}
	return out
}

// FieldNames returns the names of all fields in alphabetical order.
func FieldNames() []string {
	var names []string
	for f := range fields {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return names
}

// Title returns the title of the field, such as "transformation".
func (f Field) Title() string { return fields[f].Title }

// Of returns the value of the field in a row. That of "transform" includes the value of the
// parameter, that of "name" does not. measures is used for "model" only: it says how two compared
// models are labelled.
func (f Field) Of(measures Measures, r *scores.Row) string {
	if f == "model" {
		return measures.ModelLabel(r)
	}
	return fields[f].of(r)
}

// Distinct returns the distinct values of the field, in order of appearance.
func (f Field) Distinct(measures Measures, rows []scores.Row) []string {
	var out []string
	seen := map[string]bool{}
	for i := range rows {
		if v := f.Of(measures, &rows[i]); !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// varies reports whether the field has several values among rows.
func (f Field) varies(measures Measures, rows []scores.Row) bool {
	for i := range rows { // by index: a copy of each row would be allocated
		if f.Of(measures, &rows[i]) != f.Of(measures, &rows[0]) {
			return true
		}
	}
	return false
}

// quarterNames are the names of the four parts of a range, the lowest first, as in Figure 8 of
// Plachouras et al. 2025.
var quarterNames = []string{"– –", "–", "+", "+ +"}

// Parts returns for each row the name of the part of its transformation's range to which its
// parameter belongs, or "" for a row without a parameter. Each value of the parameter that occurs
// with the row's measure and transformation stands for a part. The names are quarterNames if there
// are four values, otherwise "1", "2" and so on, from the lowest value to the highest, so that
// transformations with different ranges share names. order holds all names that can occur:
// quarterNames, and then the numbers.
func Parts(rows []scores.Row) (parts, order []string) {
	type group struct{ measure, transform string }
	groupOf := func(r *scores.Row) group { return group{r.Measure, r.Transform} }
	known := map[group]map[string]bool{}
	for i := range rows {
		if r := &rows[i]; r.Parameter != "" {
			if known[groupOf(r)] == nil {
				known[groupOf(r)] = map[string]bool{}
			}
			known[groupOf(r)][r.Parameter] = true
		}
	}
	names := map[group]map[string]string{}
	most := 0
	for g, values := range known {
		names[g] = map[string]string{}
		for i, v := range slices.SortedFunc(maps.Keys(values), byNumber) {
			names[g][v] = fmt.Sprint(i + 1)
			if len(values) == len(quarterNames) {
				names[g][v] = quarterNames[i]
			}
		}
		most = max(most, len(values))
	}
	for i := range rows {
		parts = append(parts, names[groupOf(&rows[i])][rows[i].Parameter])
	}
	order = slices.Clone(quarterNames)
	for i := range most {
		order = append(order, fmt.Sprint(i+1))
	}
	return parts, order
}
