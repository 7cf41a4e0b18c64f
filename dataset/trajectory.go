package dataset

import "sync"

// Trajectories is a Source whose samples lie on trajectories: the frames of a video at one place, or an image under a
// moving camera. Amount by amount a trajectory leads from a reference sample to others that show the same a little
// changed, tau(x, gamma) in section 4 of Goodfellow et al. (2009).
type Trajectories interface {
	Source
	// Amounts are the gammas of every trajectory, ascending, 0 among them: frames later, say.
	Amounts() []float64
	// Trajectory returns the places of the samples that a reference sample becomes, one for each amount, in their
	// order; that of amount 0 is i itself. It is nil where one of them is missing: near the start or the end of a scene.
	Trajectory(i int) []int
}

// trajectoryWrapper is a source made of others, which may have trajectories.
type trajectoryWrapper interface {
	amounts() []float64
	trajectory(i int) []int
}

// Amounts are those of the trajectories of a source, through whatever wraps it; nil where it has none.
func Amounts(src Source) []float64 {
	switch src := src.(type) {
	case Trajectories:
		return src.Amounts()
	case trajectoryWrapper:
		return src.amounts()
	}
	return nil
}

// Trajectory returns the places of the samples that sample i of a source becomes, one for each of its Amounts; nil
// where one of them is missing, is not among the samples that were chosen of the source, or where the source has no
// trajectories.
func Trajectory(src Source, i int) []int {
	switch src := src.(type) {
	case Trajectories:
		return src.Trajectory(i)
	case trajectoryWrapper:
		return src.trajectory(i)
	}
	return nil
}

// inverse tells where each place of a source is among those that were picked, once somebody asks. Of a place that was picked
// twice it is the last.
func inverse(picks []int) func() map[int]int {
	return sync.OnceValue(func() map[int]int {
		at := make(map[int]int, len(picks))
		for i, p := range picks {
			at[p] = i
		}
		return at
	})
}

func (s subset) amounts() []float64 { return Amounts(s.Source) }

func (s subset) trajectory(i int) []int {
	inner := Trajectory(s.Source, s.places[i])
	if inner == nil {
		return nil
	}
	at, out := s.positions(), make([]int, len(inner))
	for j, p := range inner {
		place, ok := at[p]
		switch {
		case p == s.places[i]:
			place = i
		case !ok:
			return nil
		}
		out[j] = place
	}
	return out
}

func (c corrupted) amounts() []float64     { return Amounts(c.Source) }
func (c corrupted) trajectory(i int) []int { return Trajectory(c.Source, i) }

func (m computed) amounts() []float64     { return Amounts(m.Source) }
func (m computed) trajectory(i int) []int { return Trajectory(m.Source, i) }

func (r relabelled) amounts() []float64     { return Amounts(r.Source) }
func (r relabelled) trajectory(i int) []int { return Trajectory(r.Source, i) }
