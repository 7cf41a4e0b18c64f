package similarity

import (
	"fmt"

	"github.com/noether-ml/noether/measure/resample"
	"gonum.org/v1/gonum/stat"
)

// fewComponents: with fewer, svcca that differs at nearby numbers gets a warning. 95 % intervals
// then covered 80 to 97 % (docs/explanation/intervals-and-nulls.md).
const fewComponents = 50

// addRankChanges corrects the replicates of svcca in e for changes of rank, the components that
// hold 99 % of the variance: replicates use the leading components of all observations. x and y are
// the whitenings, with their cutoffs.
func (m *pairMoments) addRankChanges(e *estimate, x, y whitening) error {
	if len(e.replicates) == 0 || x.rank == 0 || y.rank == 0 {
		return nil
	}
	var nearby [2]float64 // the statistic at other ranks
	jumps := false        // whether it differs there
	most := len(x.cut.Values)
	for i, k := range resample.NearbyRanks(x.rank, y.rank, most) {
		c, err := correlate(x.truncated(k[0]), y.truncated(k[1]), m.xy.Data)
		if err != nil {
			return err
		}
		nearby[i] = stat.Mean(c.rho, weighting{}.weights(c)) // the zero weighting: equal weights
		jumps = jumps || nearby[i] != e.value
	}
	slope := resample.NewRankSlope(x.rank, y.rank, most, e.value, nearby)
	var changes []resample.Ranks // of both fractional ranks, without each group
	var left []int               // number of observations of each group
	m.eachGroup(func(g, n int) { // n: number of observations of group g
		scale := float64(m.xy.N) / float64(m.xy.N-n) // influence is for all N observations, of which N - n are left
		changes = append(changes, resample.Ranks{X: -scale * m.x.influence(g, x), Y: -scale * m.y.influence(g, y)})
		left = append(left, n)
	})
	spread := resample.NewRankSpread(resample.Ranks{X: x.cut.FractionalRank(), Y: y.cut.FractionalRank()}, changes, left, m.xy.N)
	for i, d := range spread.Shifts(slope) {
		e.replicates[i].Value += d
	}
	if k := min(x.rank, y.rank); k < fewComponents && jumps {
		e.warnings = append(e.warnings, fmt.Sprintf("the interval may be too narrow: the score has %d components, and jumps with each", k))
	}
	return nil
}

// influence returns the increase of w's fractional rank, to first order, if group g counts twice.
func (s *singleMoments) influence(g int, w whitening) float64 {
	// What the scatter along each component (column of w.t) loses without the group.
	squares := quadratic(fullMatrix(s.groups[g]), s.removal(g), w.t, w.t)
	for i, v := range w.cut.Values[:w.rank] { // undo the whitening, which divides by the square root of v
		squares[i] *= v
	}
	return w.cut.Influence(squares, trace(s.all)-s.traceWithout(g))
}
