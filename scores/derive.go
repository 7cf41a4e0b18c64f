package scores

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// overValues returns the means over a transformation's list of values, as cells with an empty
// Parameter. Drawn, which may differ, is cleared. For effective invariance under 90, 180 and 270
// degrees this is the rotation invariance of Deng et al. 2022.
//
// All values are of the same samples, so N is the smallest of one value, and the interval is the
// jackknife of replicates averaged by group. A score needs the cells of all values.
func overValues(cells []Cell) []Cell {
	return derive(cells, func(c Cell) (Cell, bool) {
		isOfOneValue := c.Parameter != ""
		c.Parameter, c.Drawn = "", ""
		return c, isOfOneValue
	}, meanOverValues)
}

// overTrials returns the means over trials, as cells with Trial MeanOverTrials. The interval is
// Student's: mean +- t_{T-1} s / sqrt T, over random draws with the same samples. N is that of one
// trial (the smallest).
func overTrials(cells []Cell) []Cell {
	return derive(cells, func(c Cell) (Cell, bool) {
		isOfOneTrial := c.Trial != MeanOverTrials
		c.Trial, c.Drawn = MeanOverTrials, ""
		return c, isOfOneTrial
	}, meanOverTrials)
}

// derive returns the means of groups of cells, in the order of their first ones. project returns
// the cell of a given cell's mean, or false to ignore it; equal identities form a group, of two or
// more.
func derive(cells []Cell, project func(Cell) (Cell, bool), mean func([]measure.Score) measure.Score) []Cell {
	index := map[cellID]int{}
	var groups [][]*Cell
	for i := range cells {
		target, ok := project(cells[i])
		if !ok {
			continue
		}
		key := target.identity()
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], &cells[i])
	}
	var out []Cell
	for _, group := range groups {
		if len(group) < 2 {
			continue
		}
		target, _ := project(*group[0])
		if target.Layers = meanLayers(group, mean); len(target.Layers) > 0 {
			out = append(out, target)
		}
	}
	return out
}

// A scoreKey identifies a score within a cell.
type scoreKey struct{ layer, other, variant, parameter, factor, statistic string }

func scoreKeyOf(l Layer, s measure.Score) scoreKey {
	return scoreKey{l.Name, l.Other, s.Variant, s.Parameter, s.Factor, s.Statistic}
}

// meanLayers returns the means of all scores that every cell of the group has.
func meanLayers(group []*Cell, mean func([]measure.Score) measure.Score) []Layer {
	if sameScores(group) {
		return meanOfSame(group, mean)
	}
	scoresOf := map[scoreKey][]measure.Score{}
	for _, c := range group {
		for _, l := range c.Layers {
			for _, s := range l.Scores {
				key := scoreKeyOf(l, s)
				scoresOf[key] = append(scoresOf[key], s)
			}
		}
	}
	var out []Layer
	for _, l := range group[0].Layers {
		means := Layer{Name: l.Name, Depth: l.Depth, Other: l.Other}
		for _, s := range l.Scores {
			if all := scoresOf[scoreKeyOf(l, s)]; len(all) == len(group) {
				means.Scores = append(means.Scores, mean(all))
			}
		}
		if len(means.Scores) > 0 {
			out = append(out, means)
		}
	}
	return out
}

// sameScores reports whether all cells have the same scores in order, as mostly in one measure.
func sameScores(group []*Cell) bool {
	first := group[0].Layers
	keys := map[scoreKey]bool{}
	n := 0
	for _, l := range first {
		for _, s := range l.Scores {
			keys[scoreKeyOf(l, s)] = true
			n++
		}
	}
	if len(keys) < n {
		return false // two scores with one key have no mean
	}
	for _, c := range group[1:] {
		if len(c.Layers) != len(first) {
			return false
		}
		for i := range c.Layers {
			l, f := &c.Layers[i], &first[i]
			if len(l.Scores) != len(f.Scores) || l.Name != f.Name || l.Other != f.Other {
				return false
			}
			for k := range l.Scores {
				a, b := &l.Scores[k], &f.Scores[k]
				if a.Statistic != b.Statistic || a.Variant != b.Variant || a.Parameter != b.Parameter || a.Factor != b.Factor {
					return false
				}
			}
		}
	}
	return true
}

