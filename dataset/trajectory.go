package dataset

import "sync"

// Trajectories is a Source whose samples lie on trajectories: the frames of a video at one
// position, or an image under a moving camera. A trajectory is a reference sample x with gradually
// changed versions of it. Section 4 of Goodfellow et al. (2009) writes them tau(x, gamma), where
// gamma is the amount of the change.
type Trajectories interface {
	Source
	// Amounts returns the values of gamma of every trajectory, ascending and including 0, for
	// instance in frames.
	Amounts() []float64
	// Trajectory returns the indices of the samples of the trajectory of reference sample i, one
	// for each amount; that of amount 0 is i. It returns nil if one is missing, as near the ends of
	// a scene of a video.
	Trajectory(i int) []int
}

// A trajectoryWrapper is a source that wraps another, which may have trajectories.
type trajectoryWrapper interface {
	amounts() []float64
	trajectory(i int) []int
}

// Amounts returns the amounts of the trajectories of a source, or of the one that it wraps; nil if
// there are none.
func Amounts(src Source) []float64 {
	switch src := src.(type) {
	case Trajectories:
		return src.Amounts()
	case trajectoryWrapper:
		return src.amounts()
	}
	return nil
}

// Trajectory returns the indices of the samples of the trajectory of sample i, one for each of the
// source's Amounts. It returns nil if the original source lacks one of them, if a subset left one
// out, or if the source has no trajectories.
func Trajectory(src Source, i int) []int {
	switch src := src.(type) {
	case Trajectories:
		return src.Trajectory(i)
	case trajectoryWrapper:
		return src.trajectory(i)
	}
	return nil
}

// inverse returns a function that maps each value of indices to its position in them. It computes
// the map at its first call. A value that occurs twice has the last position.
func inverse(indices []int) func() map[int]int {
	return sync.OnceValue(func() map[int]int {
		positions := make(map[int]int, len(indices))
		for position, i := range indices {
			positions[i] = position
		}
		return positions
	})
}

// trajectory returns indices into the subset. s.indices holds the samples' indices in the source,
// and s.positions is the inverse map.
func (s subset) trajectory(i int) []int {
	inner := Trajectory(s.Source, s.indices[i])
	if inner == nil {
		return nil
	}
	positions, out := s.positions(), make([]int, len(inner))
	for j, p := range inner {
		position, ok := positions[p]
		switch {
		case p == s.indices[i]: // i itself, even if its sample occurs twice
			position = i
		case !ok:
			return nil
		}
		out[j] = position
	}
	return out
}
