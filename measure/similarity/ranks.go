package similarity

import (
	"github.com/noether-ml/noether/measure/resample"
)

// drift adds to the replicates of svcca what comes of other components: the replicates keep those of all observations, and other samples have more or
// fewer. x and y are whitenings of leading components.
func (m *pair) drift(e *estimate, x, y whitening) error {
	if len(e.replicates) == 0 || x.rank == 0 || y.rank == 0 {
		return nil
	}
	var seen [2]float64
	most := len(x.cut.Values)
	for i, k := range resample.NearbyRanks(x.rank, y.rank, most) {
		c, err := correlate(x.first(k[0]), y.first(k[1]), m.xy.Data)
		if err != nil {
			return err
		}
		seen[i] = weightedMean(c.rho, weighting{}.of(c))
	}
	slope := resample.NewRankSlope(x.rank, y.rank, most, e.value, seen)
	var moves []resample.Ranks
	var left []int
	m.leaves(func(g, n int) {
		scale := float64(m.xy.N) / float64(m.xy.N-n)
		moves = append(moves, resample.Ranks{X: -scale * m.x.influence(g, x), Y: -scale * m.y.influence(g, y)})
		left = append(left, n)
	})
	spread := resample.NewRankSpread(resample.Ranks{X: x.cut.FractionalRank(), Y: y.cut.FractionalRank()}, moves, left, m.xy.N)
	for i, d := range spread.Shifts(slope) {
		e.replicates[i].Value += d
	}
	return nil
}

// influence returns what a group adds to the fractional number of leading components.
func (s *side) influence(g int, w whitening) float64 {
	squares := quadratic(symmetric(s.groups[g]), s.removal(g), w.t, w.t)
	for i, v := range w.cut.Values[:w.rank] {
		squares[i] *= v
	}
	return w.cut.Influence(squares, trace(s.all)-s.traceWithout(g))
}
