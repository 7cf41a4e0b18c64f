package results

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// lowerMeansLarger reports whether a lower value of the shown statistic means a larger change. If
// predicted is set, the values are the effective invariance.
func (s *sampleValues) lowerMeansLarger() bool { return s.predicted || s.lowerIsLarger }

// change returns how much sample i changes in a view, to rank samples: the statistic, or 1 minus it
// if a lower value means a larger change. For predictions it is 1 - EI if the class stays, where EI
// is effective invariance, else 1 + sqrt(p q) with the probabilities p and q of the two predicted
// classes: largest if the class changes and both predictions are confident.
func (s *sampleValues) change(m *modelValues, v *viewValues, i int) float64 {
	switch {
	case !s.predicted && s.lowerIsLarger:
		return 1 - v.value[i]
	case !s.predicted:
		return v.value[i]
	case v.transformed[i] == m.clean[i]:
		return 1 - v.value[i]
	}
	return 1 + math.Sqrt(v.confidence[i]*m.confidence[i])
}

// isCorrect reports whether one of the predictions, that for sample i, is its label.
func (s *sampleValues) isCorrect(predicted []int, i int) bool {
	return s.predicted && s.labels[i] >= 0 && predicted[i] == s.labels[i]
}

// A ranking holds three orders of the samples for a model, as positions in sampleValues.indices:
// all by decreasing and by increasing change, and those that are classified correctly only without
// the transformation, by the number of values under which they fail.
type ranking struct{ most, least, failures []int }

// rank orders the samples by their change, averaged over the values of the transformation.
func (s *sampleValues) rank(m *modelValues) ranking {
	mean := make([]float64, len(s.indices))
	failed := make([]int, len(s.indices))
	for i := range s.indices {
		for k := range m.views {
			v := &m.views[k]
			mean[i] += s.change(m, v, i) / float64(len(m.views))
			if s.isCorrect(m.clean, i) && !s.isCorrect(v.transformed, i) {
				failed[i]++
			}
		}
	}
	var r ranking
	for i := range s.indices {
		r.most = append(r.most, i)
		if failed[i] > 0 {
			r.failures = append(r.failures, i)
		}
	}
	slices.SortStableFunc(r.most, func(a, b int) int { return cmp.Compare(mean[b], mean[a]) })
	r.least = slices.Clone(r.most)
	slices.Reverse(r.least)
	slices.SortStableFunc(r.failures, func(a, b int) int { return cmp.Or(failed[b]-failed[a], cmp.Compare(mean[b], mean[a])) })
	return r
}

// separating returns the transformed samples that model a classifies correctly and model b does
// not: their number for each value of the transformation, and some of them as positions in
// s.indices, those under the last value first.
func (s *sampleValues) separating(a, b *modelValues) (counts, samples []int) {
	counts = make([]int, len(a.views))
	for k := len(a.views) - 1; k >= 0; k-- {
		for i := range s.indices {
			if s.labels[i] < 0 || !s.isCorrect(a.views[k].transformed, i) || s.isCorrect(b.views[k].transformed, i) {
				continue
			}
			counts[k]++
			if !slices.Contains(samples, i) && len(samples) < maxSheetSamples {
				samples = append(samples, i)
			}
		}
	}
	return counts, samples
}

// choose returns the samples of a sheet, as positions in s.indices. It goes through the rankings
// rank by rank: of each model the next failure, most changed and least changed sample, and of each
// parting the next sample. maxPerModel limits how many it takes of each list.
func (s *sampleValues) choose(rankings []ranking, partings []scores.Parting) []int {
	var chosen []int
	add := func(candidates []int, rank, limit int) {
		if rank < len(candidates) && rank < limit && len(chosen) < maxSheetSamples && !slices.Contains(chosen, candidates[rank]) {
			chosen = append(chosen, candidates[rank])
		}
	}
	for rank := range max(maxPerModel.fails, maxPerModel.most, maxPerModel.least, maxPerModel.parts) {
		for _, r := range rankings {
			add(r.failures, rank, maxPerModel.fails)
			add(r.most, rank, maxPerModel.most)
			add(r.least, rank, maxPerModel.least)
		}
		for _, p := range partings {
			add(p.Samples, rank, maxPerModel.parts)
		}
	}
	return chosen
}
