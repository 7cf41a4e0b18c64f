package results

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// leastKept is the share of a sample's boxes that must keep their place and class under a
// transformation, and the mean IoU of its class map: below it, the sample is a mistake of a detector
// or segmenter.
const leastKept = 0.5

// denseSettings returns the settings of a cell of dense-equivariance, and false for other cells.
func denseSettings(c *plan.Cell) (dense.Settings, bool) {
	s, ok := c.Method.Settings().(dense.Settings)
	return s, ok && !c.Failed && c.Model != nil
}

// addDenseMistakes adds the samples of which detectors find other boxes, and segmenters other classes,
// under a transformation, and their groups: those that lose a larger share than the others.
func (r *Writer) addDenseMistakes(ctx context.Context, out *mistakes) error {
	lost := map[mistakeSubject]map[int][]float64{} // shares of each sample, by value and trial
	var order []mistakeSubject
	for _, c := range r.Plan.Cells {
		if _, ok := denseSettings(c); !ok {
			continue
		}
		found, err := r.changes(ctx, c)
		if err != nil {
			return err
		}
		if found == nil {
			continue
		}
		out.kept = true
		s := mistakeSubject{c.Model.Entry.Name, c.Data.Entry.Name, c.View.Name}
		if lost[s] == nil {
			lost[s] = map[int][]float64{}
			order = append(order, s)
		}
		for _, m := range found {
			lost[s][m.Index] = append(lost[s][m.Index], m.Cost)
			if m.Cost > 1-leastKept {
				out.all = append(out.all, m)
			}
		}
	}
	for _, s := range order {
		groupings, err := r.groupings(ctx, s.data)
		if err != nil {
			return err
		}
		mean := map[int]float64{}
		for index, shares := range lost[s] {
			mean[index] = stat.Mean(shares, nil)
		}
		nan := math.NaN()
		every := scores.MistakeGroup{Column: scores.AllSamples, Group: "samples", N: len(mean), Share: resample.Mean(slices.Collect(maps.Values(mean)), measure.ZeroToOne, 0.05),
			Gap: resample.Estimate{Mean: nan, Low: nan, High: nan}}
		for _, g := range append(scores.GroupMistakes(mean, nil, 0, scores.Grouping{}, groupings), every) {
			g.Kind, g.Data, g.Model, g.Transform = scores.Changed, s.data, s.model, s.transform
			out.groups = append(out.groups, g)
		}
	}
	return nil
}

// changes returns for each sample of a cell of dense-equivariance the share that changes, as a
// Mistake: of boxes 1 less matched times the pairs that keep their class, of class maps 1 less the
// mean IoU, in which a large background counts as one class. Other outputs have none.
func (r *Writer) changes(ctx context.Context, c *plan.Cell) ([]scores.Mistake, error) {
	values, err := r.Folder.cellSamples(c)
	if err != nil {
		return nil, err
	}
	statistic := "matched"
	if values[statistic] == nil {
		statistic = "miou"
	}
	kept := values[statistic]
	if kept == nil {
		return nil, nil
	}
	samples, err := r.describeSamples(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	groupings, err := r.groupings(ctx, c.Data.Entry.Name)
	if err != nil {
		return nil, err
	}
	var out []scores.Mistake
	for _, index := range slices.Sorted(maps.Keys(kept)) {
		v, what := kept[index], fmt.Sprintf("%s %.2f", statistic, kept[index])
		if flips := values["class-flips"][index]; statistic == "matched" && flips > 0 {
			v *= 1 - flips
			what += fmt.Sprintf(", class-flips %.2f", flips)
		}
		s, known := samples[index]
		if !known || math.IsNaN(v) {
			continue
		}
		out = append(out, scores.Mistake{Kind: scores.Changed, Cost: 1 - v, Model: c.Model.Entry.Name, Data: c.Data.Entry.Name, Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial,
			Index: index, Path: cmp.Or(dataset.Path(c.Data.Source, index), s.Name), Moved: what, CleanConfidence: math.NaN(), MovedConfidence: math.NaN(), Groups: groupsOf(index, groupings)})
	}
	return out, nil
}
