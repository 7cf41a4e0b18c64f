package seis

import (
	"errors"
	"fmt"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/rank"
)

// halves are the sets of groups whose scores the interval is made of: in row i a plus for each group of set i. All rows and all columns have
// five, and any two groups are as often together as apart, as nearly as ten sets allow. Then the variance among the sets of what is a sum
// over groups is the variance of that sum, no matter how the groups are numbered.
var halves = [maxGroups]string{
	"++-+--++--",
	"----+++++-",
	"+--+-+--++",
	"+++-+---+-",
	"-++--+-++-",
	"-+--+++--+",
	"+-+---++-+",
	"--++--+-++",
	"-+-++--+-+",
	"+-++++----",
}

// errSingular says that there are no replicates.
var errSingular = errors.New(warnSingular)

// A replicate is the scores of a half of the groups in the subspaces of all samples, and what moves the ranks.
type replicate struct {
	result
	left int       // observations left out
	move rank.Pair // of where the fraction of the variance is reached
}

// interval computes the replicates and how far the jumps of ranks move them.
func (a *accumulator) interval(whole linalg.Whole, u, v linalg.Subspace, t *table) error {
	replicates, err := a.replicates(whole)
	if err != nil {
		return err
	}
	equivariance, invariance, err := slopesOf(whole, u, v, t.scores)
	if err != nil {
		return fmt.Errorf("seis, interval: %w", err)
	}
	var moves []rank.Pair
	var left []int
	for _, r := range replicates {
		moves, left = append(moves, r.move), append(left, r.left)
	}
	s := rank.SpreadOf(rank.Pair{X: u.Reach(), Y: v.Reach()}, moves, left, t.n)
	t.replicates, t.drifts = replicates, [2][]float64{s.Drifts(equivariance), s.Drifts(invariance)}
	return nil
}

// replicates computes the scores of the halves.
func (a *accumulator) replicates(whole linalg.Whole) (out []replicate, err error) {
	sets := whole.Halves(a.total, len(halves))
	var moves [len(halves)]rank.Pair
	group := 0
	err = a.eachGroup(func(g *linalg.Scatter[float32]) error {
		belongs := func(set int) bool { return halves[set][group] == '+' }
		if g.N > 0 {
			x, y := sets.Add(g, belongs)
			for i := range moves {
				if belongs(i) {
					moves[i].X += x
					moves[i].Y += y
				}
			}
		}
		group++
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, move := range moves {
		p, n := sets.Set(i)
		if n == 0 || n == a.total.N {
			return nil, errSingular
		}
		s, err := scoresOfPair(p)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSingular, err)
		}
		scale := float64(a.total.N) / float64(n)
		out = append(out, replicate{s, a.total.N - n, rank.Pair{X: scale * move.X, Y: scale * move.Y}})
	}
	return out, nil
}

// widening is what halves are moved apart by. Ten of them have seven degrees of freedom for what is a sum over groups, not nine as
// measure.Jackknife takes them to have, and Student's t is 1.045 times as large; and what is random in each of them varies around its mean by
// the root of 10 / 9 more than around the mean of ten.
const widening = 1.045 * 1.054

// widen moves replicates away from their mean.
func widen(replicates []measure.Replicate) {
	var mean float64
	for _, r := range replicates {
		mean += r.Value / float64(len(replicates))
	}
	for i := range replicates {
		replicates[i].Value = mean + widening*(replicates[i].Value-mean)
	}
}
