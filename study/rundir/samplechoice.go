package rundir

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/scores"
)

// lower reports whether a lower value means a larger change.
func (s *sampled) lower() bool { return s.predicted || s.falls }

// change returns how much sample i changes in a view: a class that changes with confidence is the
// largest change.
func (s *sampled) change(m *sampledModel, v *sampledView, i int) float64 {
	switch {
	case !s.predicted && s.falls:
		return 1 - v.value[i]
	case !s.predicted:
		return v.value[i]
	case v.moved[i] == m.clean[i]:
		return 1 - v.value[i]
	}
	return 1 + math.Sqrt(v.confidence[i]*m.confidence[i])
}

func (s *sampled) right(m *sampledModel, i int) bool {
	return s.predicted && s.labels[i] >= 0 && m.clean[i] == s.labels[i]
}

func (s *sampled) rightMoved(v *sampledView, i int) bool {
	return s.predicted && s.labels[i] >= 0 && v.moved[i] == s.labels[i]
}

// A ranking is the samples of a model, as positions in s.index, in the order of their changes.
type ranking struct{ most, least, fails []int }

func (s *sampled) rank(m *sampledModel) ranking {
	mean := make([]float64, len(s.index))
	failed := make([]int, len(s.index))
	for i := range s.index {
		for k := range m.views {
			v := &m.views[k]
			mean[i] += s.change(m, v, i) / float64(len(m.views))
			if s.right(m, i) && !s.rightMoved(v, i) {
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

// parts returns where A is right and B is wrong, as positions in s.index under each value: those
// under the last value come first.
func (s *sampled) parts(a, b *sampledModel) (counts, samples []int) {
	counts = make([]int, len(a.views))
	for k := len(a.views) - 1; k >= 0; k-- {
		for i := range s.index {
			if s.labels[i] < 0 || !s.rightMoved(&a.views[k], i) || s.rightMoved(&b.views[k], i) {
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
