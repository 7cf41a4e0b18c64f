package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// What compares two representations has rows for pairs of layers. Where each layer has one partner
// they make a curve over depth like any other; where layers are compared with several they make a
// grid, drawn as a heat map.

// IsGrid reports whether some layer of the series is compared with several others.
func (s Series) IsGrid() bool { return isGrid(s.Rows) }

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

// WithoutSelf leaves out a layer compared with itself, which is 1 and says nothing.
func (s Series) WithoutSelf() Series {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), isSelf)
	if len(rows) > 0 {
		s.Rows = rows
	}
	return s
}

func isSelf(r scores.Row) bool { return isOwn(r) && r.Layer == r.OtherLayer }

// isOwn reports whether a model is compared with itself.
func isOwn(r scores.Row) bool { return r.OtherModel != "" && r.Model == r.OtherModel }

// grid describes the pairs of layers of two models.
func (w wording) grid(s Series, about measure.StatisticDescriptor) finding {
	s = s.WithoutSelf()
	low, high := s.lowest(), s.highest(about.Direction)
	span := high.Value - low.Value
	subject := capital(strings.Join(nonEmpty(about.Title, w.where(s)), " "))
	said := fmt.Sprintf("is highest between %s (%s) and lowest between %s (%s)", pairOf(high), Number(high.Value), pairOf(low), Number(low.Value))
	if span <= steady*width(about, low.Value, high.Value) {
		said = fmt.Sprintf("stays between %s and %s for all %s of layers", Number(low.Value), Number(high.Value), Plural(len(s.Rows), "pair"))
	}
	weight := span / width(about, low.Value, high.Value)
	if isOwn(high) {
		weight /= 2 // how the layers of one model differ is seldom what was asked
	}
	return finding{text: subject + " " + said + chance(s, about.Direction, w.along()) + ".", weight: weight}
}

// pairOf names the two layers of a row in a sentence.
func pairOf(r scores.Row) string {
	other := r
	other.Layer = r.OtherLayer
	return layer(r) + " and " + layer(other)
}

// Partner is the layer that a row's layer is compared with, "" where it bears the same name.
func Partner(r *scores.Row) string {
	if r.OtherLayer == r.Layer {
		return ""
	}
	return r.OtherLayer
}
