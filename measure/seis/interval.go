package seis

import (
	"errors"
	"fmt"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// errSingular is returned if the scores of a half of the samples cannot be computed.
var errSingular = errors.New(warnSingular)

// A replicate holds the scores of four of eight groups, in the principal subspaces of all samples.
type replicate struct {
	result
	left       int            // observations left out
	rankChange resample.Ranks // fractional ranks (resample.Cutoff) of the half, minus those of all
}

// interval writes replicates into t, with the shifts from changes of ranks. c holds the scatters of
// all coordinates.
func (a *accumulator) interval(c coordinates, t *table) error {
	replicates, err := a.replicates(c)
	if err != nil {
		return err
	}
	equivariance, invariance, err := c.rankSlopes(t.scores)
	if err != nil {
		return fmt.Errorf("seis, interval: %w", err)
	}
	var rankChanges []resample.Ranks
	var left []int
	for _, r := range replicates {
		rankChanges, left = append(rankChanges, r.rankChange), append(left, r.left)
	}
	ranks := resample.Ranks{X: c.bases.x.FractionalRank(), Y: c.bases.y.FractionalRank()}
	s := resample.NewRankSpread(ranks, rankChanges, left, t.n)
	t.replicates, t.shifts = replicates, [2][]float64{s.Shifts(equivariance), s.Shifts(invariance)}
	return nil
}

// rankSlopes returns both scores' slopes by the ranks; full is at the actual ranks.
func (c coordinates) rankSlopes(full result) (equivariance, invariance resample.RankSlope, err error) {
	// The ranks of x and y, and the largest rank of x for which eigenvalues are known.
	p, q, most := c.bases.x.K, c.bases.y.K, len(c.bases.x.Values)
	var nearby [2]result
	for i, k := range resample.NearbyRanks(p, q, most) {
		if nearby[i], err = resultOf(c.atRanks(k[0], k[1])); err != nil {
			return equivariance, invariance, err
		}
	}
	slope := func(score func(result) float64) resample.RankSlope {
		return resample.NewRankSlope(p, q, most, score(full), [2]float64{score(nearby[0]), score(nearby[1])})
	}
	return slope(func(r result) float64 { return r.equivariance }), slope(func(r result) float64 { return r.invariance }), nil
}

// replicates computes the halves' scores. A half with the last group is all observations minus
// other groups, so that one is not reduced to coordinates.
func (a *accumulator) replicates(c coordinates) (out []replicate, err error) {
	last := a.groups.len() - 1
	halves := c.bases.newSubsets(a.total, len(resample.HalfSamples))
	for half := range resample.HalfSamples {
		if resample.InHalf(half, last) {
			halves.addAllObservations(half, c)
		}
	}
	// For each half, the sum of its groups' influences on the ranks (see subsets.add).
	var rankChanges [len(resample.HalfSamples)]resample.Ranks
	group := 0
	err = a.eachGroup(last, func(g *linalg.Scatter[float32]) error {
		sign := func(half int) int {
			switch in := resample.InHalf(half, group); {
			case in && !resample.InHalf(half, last):
				return 1
			case !in && resample.InHalf(half, last):
				return -1
			}
			return 0
		}
		if g.N > 0 {
			x, y := halves.add(g, sign)
			for i := range rankChanges {
				rankChanges[i].X += float64(sign(i)) * x
				rankChanges[i].Y += float64(sign(i)) * y
			}
		}
		group++
		return nil
	})
	if err != nil {
		return nil, err
	}
	out = make([]replicate, len(rankChanges))
	err = a.measure.scorers.each(len(out), &c.bases.work, func(i int, work *workspace) error {
		m, n := halves.take(i, work)
		if n == 0 || n == a.total.N {
			return errSingular
		}
		s, err := resultOf(m)
		if err != nil {
			return fmt.Errorf("%w: %w", errSingular, err)
		}
		scale := float64(a.total.N) / float64(n) // influences are relative to the variance of all
		change := rankChanges[i]
		out[i] = replicate{s, a.total.N - n, resample.Ranks{X: scale * change.X, Y: scale * change.Y}}
		return nil
	})
	return out, err
}
