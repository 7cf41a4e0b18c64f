package seis

import (
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/internal/rank"
)

// slopesOf are what both scores gain with the ranks. full are the scores as they are.
func slopesOf(w linalg.Whole, u, v linalg.Subspace, full result) (equivariance, invariance rank.Slope, err error) {
	var seen [2]result
	for i, k := range rank.Neighbours(u.K, v.K, len(u.Values)) {
		if seen[i], err = scoresOfPair(w.At(k[0], k[1])); err != nil {
			return equivariance, invariance, err
		}
	}
	slope := func(of func(result) float64) rank.Slope {
		return rank.SlopeOf(u.K, v.K, len(u.Values), of(full), [2]float64{of(seen[0]), of(seen[1])})
	}
	return slope(func(r result) float64 { return r.equivariance }), slope(func(r result) float64 { return r.invariance }), nil
}
