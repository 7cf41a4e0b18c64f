package results

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// model returns the part of a sample sheet on a model: of the chosen samples, positions in
// s.indices. The counts are over all samples that have values, and those by class are of the given
// classes only.
func (s *sampleValues) model(m *modelValues, chosen []int, classes map[int]bool) scores.SheetModel {
	out := scores.SheetModel{Model: m.name}
	for i := range s.indices {
		if s.labels[i] >= 0 {
			out.Labelled++
		}
		if s.isCorrect(m.clean, i) {
			out.Right++
		}
	}
	if s.predicted { // predicted classes are known
		out.Clean, out.Confidence = pick(m.clean, chosen), float32s(pick(m.confidence, chosen))
		out.ByClass, out.Confusion = s.byClass(m.clean, nil, classes)
	}
	for k := range m.views {
		v := &m.views[k]
		view := scores.SheetView{Value: float32s(pick(v.value, chosen))}
		for i := range s.indices {
			view.Mean += v.value[i] / float64(len(s.indices))
			if s.predicted && v.transformed[i] != m.clean[i] {
				view.Changed++
			}
			if s.isCorrect(m.clean, i) && !s.isCorrect(v.transformed, i) {
				view.Failed++
			}
		}
		if s.predicted {
			view.Moved, view.Confidence = pick(v.transformed, chosen), float32s(pick(v.confidence, chosen))
			view.ByClass, view.Confusion = s.byClass(v.transformed, v.value, classes)
		}
		out.Views = append(out.Views, view)
	}
	return out
}

// largestClasses returns the maxSheetClasses classes with the most samples, for the tables by
// class.
func (s *sampleValues) largestClasses() map[int]bool {
	n := map[int]int{}
	for _, label := range s.labels {
		if label >= 0 {
			n[label]++
		}
	}
	all := slices.SortedFunc(maps.Keys(n), func(a, b int) int { return cmp.Or(n[b]-n[a], a-b) })
	out := map[int]bool{}
	for _, class := range all[:min(len(all), maxSheetClasses)] {
		out[class] = true
	}
	return out
}

// byClass returns for each listed class the numbers of samples and of correct predictions, and the
// mean of value, the statistic that is shown (nil: none). The confusion has triples of label,
// predicted class and number of samples.
func (s *sampleValues) byClass(predicted []int, value []float64, listed map[int]bool) (classes []scores.ByClass, confusion [][3]int) {
	by := map[int]*scores.ByClass{}
	pairs := map[[2]int]int{}
	for i, label := range s.labels {
		if !listed[label] {
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

// pick returns the items at the given indices.
func pick[T any](items []T, indices []int) []T {
	out := make([]T, len(indices))
	for i, k := range indices {
		out[i] = items[k]
	}
	return out
}

// float32s rounds values to four decimals, which keeps the files small.
func float32s(values []float64) []float32 {
	out := make([]float32, len(values))
	for i, v := range values {
		out[i] = float32(math.Round(v*1e4) / 1e4)
	}
	return out
}
