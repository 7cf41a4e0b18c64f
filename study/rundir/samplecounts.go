package rundir

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// model returns the values of a model for the chosen samples.
func (s *sampled) model(m *sampledModel, chosen []int, counted map[int]bool) scores.SheetModel {
	out := scores.SheetModel{Model: m.name}
	for i := range s.index {
		if s.labels[i] >= 0 {
			out.Labelled++
		}
		if s.right(m, i) {
			out.Right++
		}
	}
	if s.predicted {
		out.Clean, out.Confidence = pick(m.clean, chosen), float32s(pick(m.confidence, chosen))
		out.ByClass, out.Confusion = s.byClass(m.clean, nil, counted)
	}
	for k := range m.views {
		v := &m.views[k]
		view := scores.SheetView{Value: float32s(pick(v.value, chosen))}
		for i := range s.index {
			view.Mean += v.value[i] / float64(len(s.index))
			if s.predicted && v.transformed[i] != m.clean[i] {
				view.Changed++
			}
			if s.right(m, i) && !s.rightTransformed(v, i) {
				view.Failed++
			}
		}
		if s.predicted {
			view.Moved, view.Confidence = pick(v.transformed, chosen), float32s(pick(v.confidence, chosen))
			view.ByClass, view.Confusion = s.byClass(v.transformed, v.value, counted)
		}
		out.Views = append(out.Views, view)
	}
	return out
}

// countedClasses returns the classes with counts: those with the most samples.
func (s *sampled) countedClasses() map[int]bool {
	n := map[int]int{}
	for _, label := range s.labels {
		if label >= 0 {
			n[label]++
		}
	}
	all := slices.SortedFunc(maps.Keys(n), func(a, b int) int { return cmp.Or(n[b]-n[a], a-b) })
	out := map[int]bool{}
	for _, class := range all[:min(len(all), mostClasses)] {
		out[class] = true
	}
	return out
}

// byClass returns the counts of each class, and the confusion of labels and predictions.
func (s *sampled) byClass(predicted []int, value []float64, counted map[int]bool) (classes []scores.ByClass, confusion [][3]int) {
	by := map[int]*scores.ByClass{}
	pairs := map[[2]int]int{}
	for i, label := range s.labels {
		if !counted[label] {
			continue
		}
		if by[label] == nil {
			by[label] = &scores.ByClass{Class: label}
		}
		c := by[label]
		c.N++
		if predicted[i] == label {
			c.Right++
		}
		if value != nil {
			c.Mean += value[i]
		}
		pairs[[2]int{label, predicted[i]}]++
	}
	for _, class := range slices.Sorted(maps.Keys(by)) {
		by[class].Mean /= float64(by[class].N)
		classes = append(classes, *by[class])
	}
	for _, p := range slices.SortedFunc(maps.Keys(pairs), func(a, b [2]int) int { return cmp.Or(a[0]-b[0], pairs[b]-pairs[a], a[1]-b[1]) }) {
		confusion = append(confusion, [3]int{p[0], p[1], pairs[p]})
	}
	return classes, confusion
}

func pick[T any](all []T, at []int) []T {
	out := make([]T, len(at))
	for i, k := range at {
		out[i] = all[k]
	}
	return out
}

func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(math.Round(v*1e4) / 1e4)
	}
	return out
}
