package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// A Field is a property of score rows that a chart shows by an axis, a colour or a panel.
type Field string

// A FieldLabel holds the texts of a field.
type FieldLabel struct {
	Title string `json:"title"`
	Empty string `json:"empty,omitempty"` // shown for the empty value
}

// FieldLabels holds the labels of all fields.
var FieldLabels = map[Field]FieldLabel{
	"model":     {"model", "none"},
	"reference": {"model", "none"},
	"compared":  {"other model", "none"},
	"transform": {"transformation", "untransformed"},
	"name":      {"transformation", "untransformed"},
	"parameter": {"value of the parameter", "mean"},
	"data":      {"data", "none"},
	"variant":   {"variant", "default"},
	"factor":    {"factor", "all samples"},
	"layer":     {"layer", "none"},
	"other":     {"other layer", "none"},
	"depth":     {"depth of the layer", ""},
	"statistic": {"statistic", ""},
	"pair":      {"factor under transformation", ""},
	"part":      {"part of the range", ""},
}

// FieldNames returns the names of all fields in alphabetical order.
func FieldNames() []string {
	var names []string
	for f := range FieldLabels {
		names = append(names, string(f))
	}
	slices.Sort(names)
	return names
}

// Title returns the title of the field, such as "transformation".
func (f Field) Title() string { return FieldLabels[f].Title }

// Of returns the value of the field of a row. The transformation includes the value of its
// parameter; the field "name" is the transformation alone.
func (f Field) Of(measures Measures, r *scores.Row) string {
	switch f {
	case "model":
		return measures.ModelLabel(r)
	case "reference":
		return r.Model
	case "compared":
		return r.OtherModel
	case "transform":
		return transformLabel(r)
	case "name":
		return r.Transform
	case "parameter", "part": // see InParts
		return r.Parameter
	case "data":
		return r.Data
	case "variant":
		return r.Variant
	case "factor":
		return r.Factor
	case "layer":
		return r.Layer
	case "other":
		return r.OtherLayer
	case "depth":
		return fmt.Sprint(r.Depth)
	case "statistic":
		return r.Measure + "." + r.Statistic
	case "pair":
		if r.Factor == "" || r.Transform == "" {
			return r.Factor + r.Transform
		}
		return r.Factor + " under " + r.Transform
	}
	return ""
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
	return slices.ContainsFunc(rows, func(r scores.Row) bool { return f.Of(measures, &r) != f.Of(measures, &rows[0]) })
}

// quarterNames are the names of the four parts of a range, the lowest first, as in Figure 8 of
// Plachouras et al. 2025.
var quarterNames = []string{"– –", "–", "+", "+ +"}

// Parts returns for each row the name of its part of the range of its transformation, such as "1",
// "2" and "3", or "" for a row without a parameter, and all names in order. Transformations with
// different ranges share names.
func Parts(rows []scores.Row) (parts, order []string) {
	type scale struct{ measure, transform string }
	of := func(r *scores.Row) scale { return scale{r.Measure, r.Transform} }
	known := map[scale]map[string]bool{}
	for i := range rows {
		if r := &rows[i]; r.Parameter != "" {
			if known[of(r)] == nil {
				known[of(r)] = map[string]bool{}
			}
			known[of(r)][r.Parameter] = true
		}
	}
	names := map[scale]map[string]string{}
	most := 0
	for s, values := range known {
		names[s] = map[string]string{}
		for i, v := range slices.SortedFunc(maps.Keys(values), ByNumber) {
			names[s][v] = fmt.Sprint(i + 1)
			if len(values) == len(quarterNames) {
				names[s][v] = quarterNames[i]
			}
		}
		most = max(most, len(values))
	}
	for i := range rows {
		parts = append(parts, names[of(&rows[i])][rows[i].Parameter])
	}
	order = slices.Clone(quarterNames)
	for i := range most {
		order = append(order, fmt.Sprint(i+1))
	}
	return parts, order
}
