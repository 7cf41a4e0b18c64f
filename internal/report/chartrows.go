package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// Rows returns the rows for a figure: numbers with a place on the axis, without the details that
// they summarise. Curves are of all samples, and bars of whole models, as far as there are such
// rows.
func (c Chart) Rows(rows []scores.Row) []scores.Row {
	place := c.X.Place(nil)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return math.IsNaN(place(&r)) })
	ofParameter := slices.Contains(c.Spread, "parameter")
	switch {
	case c.Table == DistributionChart.Table:
	case ofParameter:
		rows = OverTrials(rows)
	default:
		rows = Overview(rows)
	}
	rows = numbersOnly(rows)
	switch {
	case ofParameter:
		return orAll(rows, func(r scores.Row) bool { return r.Factor == "" })
	case c.Mark == BarMark:
		return orAll(rows, func(r scores.Row) bool { return r.Layer == "" })
	}
	return rows
}

// Rows returns the rows of a heat map. Only the parameter and its part need single values. Names of
// parts, in order, replace parameters. A heat map of layers has no rows of whole models.
func (s Sides) Rows(rows []scores.Row) []scores.Row {
	has := func(f Field) bool { return s.Down == f || s.Across == f }
	switch {
	case has("part"):
		rows = withParameter(OverTrials(rows))
		parts, order := Parts(rows)
		for i := range rows {
			rows[i].Parameter = parts[i]
		}
		slices.SortStableFunc(rows, func(a, b scores.Row) int {
			return slices.Index(order, a.Parameter) - slices.Index(order, b.Parameter)
		})
	case has("parameter"):
		rows = slices.DeleteFunc(withParameter(OverTrials(rows)), func(r scores.Row) bool { return r.Factor != "" })
	default:
		rows = Overview(rows)
	}
	if has("layer") || has("depth") {
		rows = slices.DeleteFunc(rows, func(r scores.Row) bool { return r.Layer == "" })
	}
	return numbersOnly(rows)
}

func numbersOnly(rows []scores.Row) []scores.Row {
	return slices.DeleteFunc(rows, func(r scores.Row) bool { return !finite(r.Value) })
}

// orAll returns the rows for which keep returns true, or all if there are none.
func orAll(rows []scores.Row, keep func(scores.Row) bool) []scores.Row {
	if kept := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool { return !keep(r) }); len(kept) > 0 {
		return kept
	}
	return rows
}

// Place returns a function for the position of a row on the axis: NaN if it has none, 0 if the axis
// shows no number. run holds all rows, for relative depth.
func (a Axis) Place(run []scores.Row) func(*scores.Row) float64 {
	switch a.Field {
	case "depth":
		return func(r *scores.Row) float64 {
			if r.Depth < 0 || Partner(r) != "" {
				return math.NaN()
			}
			return float64(r.Depth)
		}
	case "relative":
		return RelativeDepth(run)
	case "parameter":
		return func(r *scores.Row) float64 { return numberOf(r.Parameter) }
	case "confidence":
		return Confidence
	}
	return func(*scores.Row) float64 { return 0 }
}

// Confidence returns the number of a factor such as confidence=0.5, else NaN.
func Confidence(r *scores.Row) float64 {
	text, ok := strings.CutPrefix(r.Factor, "confidence=")
	if !ok {
		return math.NaN()
	}
	return numberOf(text)
}

// numberOf returns the finite number that a text is, or NaN.
func numberOf(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

// DepthsDiffer reports whether the deepest layers of the models have different depths. Then depth
// is relative by default, because at the same absolute depth a deeper model has computed a smaller
// part of its layers.
func DepthsDiffer(rows []scores.Row) bool {
	high := map[string]int{}
	for _, r := range rows {
		if r.Layer != "" {
			high[r.Model] = max(high[r.Model], r.Depth)
		}
	}
	for _, d := range high {
		if d != high[rows[0].Model] {
			return true
		}
	}
	return false
}

// RelativeDepth returns a function that maps the depths of each model's layers to [0, 1]: 0 is the
// first layer among rows, 1 the last.
func RelativeDepth(rows []scores.Row) func(*scores.Row) float64 {
	low, high := map[string]int{}, map[string]int{}
	for _, r := range rows {
		if r.Depth < 0 {
			continue
		}
		if d, seen := low[r.Model]; !seen || r.Depth < d {
			low[r.Model] = r.Depth
		}
		high[r.Model] = max(high[r.Model], r.Depth)
	}
	return func(r *scores.Row) float64 {
		if span := high[r.Model] - low[r.Model]; span > 0 {
			return float64(r.Depth-low[r.Model]) / float64(span)
		}
		return 0
	}
}
