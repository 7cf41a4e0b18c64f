package similarity

import (
	"fmt"

	"github.com/noether-ml/noether/measure/resample"
)

// fewComponents is the number of components below which a score of svcca has a warning, if it
// differs at nearby numbers of components: the 95 % intervals of such scores contained the expected
// value in 80 to 97 % of data sets (see docs/explanation/intervals-and-nulls.md).
const fewComponents = 50

// addRankChanges corrects the replicates of svcca in e for changes of the number of components, the
// rank. A replicate is the value without one group, one of up to twenty parts of the observations:
// a jackknife computes the interval from them. The rank is the number of components that hold 99 %
// of the variance. The replicates use the leading components of all observations, but on other
// samples the rank would be larger or smaller. x and y are the whitenings of the leading components
// of both representations, each with the cutoff that determined its rank.
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
		nearby[i] = weightedMean(c.rho, weighting{}.weights(c)) // the zero weighting: equal weights
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

// influence returns by how much the fractional rank of w increases, to first order, if the
// observations of group g are counted twice. The fractional rank is the number of components at
// which the sum of eigenvalues, interpolated between integers, reaches the fraction of the
// variance.
func (s *singleMoments) influence(g int, w whitening) float64 {
	// What the scatter along each component (column of w.t) loses without the group.
	squares := quadratic(fullMatrix(s.groups[g]), s.removal(g), w.t, w.t)
	for i, v := range w.cut.Values[:w.rank] { // undo the whitening, which divides by the square root of v
		squares[i] *= v
	}
	return w.cut.Influence(squares, trace(s.all)-s.traceWithout(g))
}
