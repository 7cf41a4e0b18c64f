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
		v := sourceValuesOf(cells, all, source)
		if len(v.models) == 0 {
			continue
		}
		samples, err := r.describeSamples(ctx, v.firstCell().Data)
		if err != nil {
			return nil, err
		}
		if s := newSampleValues(v, samples); len(s.indices) > 0 {
			return s, nil
		}
	}
	return nil, nil
}

// sourceValues holds the per-sample values of those cells of one transformation that have the
// values of a valueSource. Each model has a cell for each parameter value.
type sourceValues struct {
	source     valueSource
	models     []string
	parameters []string
	cells      map[cellID]*plan.Cell
	values     map[cellID]cellValues
}

// cellValues are the per-sample values of a cell by statistic and index of the sample.
type cellValues map[string]map[int]float64

// A cellID identifies a cell among those of one transformation.
type cellID struct{ model, parameter string }

func (v *sourceValues) firstCell() *plan.Cell {
	return v.cells[cellID{v.models[0], v.parameters[0]}]
}

// sourceValuesOf selects the cells that have the values of a source; all[i] holds the values of
// cells[i]. It keeps at most maxValues values of the parameter and maxSheetModels models, and
// leaves out models that lack a cell for one of these values.
func sourceValuesOf(cells []*plan.Cell, all []cellValues, source valueSource) *sourceValues {
	v := &sourceValues{source: source, cells: map[cellID]*plan.Cell{}, values: map[cellID]cellValues{}}
	for i, c := range cells {
		id := cellID{c.Model.Entry.Name, c.View.Parameter}
		if v.cells[id] != nil || all[i][source.sample] == nil {
			continue
		}
		v.values[id], v.cells[id] = all[i], c
		if !slices.Contains(v.models, id.model) {
			v.models = append(v.models, id.model)
		}
		if !slices.Contains(v.parameters, id.parameter) {
			v.parameters = append(v.parameters, id.parameter)
		}
	}
	if len(v.parameters) > maxValues {
		v.parameters = spread(v.parameters, maxValues)
	}
	v.models = slices.DeleteFunc(v.models, func(m string) bool {
		return slices.ContainsFunc(v.parameters, func(p string) bool { return v.cells[cellID{m, p}] == nil })
	})
	v.models = v.models[:min(len(v.models), maxSheetModels)]
	return v
}

// complete reports whether every model has a value for the sample with the given index, at every
// value of the parameter. An image without boxes has none of their statistics.
func (v *sourceValues) complete(index int) bool {
	for _, m := range v.models {
		for _, p := range v.parameters {
			if x, ok := v.values[cellID{m, p}][v.source.sample][index]; !ok || math.IsNaN(x) {
				return false
			}
		}
	}
	return true
}

// newSampleValues arranges the values of a source by model and view, for those of the samples (by
// index) that are complete.
func newSampleValues(v *sourceValues, samples map[int]plan.Described) *sampleValues {
	s := &sampleValues{samples: samples, statistic: v.source.statistic, predicted: v.source.statistic == "ei", classPosition: map[string]int{}}
	descriptor := v.firstCell().Method.Descriptor()
	if s.predicted {
		descriptor = prediction.EffectiveInvarianceDescriptor()
	}
	statistic, _ := descriptor.Statistic(s.statistic)
	s.measure, s.title, s.lowerIsLarger = descriptor.Name, statistic.Title, statistic.Direction == measure.Higher
	for _, p := range v.parameters {
		s.cells = append(s.cells, v.cells[cellID{v.models[0], p}])
	}
	for index := range samples {
		if v.complete(index) {
			s.indices = append(s.indices, index)
		}
	}
	slices.Sort(s.indices)
	for _, m := range v.models {
		s.models = append(s.models, s.readModel(v, m))
	}
	s.findLabels(v.firstCell())
	return s
}

// readModel returns the values of a model. Effective invariance is computed from the clean and the
// transformed prediction: sqrt(p q) of their probabilities if the classes agree, else 0.
func (s *sampleValues) readModel(v *sourceValues, name string) modelValues {
	model := modelValues{name: name}
	for i, p := range v.parameters {
		id := cellID{name, p}
		values := v.values[id]
		if !s.predicted {
			model.views = append(model.views, viewValues{value: s.valuesOf(values[v.source.sample])})
			continue
		}
		names := v.cells[id].Classes()
		view := viewValues{transformed: s.classesOf(values["predicted-moved"], names), confidence: s.valuesOf(values["confidence-moved"])}
		if i == 0 {
			model.clean = s.classesOf(values["predicted-clean"], names)
			model.confidence = s.valuesOf(values["confidence-clean"])
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
