package serve

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A forestLine is a difference with its place in the forest plot. The fields that end in 100 are
// coordinates from 0 to 100, with 50 at no difference. Lines of one statistic share a scale.
type forestLine struct {
	scores.Difference
	Low100, High100, At100 float64
	Layers                 string // both layers if their names differ
}

// forest returns the lines of a forest plot; layers is comparison.Layers. The lines are in
// descending order of the ratio of the absolute difference to half the width of its interval.
func forest(differences []scores.Difference, layers map[string]string) []forestLine {
	type scale struct{ measure, statistic string }
	widest := map[scale]float64{}
	out := make([]forestLine, 0, len(differences))
	for _, d := range differences {
		s := scale{d.A.Measure, d.A.Statistic}
		for _, v := range []float64{d.Value, d.Low, d.High} {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				widest[s] = max(widest[s], math.Abs(v))
			}
		}
		out = append(out, forestLine{Difference: d})
	}
	for i := range out {
		l := &out[i]
		at := func(v float64) float64 {
			if most := widest[scale{l.A.Measure, l.A.Statistic}]; most > 0 && !math.IsNaN(v) {
				return math.Round(10*(50+48*max(-1, min(1, v/most)))) / 10 // a margin of 2 at both ends
			}
			return 50
		}
		l.Low100, l.High100, l.At100 = at(l.Low), at(l.High), at(l.Value)
		if math.IsNaN(l.Low) {
			l.Low100, l.High100 = l.At100, l.At100
		}
		if other := layers[l.B.Layer]; other != "" && other != l.B.Layer {
			l.Layers = "B at " + other
		}
	}
	clearness := func(l forestLine) float64 {
		half := (l.High - l.Low) / 2
		switch {
		case math.IsNaN(half):
			return -1
		case half == 0 && l.Value == 0:
			return 0
		}
		return math.Abs(l.Value) / half
	}
	slices.SortStableFunc(out, func(a, b forestLine) int { return cmp.Compare(clearness(b), clearness(a)) })
	return out
}

// overviewOnly returns the differences of scores over all values of a transformation's parameter
// and all samples, which stand for those of single values and classes, of the statistics that
// report.Headlines selects.
func overviewOnly(all []scores.Difference, known []measure.Descriptor) []scores.Difference {
	rows := make([]scores.Row, len(all))
	for i, d := range all {
		rows[i] = d.A
	}
	levels := report.Levels(rows)
	comparable := report.Headlines(rows, known)
	var out []scores.Difference
	for i, d := range all {
		if levels[i] == report.OverValues && d.A.Factor == "" && comparable[[2]string{d.A.Measure, d.A.Statistic}] {
			out = append(out, d)
		}
	}
	return out
}

// matchLayers renames the layers of b's cells to those of a that lie at the nearest relative depth,
// so that models of different depth can be compared. Layers of b that match none are left out. It
// returns the original names by the new ones; nil, with the cells unchanged, if the models have the
// same layers or one has none.
func matchLayers(a, b scores.ModelRecord, cells []scores.Cell) ([]scores.Cell, map[string]string) {
	same := len(a.Layers) == len(b.Layers)
	for i := range min(len(a.Layers), len(b.Layers)) {
		same = same && a.Layers[i].Name == b.Layers[i].Name
	}
	if same || len(a.Layers) == 0 || len(b.Layers) == 0 {
		return cells, nil
	}
	relative := func(m scores.ModelRecord, i int) float64 {
		first, last := m.Layers[0].Depth, m.Layers[0].Depth
		for _, l := range m.Layers {
			first, last = min(first, l.Depth), max(last, l.Depth)
		}
		if first == last {
			return 0
		}
		return float64(m.Layers[i].Depth-first) / float64(last-first)
	}
	// Each layer of a in turn takes the nearest layer of b that is not taken yet, has the same
	// operator and, like it, is inside a branch or outside. A layer further than maxGap is not
	// taken.
	const maxGap = 0.5
	newName, original := map[string]string{}, map[string]string{}
	for i, la := range a.Layers {
		best, least := -1, math.Inf(1)
		for k, lb := range b.Layers {
			gap := math.Abs(relative(a, i) - relative(b, k))
			if la.Branch != lb.Branch || la.Op != lb.Op {
				gap++ // more than maxGap
			}
			if newName[lb.Name] == "" && gap < least {
				best, least = k, gap
			}
		}
		if best >= 0 && least < maxGap {
			newName[b.Layers[best].Name] = la.Name
			original[la.Name] = b.Layers[best].Name
		}
	}
	out := slices.Clone(cells)
	for i, c := range out {
		out[i].Layers = nil
		for _, l := range c.Layers {
			if l.Name != "" {
				if newName[l.Name] == "" {
					continue
				}
				l.Name = newName[l.Name]
			}
			out[i].Layers = append(out[i].Layers, l)
		}
	}
	return out, original
}
