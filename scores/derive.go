package scores

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// OverValues returns, for every transformation with a list of values, a cell with the means over
// those values and an empty parameter: with rotations of 90, 180 and 270 degrees, the rotation
// invariance of Deng et al. 2022.
//
// All values are measured on the same samples, so they are no independent observations: n is that
// of one value, and the interval is the jackknife's from the means of the replicates, group by
// group. A score has a mean if every value's cell has it; the cells given should therefore be
// complete.
func OverValues(cells []Cell) []Cell {
	return derive(cells, func(c Cell) (Cell, bool) {
		distinct := c.Parameter != ""
		c.Parameter = ""
		return c, distinct
	}, meanOverValues)
}

// OverTrials returns, for everything that was repeated, a cell with the means over the trials and
// trial MeanOverTrials. The interval is Student's t over trials, mean +- t_{T-1} s / sqrt T: it
// speaks of the random draws of the transformation, on samples that are the same in every trial. N
// is that of one trial.
func OverTrials(cells []Cell) []Cell {
	return derive(cells, func(c Cell) (Cell, bool) {
		distinct := c.Trial != MeanOverTrials
		c.Trial = MeanOverTrials
		return c, distinct
	}, meanOverTrials)
}

// derive groups the cells by what project makes of their identity, leaving out those that project
// refuses, and returns the mean cell of each group of several, in the order of the groups' first
// cells.
func derive(cells []Cell, project func(Cell) (Cell, bool), mean func([]measure.Score) measure.Score) []Cell {
	groups := map[string][]Cell{}
	var order []string
	for _, c := range cells {
		target, ok := project(c)
		if !ok {
			continue
		}
		key := target.identity()
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], c)
	}
	var out []Cell
	for _, key := range order {
		group := groups[key]
		if len(group) < 2 {
			continue
		}
		target, _ := project(group[0])
		if target.Layers = meanLayers(group, mean); len(target.Layers) > 0 {
			out = append(out, target)
		}
	}
	return out
}

// scoreKey tells one score of a cell from the others.
type scoreKey struct{ layer, other, variant, parameter, factor, statistic string }

func keyOf(l Layer, s measure.Score) scoreKey {
	return scoreKey{l.Name, l.Other, s.Variant, s.Parameter, s.Factor, s.Statistic}
}

// meanLayers returns the means of all scores that every cell of the group has.
func meanLayers(group []Cell, mean func([]measure.Score) measure.Score) []Layer {
	found := map[scoreKey][]measure.Score{}
	for _, c := range group {
		for _, l := range c.Layers {
			for _, s := range l.Scores {
				key := keyOf(l, s)
				found[key] = append(found[key], s)
			}
		}
	}
	var out []Layer
	for _, l := range group[0].Layers {
		means := Layer{Name: l.Name, Depth: l.Depth, Other: l.Other}
		for _, s := range l.Scores {
			if same := found[keyOf(l, s)]; len(same) == len(group) {
				means.Scores = append(means.Scores, mean(same))
			}
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
	setInterval(&m, scores, func() (float64, float64) { return resample.Jackknife(m.Value, m.N, m.Replicates) })
	return m
}

func meanOverTrials(scores []measure.Score) measure.Score {
	m := meanScore(scores)
	setInterval(&m, scores, func() (float64, float64) {
		values := make([]float64, len(scores))
		for i, s := range scores {
			values[i] = s.Value
		}
		trials := float64(len(values))
		t := distuv.StudentsT{Sigma: 1, Nu: trials - 1}.Quantile(0.975)
		half := t * stat.StdDev(values, nil) / math.Sqrt(trials)
		return m.Value - half, m.Value + half
	})
	return m
}

// meanScore is the mean of one statistic without its interval.
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

// setInterval gives m the computed interval, within the range of the statistic. Where what it is
// computed from does not vary at all (a proportion that is 1 everywhere, a transformation that
// draws nothing) it would have no width, which says more than is known; the mean of the intervals
// of the single scores, which is never too narrow, takes its place.
func setInterval(m *measure.Score, scores []measure.Score, compute func() (low, high float64)) {
	m.Low, m.High = compute()
	if m.High-m.Low <= 1e-9*math.Abs(m.Value) { // no more than rounding
		m.Low = mean(scores, func(s measure.Score) float64 { return s.Low })
		m.High = mean(scores, func(s measure.Score) float64 { return s.High })
	}
	if m.Min < m.Max {
		m.Low, m.High = max(m.Low, m.Min), min(m.High, m.Max)
	}
}

// meanReplicates averages the replicates group by group; nil unless the same observations are left
// out in all.
func meanReplicates(scores []measure.Score) []measure.Replicate {
	out := slices.Clone(scores[0].Replicates)
	for _, s := range scores[1:] {
		if len(s.Replicates) != len(out) {
			return nil
		}
		for i, r := range s.Replicates {
			if r.Left != out[i].Left {
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
