package rundir

import (
	"slices"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// projected is the prefix of the names of per-sample values that are projections of a layer onto
// two axes.
const projected = "projection-"

// addProjections adds to the sheet of a transformation the projections of layers that its cells
// hold. Only samples with a projection in every layer and view are added.
func (r *Writer) addProjections(s *sampled, sheet *scores.SampleSheet, cells []*plan.Cell) error {
	type key struct{ model, layer string }
	type point struct {
		view  int
		index int
	}
	found := map[key]map[point]*[4]float32{}
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
				at := slices.Index([]string{projected + "clean-1", projected + "clean-2", projected + "moved-1", projected + "moved-2"}, v.Statistic)
				if at < 0 {
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
				found[k][p][at] = float32s([]float64{v.Value})[0]
			}
		}
	}
	var all []int // positions in s.index of the samples with every projection
	for i, index := range s.index {
		missing := slices.ContainsFunc(order, func(k key) bool {
			return slices.ContainsFunc(sheet.Parameters, func(p string) bool { return found[k][point{slices.Index(sheet.Parameters, p), index}] == nil })
		})
		if !missing {
			all = append(all, i)
		}
	}
	if len(order) == 0 || len(all) < 2 {
		return nil
	}
	for _, i := range all {
		sheet.Projected = append(sheet.Projected, scores.SheetSample{Index: s.index[i], Name: s.samples[s.index[i]].Name, Label: s.labels[i]})
	}
	for _, k := range order {
		p := scores.Projection{Model: k.model, Layer: k.layer, Depth: depth[k]}
		for view := range sheet.Parameters {
			var v scores.ProjectionView
			for _, i := range all {
				at := found[k][point{view, s.index[i]}]
				v.Clean, v.Moved = append(v.Clean, [2]float32{at[0], at[1]}), append(v.Moved, [2]float32{at[2], at[3]})
			}
			p.Views = append(p.Views, v)
		}
		sheet.Projections = append(sheet.Projections, p)
	}
	return nil
}
