package results

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
)

// sampleValues holds the per-sample values for a sample sheet. A view is one value of the
// transformation.
type sampleValues struct {
	cells   []*plan.Cell           // of the first model, one for each value of the parameter
	samples map[int]plan.Described // by index in the data set
	// indices are those in the data set of the samples that have values in all models and views,
	// ascending.
	indices       []int
	models        []modelValues
	measure       string
	statistic     string
	title         string         // of the statistic
	predicted     bool           // the statistic is effective invariance, and predicted classes are known
	lowerIsLarger bool           // a lower value means a larger change, as for a cosine
	classes       []string       // names; predictions and labels are positions in this list
	classPosition map[string]int // position of each name
	labels        []int          // class of each sample in indices; -1: unknown
}

// modelValues holds the values of one model for the samples in sampleValues.indices.
type modelValues struct {
	name       string
	clean      []int     // predicted classes of the clean samples
	confidence []float64 // probabilities of these classes
	views      []viewValues
}

// viewValues holds the values of one model under one value of the transformation.
type viewValues struct {
	transformed []int     // predicted classes of the transformed samples
	confidence  []float64 // probabilities of these classes
	value       []float64 // of the statistic
}

// A valueSource names per-sample values that show by how much samples change.
type valueSource struct {
	sample    string // the per-sample value that a cell must have
	statistic string // the statistic to show
}

// valueSources lists the sources in order of preference. Each compares the outputs for x and T(x):
// predicted classes (effective invariance ei, see readModel, or the Jensen-Shannon divergence js of
// the probabilities), maps of classes (the fraction of positions of equal class), boxes (the
// fraction that has a partner), layers (the cosine of activations, or 1 minus it), and maps of
// numbers (the norm of the difference divided by that of the transformed map).
var valueSources = []valueSource{{"predicted-moved", "ei"}, {"js", "js"}, {"pixel-agreement", "pixel-agreement"}, {"matched", "matched"},
	{"cosine", "cosine"}, {"relative-error", "relative-error"}}

