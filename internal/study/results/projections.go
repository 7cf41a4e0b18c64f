package results

import (
	"slices"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// projectionPrefix starts the names of per-sample values that hold a layer's first two principal
// components, of the clean and of the transformed sample.
const projectionPrefix = "projection-"

// addProjections adds projections, kept as per-sample values, to a sample sheet. Samples that lack
// one in a layer or view are left out.
func (r *Writer) addProjections(s *sampleValues, sheet *scores.SampleSheet, cells []*plan.Cell) error {
	type key struct{ model, layer string }
	type point struct {
		view  int // index into sheet.Parameters
		index int // of the sample
	}
	found := map[key]map[point]*[4]float32{} // coordinates: clean 1 and 2, moved (transformed) 1 and 2
	depth := map[key]int{}
	var order []key
	for _, c := range cells {
		view := slices.Index(sheet.Parameters, c.View.Parameter)
		if view < 0 {
			continue
		}
		byTask, err := r.Folder.readSampleFiles(c.Key)
		if err != nil {
			return err
		}
		for _, t := range c.Tasks {
			k := key{c.Model.Entry.Name, t.Name()}
			for _, v := range byTask[t.Name()] {
				coordinate := slices.Index([]string{projectionPrefix + "clean-1", projectionPrefix + "clean-2", projectionPrefix + "moved-1", projectionPrefix + "moved-2"}, v.Statistic)
				if coordinate < 0 {
					continue
				}
				if found[k] == nil {
					found[k], depth[k] = map[point]*[4]float32{}, t.Depth()
					order = append(order, k)
				}
				p := point{view, v.Index}
				if found[k][p] == nil {
					found[k][p] = &[4]float32{}
				}
				found[k][p][coordinate] = float32s([]float64{v.Value})[0] // rounded to four decimals
			}
		}
	}
	var complete []int // positions in s.indices of the samples with every projection
	for i, index := range s.indices {
		missing := slices.ContainsFunc(order, func(k key) bool {
			return slices.ContainsFunc(sheet.Parameters, func(p string) bool { return found[k][point{slices.Index(sheet.Parameters, p), index}] == nil })
		})
		if !missing {
			complete = append(complete, i)
		}
	}
	if len(order) == 0 || len(complete) < 2 {
		return nil
	}
	for _, i := range complete {
		sheet.Projected = append(sheet.Projected, scores.SheetSample{Index: s.indices[i], Name: s.samples[s.indices[i]].Name, Label: s.labels[i]})
	}
	for _, k := range order {
		p := scores.Projection{Model: k.model, Layer: k.layer, Depth: depth[k]}
		for view := range sheet.Parameters {
			var v scores.ProjectionView
			for _, i := range complete {
				at := found[k][point{view, s.indices[i]}]
				v.Clean, v.Moved = append(v.Clean, [2]float32{at[0], at[1]}), append(v.Moved, [2]float32{at[2], at[3]})
			}
			p.Views = append(p.Views, v)
		}
		sheet.Projections = append(sheet.Projections, p)
	}
	return nil
}
