package firing

import "math"

// found is what a run finds of the units of a layer. Slices are by unit; pairs are of s = +1 and s = -1.
type found struct {
	units    *unitSet
	q        [2][]float32 // thresholds of s h
	fires    [2][]int32   // inputs at which a unit fires
	best     [2][]int32   // index of the strongest input
	paths    []trail
	also     map[string][]float64 // what Settings.Also names, NaN where it is not defined
	info     [2][]float64         // mutual information of firing and class, nats
	infoNull [2][]float64
}

// A trail is what is found along one kind of trajectory.
type trail struct {
	fires [2][]int32 // images of the trajectories at which a unit fires
	null  [2][]int32 // the same around inputs drawn at random
}

func newFound(u *unitSet, sides, paths int) *found {
	f := &found{units: u, also: map[string][]float64{}}
	n := u.count()
	f.paths = make([]trail, paths)
	for s := range sides {
		f.q[s], f.fires[s], f.best[s] = make([]float32, n), make([]int32, n), make([]int32, n)
		for p := range f.paths {
			f.paths[p].fires[s], f.paths[p].null[s] = make([]int32, n), make([]int32, n)
		}
	}
	return f
}

// count adds the units of a chunk that fire at an input.
func (f *found) count(row []float32, c chunk) {
	for side := range f.sides() {
		fires, q, sign := f.fires[side][c.lo:c.hi], f.q[side][c.lo:c.hi], signs[side]
		for u, v := range row {
			if sign*v >= q[u] {
				fires[u]++
			}
		}
	}
}

// sides is 1 for sparse units, else 2.
func (f *found) sides() int {
	if f.q[1] == nil {
		return 1
	}
	return 2
}

// want makes room for what is measured besides.
func (f *found) want(name string) []float64 {
	if f.also[name] == nil {
		f.also[name] = nans(f.units.count())
	}
	return f.also[name]
}

func nans(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	return out
}

// A verdict is the score of a unit along a path, by the better of its signs.
type verdict struct {
	side                       int
	global, local, score, null float64
	constant                   bool // on P(x): it fires always, whatever the threshold
}

// judge scores unit u along a path: inputs is N, images those of all trajectories of the unit.
func (f *found) judge(u, path, inputs, images int) verdict {
	best := verdict{score: math.Inf(-1), null: math.Inf(-1), constant: true}
	for side := range f.sides() {
		global := float64(f.fires[side][u]) / float64(inputs)
		local := float64(f.paths[path].fires[side][u]) / float64(images)
		best.constant = best.constant && int(f.fires[side][u]) == inputs
		best.null = math.Max(best.null, Score(float64(f.paths[path].null[side][u])/float64(images), global))
		if s := Score(local, global); s > best.score {
			best.side, best.global, best.local, best.score = side, global, local, s
		}
	}
	return best
}