func meanOfSame(group []*Cell, mean func([]measure.Score) measure.Score) []Layer {
	var out []Layer
	all := make([]measure.Score, len(group))
	for i, l := range group[0].Layers {
		means := Layer{Name: l.Name, Depth: l.Depth, Other: l.Other}
		for k := range l.Scores {
			for j, c := range group {
				all[j] = c.Layers[i].Scores[k]
			}
			means.Scores = append(means.Scores, mean(all))
		}
		if len(means.Scores) > 0 {
			out = append(out, means)
		}
	}
	return out
}

func meanOverValues(scores []measure.Score) measure.Score {
	m := meanScore(scores)
	m.Replicates = meanReplicates(scores)
	m.Spread = mean(scores, func(s measure.Score) float64 { return s.Spread }) // of the same trained networks
	setInterval(&m, scores, func() (float64, float64) {
		low, high := resample.Jackknife(m.Value, m.N, m.Replicates)
		half := math.Hypot((high-low)/2, m.Spread)
		return m.Value - half, m.Value + half
	})
	return m
}

func meanOverTrials(scores []measure.Score) measure.Score {
	m := meanScore(scores)
	setInterval(&m, scores, func() (float64, float64) {
		values := make([]float64, len(scores))
		for i, s := range scores {
			values[i] = s.Value
		}
		_, half := resample.Student(values)
		m.Spread, m.Freedom = 0, float64(len(scores)-1)
		return m.Value - half, m.Value + half
	})
	return m
}

// meanScore returns the mean of one statistic, without an interval.
func meanScore(scores []measure.Score) measure.Score {
	m := scores[0]
	m.Replicates, m.Warnings = nil, nil
	m.Value, m.Null = mean(scores, value), mean(scores, func(s measure.Score) float64 { return s.Null })
	for _, s := range scores {
		m.N = min(m.N, s.N)
		for _, w := range s.Warnings {
			if !slices.Contains(m.Warnings, w) {
				m.Warnings = append(m.Warnings, w)
			}
		}
	}
	return m
}

// setInterval sets m's interval to compute's, limited to the range of the statistic. Values that do
// not vary would give no width, which overstates the precision: then the mean of the scores'
// intervals is used. If all scores and intervals agree, as clean accuracy under all
// transformations, m gets theirs.
func setInterval(m *measure.Score, scores []measure.Score, compute func() (low, high float64)) {
	if first := scores[0]; !slices.ContainsFunc(scores, func(s measure.Score) bool {
		return s.Value != first.Value || s.Low != first.Low || s.High != first.High
	}) {
		m.Low, m.High = first.Low, first.High
		return
	}
	m.Low, m.High = compute()
	if m.High-m.Low <= 1e-9*math.Abs(m.Value) { // within rounding error
		m.Freedom = scores[0].Freedom
		m.Low = mean(scores, func(s measure.Score) float64 { return s.Low })
		m.High = mean(scores, func(s measure.Score) float64 { return s.High })
	}
	if m.Min < m.Max { // else the range is not known
		m.Low, m.High = max(m.Low, m.Min), min(m.High, m.Max)
	}
}

// meanReplicates averages replicates by group; nil if groups differ.
func meanReplicates(scores []measure.Score) []measure.Replicate {
	out := slices.Clone(scores[0].Replicates)
	for _, s := range scores[1:] {
		if len(s.Replicates) != len(out) {
			return nil
		}
		for i, r := range s.Replicates {
			if r.Left != out[i].Left { // the numbers of observations that the replicates leave out
				return nil
			}
			out[i].Value += r.Value
		}
	}
	for i := range out {
		out[i].Value /= float64(len(scores))
	}
	return out
}

func value(s measure.Score) float64 { return s.Value }

func mean(scores []measure.Score, of func(measure.Score) float64) float64 {
	var sum float64
	for _, s := range scores {
		sum += of(s)
	}
	return sum / float64(len(scores))
}
