package report

import (
	"slices"
	"strconv"

	"github.com/noether-ml/noether/scores"
)

// curves finds the scores under the single values of a transformation, by the identity of their
// mean.
type curves struct {
	rows   []scores.Row
	byMean map[identity][]int
}

func newCurves(rows []scores.Row) curves {
	c := curves{rows, map[identity][]int{}}
	for i, level := range Levels(rows) {
		r := &rows[i]
		if _, err := strconv.ParseFloat(r.Parameter, 64); level == OverTrial && err == nil {
			key := curveOf(r)
			c.byMean[key] = append(c.byMean[key], i)
		}
	}
	return c
}

func curveOf(r *scores.Row) identity {
	key := identityOf(r)
	key.parameter, key.trial = "", 0
	return key
}

// of returns the indices of the scores whose mean a row is, in the order of the values, or nil.
func (c curves) of(mean *scores.Row) []int {
	if mean.Parameter != "" {
		return nil
	}
	found := slices.Clone(c.byMean[curveOf(mean)])
	if len(found) < 2 {
		return nil
	}
	slices.SortStableFunc(found, func(i, j int) int { return byNumber(c.rows[i].Parameter, c.rows[j].Parameter) })
	return found
}
