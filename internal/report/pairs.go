package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A measure that compares two representations has a row of scores for each pair of layers. If each
// layer has one partner, the rows form a curve over depth. If layers are compared with several
// others, the rows form a grid, which is drawn as a heat map.

// IsGrid reports whether some layer of the series is compared with several others.
func (s Series) IsGrid() bool { return isGrid(s.Rows) }

// isGrid reports whether some layer of rows is compared with several others.
func isGrid(rows []scores.Row) bool {
	partner := make(map[string]string)
	for _, r := range rows {
		if r.OtherLayer == "" {
			continue
		}
		if other, seen := partner[r.Layer]; seen && other != r.OtherLayer {
			return true
		}
		partner[r.Layer] = r.OtherLayer
	}
	return false
}

// WithoutSelf returns the series without the comparisons of a layer with itself, or the whole
// series if there are no others.
func (s Series) WithoutSelf() Series {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), isSelf)
	if len(rows) > 0 {
		s.Rows = rows
	}
	return s
}

// isSelf reports whether the row compares a layer with itself.
func isSelf(r scores.Row) bool { return isSelfComparison(r) && r.Layer == r.OtherLayer }

// isSelfComparison reports whether the row compares a model with itself.
func isSelfComparison(r scores.Row) bool { return r.OtherModel != "" && r.Model == r.OtherModel }

// grid returns the finding on a series over pairs of layers: between which of them the statistic is
// highest and lowest.
func (w wording) grid(s Series, about measure.StatisticDescriptor) finding {
	s = s.WithoutSelf()
	low, high := s.lowest(), s.highest(about.Direction)
	span := high.Value - low.Value
	subject := capitalise(strings.Join(nonEmpty(about.Title, w.where(s)), " "))
	said := fmt.Sprintf("is highest between %s (%s) and lowest between %s (%s)", pairOf(high), Number(high.Value), pairOf(low), Number(low.Value))
	if span <= minSpan*width(about, low.Value, high.Value) {
		said = fmt.Sprintf("stays between %s and %s for all %s of layers", Number(low.Value), Number(high.Value), Plural(len(s.Rows), "pair"))
	}
	weight := span / width(about, low.Value, high.Value)
	if isSelfComparison(high) {
		weight /= 2 // differences between the layers of one model are seldom the question
	}
	return finding{text: subject + " " + said + chance(s, about.Direction, w.noun()) + ".", weight: weight, evidence: w.evidence(low, high, pairs(len(s.Rows)))}
}

// pairOf returns the names of the two layers of a row.
func pairOf(r scores.Row) string {
	other := r
	other.Layer = r.OtherLayer
	return layer(r) + " and " + layer(other)
}

// Partner returns the layer that a row's layer is compared with, or "" if it has the same name.
func Partner(r *scores.Row) string {
	if r.OtherLayer == r.Layer {
		return ""
	}
	return r.OtherLayer
}
