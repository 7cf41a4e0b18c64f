package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A Series holds the rows of one statistic of one model under one transformation: of its layers by
// depth, or a single row for the model's prediction.
type Series struct {
	Model     string // of a measure that compares two models, both
	Data      string
	Transform string // includes the parameter value, unless the rows are a mean over values
	Factor    string
	Variant   string
	Rows      []scores.Row
}

// SeriesOf groups the rows of a measure's statistic. Series are in order of appearance, and the
// rows of each by depth. Rows whose value is not finite are left out.
func SeriesOf(rows []scores.Row, m measure.Descriptor, statistic string) []Series {
	type key struct{ model, other, data, transform, parameter, factor, variant string }
	own := slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool {
		return r.Measure != m.Name || r.Statistic != statistic || !finite(r.Value)
	})
	var all []Series
	for _, of := range groupedBy(own, func(r scores.Row) key {
		return key{r.Model, r.OtherModel, r.Data, r.Transform, r.Parameter, r.Factor, r.Variant}
	}) {
		slices.SortStableFunc(of, func(a, b scores.Row) int { return cmp.Compare(a.Depth, b.Depth) })
		r := &of[0]
		all = append(all, Series{Measures{m}.ModelLabel(r), r.Data, transformLabel(r), r.Factor, r.Variant, of})
	}
	return all
}

// finite reports whether a value is neither missing (NaN) nor infinite.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// byCase groups series by transformation, factor, variant and data, so that the series of a group
// differ in their model.
func byCase(all []Series) [][]Series { return groupedBy(all, Series.withoutModel) }

// A seriesCase is what the series of different models may share.
type seriesCase struct{ transform, factor, variant, data string }

func (s Series) withoutModel() seriesCase {
	return seriesCase{s.Transform, s.Factor, s.Variant, s.Data}
}

// transformLabel returns the transformation of a row with the value of its parameter.
func transformLabel(r *scores.Row) string {
	if r.Parameter == "" {
		return r.Transform
	}
	return r.Transform + " " + r.Parameter
}

// Layered reports whether the scores of the named measure are scores of layers that a reader may
// compare. Those of a measure that compares two models at a single layer of each are not.
func Layered(rows []scores.Row, name string) bool {
	type pair struct{ model, other string }
	firstPair := make(map[pair][2]string)
	for _, r := range rows {
		if r.Measure != name || r.Layer == "" {
			continue
		}
		if r.OtherModel == "" {
			return true
		}
		key, layers := pair{r.Model, r.OtherModel}, [2]string{r.Layer, r.OtherLayer}
		if first, seen := firstPair[key]; seen && first != layers {
			return true
		}
		firstPair[key] = layers
	}
	return false
}

// lowest returns the row with the lowest value; among equal ones the shallowest layer.
func (s Series) lowest() scores.Row {
	return slices.MinFunc(s.Rows, func(a, b scores.Row) int { return cmp.Compare(a.Value, b.Value) })
}

// highest returns the row with the highest value; among equal ones the shallowest layer. If higher
// is better, rows at the level of shuffled pairs (see isAtShuffledLevel) are left out, unless there
// are no others.
func (s Series) highest(d measure.Direction) scores.Row {
	rows := s.Rows
	if d == measure.Higher {
		rows = slices.DeleteFunc(slices.Clone(rows), isAtShuffledLevel)
	}
	if len(rows) == 0 {
		rows = s.Rows
	}
	return slices.MinFunc(rows, func(a, b scores.Row) int { return cmp.Compare(b.Value, a.Value) })
}

// isAtShuffledLevel reports whether a score above 0.5 does not exceed its null by more than
// rounding. Higher must be better. In seis, a layer with fewer observations than positions reaches
// 1 for any data and must not be reported as best.
func isAtShuffledLevel(r scores.Row) bool { return r.Value > 0.5 && r.Null >= r.Value-1e-6 }

// Best returns the row of the layer with the best value; for a statistic without a direction, that
// with the highest value.
func (s Series) Best(d measure.Direction) scores.Row {
	if d == measure.Lower {
		return s.lowest()
	}
	return s.highest(d)
}

// Worst returns the row of the layer with the worst value; for a statistic without a direction,
// that with the lowest value.
func (s Series) Worst(d measure.Direction) scores.Row {
	if d == measure.Lower {
		return s.highest(d)
	}
	return s.lowest()
}

// trend returns Spearman's correlation between depth and value, where ties share their mean rank.
// It is 0 for fewer than three layers or if all values are equal.
func (s Series) trend() float64 {
	if len(s.Rows) < 3 {
		return 0
	}
	depths, values := make([]float64, len(s.Rows)), make([]float64, len(s.Rows))
	for i, r := range s.Rows {
		depths[i], values[i] = float64(r.Depth), r.Value
	}
	if rho := correlation.Spearman(depths, values).Value; !math.IsNaN(rho) {
		return rho
	}
	return 0
}
