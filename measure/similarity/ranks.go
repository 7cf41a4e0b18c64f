package similarity

import (
	"github.com/noether-ml/noether/measure/internal/rank"
)

// drift adds to the replicates of svcca what comes of other components: the replicates keep those of all observations, and other samples have more or
// fewer. x and y are whitenings of leading components.
func (m *pair) drift(e *estimate, x, y whitening) error {
	if len(e.replicates) == 0 || x.rank == 0 || y.rank == 0 {
		return nil
	}
	var seen [2]float64
	most := len(x.cut.Values)
	for i, k := range rank.Neighbours(x.rank, y.rank, most) {
		c, err := correlate(x.first(k[0]), y.first(k[1]), m.xy.Data)
		if err != nil {
			return err
		}
		seen[i] = weightedMean(c.rho, weighting{}.of(c))
	}
	slope := rank.SlopeOf(x.rank, y.rank, most, e.value, seen)
	var moves []rank.Pair
	var left []int
	m.leaves(func(g, n int) {
		scale := float64(m.xy.N) / float64(m.xy.N-n)
		moves = append(moves, rank.Pair{X: -scale * m.x.pull(g, x), Y: -scale * m.y.pull(g, y)})
		left = append(left, n)
	})
	spread := rank.SpreadOf(rank.Pair{X: x.cut.Reach(), Y: y.cut.Reach()}, moves, left, m.xy.N)
	for i, d := range spread.Drifts(slope) {
		e.replicates[i].Value += d
	}
	return nil
}

// pull is how far a group pulls the number of leading components.
func (s *side) pull(g int, w whitening) float64 {
	squares := quadratic(symmetric(s.groups[g]), s.removal(g), w.t, w.t)
	for i, v := range w.cut.Values[:w.rank] {
		squares[i] *= v
	}
	return w.cut.Pull(squares, trace(s.all)-s.traceWithout(g))
}
