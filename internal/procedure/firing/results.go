package firing

import (
	"math"
	"slices"
)

// A layerResult holds the results for the units of a layer. Slices are indexed by unit. Arrays of
// two are indexed by side: 0 for the sign s = 1, and 1 for s = -1. h is the activation of a unit.
// The kind of a trajectory is what varies along it, such as the angle of a rotation or the phase of
// gratings.
type layerResult struct {
	units           *unitSet
	q               [2][]float32         // thresholds: a unit fires where s h is at least q
	fires           [2][]int32           // number of inputs at which a unit fires
	largest         [2][]float32         // largest s h
	strongest       [2][]int32           // sample index of the strongest input
	trajectories    []trajectoryCounts   // for each kind of trajectory
	additional      map[string][]float64 // the statistics of Settings.Also, NaN if undefined
	information     [2][]float64         // mutual information of firing and class, nats
	informationNull [2][]float64         // the same for shuffled labels
}

// trajectoryCounts are firing counts on one kind of trajectory, of the references of a unit and of
// random inputs.
type trajectoryCounts struct {
	fires [2][]int32 // number of images on the references' trajectories at which a unit fires
	null  [2][]int32 // the same for trajectories of random inputs
}

func newLayerResult(u *unitSet, sides, kinds int) *layerResult {
	f := &layerResult{units: u, additional: map[string][]float64{}}
	n := u.count()
	f.trajectories = make([]trajectoryCounts, kinds)
	for s := range sides {
		f.q[s], f.largest[s], f.fires[s], f.strongest[s] = make([]float32, n), make([]float32, n), make([]int32, n), make([]int32, n)
		for p := range f.trajectories {
			f.trajectories[p].fires[s], f.trajectories[p].null[s] = make([]int32, n), make([]int32, n)
		}
	}
	return f
}

func (f *layerResult) count(row []float32, c chunk) {
	for side := range f.sides() {
		fires, q, sign := f.fires[side][c.lo:c.hi], f.q[side][c.lo:c.hi], signs[side]
		for u, v := range row {
			if sign*v >= q[u] {
				fires[u]++
			}
		}
	}
}

// sides returns the number of signs: 1 for sparse units, which fire at high values only, else 2.
func (f *layerResult) sides() int {
	if f.q[1] == nil {
		return 1
	}
	return 2
}

func (f *layerResult) statistic(name string) []float64 {
	if f.additional[name] == nil {
		f.additional[name] = slices.Repeat([]float64{math.NaN()}, f.units.count())
	}
	return f.additional[name]
}

// A unitScore is for the better sign.
type unitScore struct {
	side                 int     // index in signs
	global, local, score float64 // firing rates on all inputs (G) and on trajectories (L), and S = L / G
	null                 float64 // S with random inputs in place of the references, the larger one of both signs
	always               bool    // it fires at every input, for both signs
	// rare: a unit that is not constant fires at every input, since it exceeds its smallest value
	// at less than Settings.Rate.
	rare bool
}

// inputs counts inputs, and images those on the trajectories of the unit's references.
func (f *layerResult) score(u, kind, inputs, images int) unitScore {
	best := unitScore{score: math.Inf(-1), null: math.Inf(-1), always: true}
	for side := range f.sides() {
		global := float64(f.fires[side][u]) / float64(inputs)
		local := float64(f.trajectories[kind].fires[side][u]) / float64(images)
		best.always = best.always && int(f.fires[side][u]) == inputs
		best.rare = best.rare || f.largest[side][u] > f.q[side][u]
		best.null = math.Max(best.null, Score(float64(f.trajectories[kind].null[side][u])/float64(images), global))
		if s := Score(local, global); s > best.score {
			best.side, best.global, best.local, best.score = side, global, local, s
		}
	}
	best.rare = best.rare && best.always
	return best
}
