package rundir

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// lower reports whether a lower value means a larger change.
func (s *sampled) lower() bool { return s.predicted || s.falls }

// change returns how much sample i changes in a view. The change is largest if the class changes
// and both predictions are confident.
func (s *sampled) change(m *sampledModel, v *sampledView, i int) float64 {
	switch {
	case !s.predicted && s.falls:
		return 1 - v.value[i]
	case !s.predicted:
		return v.value[i]
	case v.transformed[i] == m.clean[i]:
		return 1 - v.value[i]
	}
	return 1 + math.Sqrt(v.confidence[i]*m.confidence[i])
}

// right reports whether the prediction for sample i is its label.
func (s *sampled) right(m *sampledModel, i int) bool {
	return s.predicted && s.labels[i] >= 0 && m.clean[i] == s.labels[i]
}

// rightTransformed reports whether the prediction for the transformed sample i is its label.
func (s *sampled) rightTransformed(v *sampledView, i int) bool {
	return s.predicted && s.labels[i] >= 0 && v.transformed[i] == s.labels[i]
}

// A ranking holds samples of a model, as positions in sampled.index: those that change most first,
// those that change least first, and those that are classified correctly only without the
// transformation.
type ranking struct{ most, least, fails []int }

func (s *sampled) rank(m *sampledModel) ranking {
	mean := make([]float64, len(s.index))
	failed := make([]int, len(s.index))
	for i := range s.index {
		for k := range m.views {
			v := &m.views[k]
			mean[i] += s.change(m, v, i) / float64(len(m.views))
			if s.right(m, i) && !s.rightTransformed(v, i) {
				failed[i]++
			}
		}
	}
	var r ranking
	for i := range s.index {
		r.most = append(r.most, i)
		if failed[i] > 0 {
			r.fails = append(r.fails, i)
		}
	}
	slices.SortStableFunc(r.most, func(a, b int) int { return cmp.Compare(mean[b], mean[a]) })
	r.least = slices.Clone(r.most)
	slices.Reverse(r.least)
	slices.SortStableFunc(r.fails, func(a, b int) int { return cmp.Or(failed[b]-failed[a], cmp.Compare(mean[b], mean[a])) })
	return r
}

// parts returns the samples that model a classifies correctly and model b does not, as positions in
// s.index, and their number for each value of the transformation. Those for the last value come
// first.
func (s *sampled) parts(a, b *sampledModel) (counts, samples []int) {
	counts = make([]int, len(a.views))
	for k := len(a.views) - 1; k >= 0; k-- {
		for i := range s.index {
			if s.labels[i] < 0 || !s.rightTransformed(&a.views[k], i) || s.rightTransformed(&b.views[k], i) {
				continue
			}
			counts[k]++
			if !slices.Contains(samples, i) && len(samples) < mostLines {
				samples = append(samples, i)
			}
		}
	}
	return counts, samples
}

// choose returns the samples of a sheet: in turn the next failure, the next most and the next least
// changed sample of each model, and the next sample of each parting.
func (s *sampled) choose(rankings []ranking, partings []scores.Parting) []int {
	var chosen []int
	add := func(all []int, rank, share int) {
		if rank < len(all) && rank < share && len(chosen) < mostLines && !slices.Contains(chosen, all[rank]) {
			chosen = append(chosen, all[rank])
		}
	}
	for rank := range max(shares.fails, shares.most, shares.least, shares.parts) {
		for _, r := range rankings {
			add(r.fails, rank, shares.fails)
			add(r.most, rank, shares.most)
			add(r.least, rank, shares.least)
		}
		for _, p := range partings {
			add(p.Samples, rank, shares.parts)
		}
	}
	return chosen
}