// readSampleValues reads the per-sample values of the cells of one transformation, from the first
// of the valueSources that has any. It returns nil if none has.
func (r *Writer) readSampleValues(ctx context.Context, cells []*plan.Cell) (*sampleValues, error) {
	all := make([]cellValues, len(cells))
	err := r.onAllCores(len(cells), func(i int) (err error) {
		all[i], err = r.Folder.cellSamples(cells[i])
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, source := range valueSources {
		models := sheetModels(cells, all, source)
		if len(models) == 0 {
			continue
		}
		samples, err := r.describeSamples(ctx, models[0][0].Data)
		if err != nil {
			return nil, err
		}
		if s := newSampleValues(models, samples, source); len(s.indices) > 0 {
			return s, nil
		}
	}
	return nil, nil
}

// cellValues are the per-sample values of a cell by statistic and index of the sample.
type cellValues map[string]map[int]float64

// A sheetCell is a cell with its per-sample values.
type sheetCell struct {
	*plan.Cell
	values cellValues
}

// sheetModels returns, for each model, a cell with the values of a source for each value of the
// parameter, at most maxValues of these and maxSheetModels models; all[i] holds the values of
// cells[i]. Models that lack a cell for one of the values are left out.
func sheetModels(cells []*plan.Cell, all []cellValues, source valueSource) (out [][]sheetCell) {
	found := map[[2]string]sheetCell{} // by model and value of the parameter
	var models, parameters []string
	for i, c := range cells {
		id := [2]string{c.Model.Entry.Name, c.View.Parameter}
		if _, known := found[id]; known || all[i][source.sample] == nil {
			continue
		}
		found[id] = sheetCell{c, all[i]}
		if !slices.Contains(models, id[0]) {
			models = append(models, id[0])
		}
		if !slices.Contains(parameters, id[1]) {
			parameters = append(parameters, id[1])
		}
	}
	if len(parameters) > maxValues {
		parameters = spread(parameters, maxValues)
	}
	for _, m := range models {
		var views []sheetCell
		for _, p := range parameters {
			if c, ok := found[[2]string{m, p}]; ok {
				views = append(views, c)
			}
		}
		if len(views) == len(parameters) && len(out) < maxSheetModels {
			out = append(out, views)
		}
	}
	return out
}

// newSampleValues arranges the values of a source by model and view, for those of the samples (by
// index) that have a value in each. An image without boxes has none of their statistics.
func newSampleValues(models [][]sheetCell, samples map[int]plan.Described, source valueSource) *sampleValues {
	s := &sampleValues{samples: samples, statistic: source.statistic, predicted: source.statistic == "ei", classPosition: map[string]int{}}
	first := models[0][0]
	descriptor := first.Method.Descriptor()
	if s.predicted {
		descriptor = prediction.EffectiveInvarianceDescriptor()
	}
	statistic, _ := descriptor.Statistic(s.statistic)
	s.measure, s.title, s.lowerIsLarger = descriptor.Name, statistic.Title, statistic.Direction == measure.Higher
	for _, c := range models[0] {
		s.cells = append(s.cells, c.Cell)
	}
	for index := range samples {
		lacks := func(c sheetCell) bool {
			x, ok := c.values[source.sample][index]
			return !ok || math.IsNaN(x)
		}
		if !slices.ContainsFunc(models, func(views []sheetCell) bool { return slices.ContainsFunc(views, lacks) }) {
			s.indices = append(s.indices, index)
		}
	}
	slices.Sort(s.indices)
	for _, views := range models {
		s.models = append(s.models, s.readModel(views, source))
	}
	s.findLabels(first.Cell)
	return s
}

// readModel returns the values of a model. Effective invariance is computed from the clean and the
// transformed prediction: sqrt(p q) of their probabilities if the classes agree, else 0.
func (s *sampleValues) readModel(views []sheetCell, source valueSource) modelValues {
	model := modelValues{name: views[0].Model.Entry.Name}
	for i, c := range views {
		if !s.predicted {
			model.views = append(model.views, viewValues{value: s.valuesOf(c.values[source.sample])})
			continue
		}
		names := c.Classes()
		view := viewValues{transformed: s.classesOf(c.values["predicted-moved"], names), confidence: s.valuesOf(c.values["confidence-moved"])}
		if i == 0 {
			model.clean = s.classesOf(c.values["predicted-clean"], names)
			model.confidence = s.valuesOf(c.values["confidence-clean"])
		}
		for j := range s.indices {
			ei := 0.0
			if view.transformed[j] == model.clean[j] {
				ei = math.Sqrt(view.confidence[j] * model.confidence[j])
			}
			view.value = append(view.value, ei)
		}
		model.views = append(model.views, view)
	}
	return model
}

// cellSamples returns the per-sample values of a cell. If several layers have values, it returns
// those of the last: each task of the cell is the measure at one layer, or of the prediction.
func (f Folder) cellSamples(c *plan.Cell) (cellValues, error) {
	byTask, err := f.readSampleFiles(c.Key)
	if err != nil {
		return nil, err
	}
	out := cellValues{}
	for _, t := range slices.Backward(c.Tasks) {
		values, ok := byTask[t.Name()]
		if !ok {
			continue
		}
		for _, v := range values {
			if out[v.Statistic] == nil {
				out[v.Statistic] = make(map[int]float64, len(values))
			}
			out[v.Statistic][v.Index] = v.Value
		}
		break
	}
	return out, nil
}

// spread returns n >= 2 of the items, evenly spaced, the first and the last among them.
func spread(items []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = items[i*(len(items)-1)/(n-1)]
	}
	return out
}

func (s *sampleValues) valuesOf(values map[int]float64) []float64 {
	out := make([]float64, len(s.indices))
	for i, index := range s.indices {
		out[i] = values[index]
	}
	return out
}

// classesOf returns the predicted classes of the samples in s.indices as positions in s.classes.
// values holds indices into names, the model's classes; an index without a name is named by its
// number.
func (s *sampleValues) classesOf(values map[int]float64, names []string) []int {
	out := make([]int, len(s.indices))
	for i, index := range s.indices {
		name := fmt.Sprint(values[index])
		if at := int(values[index]); at >= 0 && at < len(names) {
			name = names[at]
		}
		out[i] = s.class(name)
	}
	return out
}

// class returns the position of a class in s.classes, and adds the class if it is not there.
func (s *sampleValues) class(name string) int {
	at, known := s.classPosition[name]
	if !known {
		at = len(s.classes)
		s.classes = append(s.classes, name)
		s.classPosition[name] = at
	}
	return at
}

// findLabels sets s.labels. c is a cell of the data set.
func (s *sampleValues) findLabels(c *plan.Cell) {
	names := c.Data.Source.Classes()
	for _, index := range s.indices {
		label := -1
		if at := s.samples[index].Label; at != dataset.NoLabel && at >= 0 && at < len(names) {
			label = s.class(names[at])
		}
		s.labels = append(s.labels, label)
	}
}
