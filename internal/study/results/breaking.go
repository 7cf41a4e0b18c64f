package results

import (
	"fmt"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// breakingRows returns the breaking points of the tolerances of the study's transformations, and the
// areas under their curves. Tolerances that a score cannot be compared with, for instance since it
// has no value, have none: the command breaking-point says why.
func (r *Writer) breakingRows(cells []scores.Cell) []scores.Row {
	kinds := map[string]string{}
	for _, t := range r.Plan.Study.Transforms {
		kinds[t.Name] = t.Kind
	}
	neutral := func(name string) (float64, error) {
		v, ok := transform.Neutral(kinds[name])
		if !ok {
			return 0, fmt.Errorf("at which value %s changes nothing is not known", name)
		}
		return v, nil
	}
	var points []scores.BreakingPoint
	for _, t := range r.Plan.Study.Transforms {
		for _, tolerance := range t.Tolerances {
			tolerance.Selector.Transform = t.Name
			found, err := scores.BreakingPointsOfCells(cells, tolerance, neutral)
			if err == nil {
				points = append(points, found...)
			}
		}
	}
	r.broken = len(points) > 0
	return scores.BreakingRows(r.Plan.Study.Name, points)
}
