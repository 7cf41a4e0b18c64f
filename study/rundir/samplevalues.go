package rundir

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/study/plan"
)

// sampled holds the per-sample values of the cells of a transformation of a data set.
type sampled struct {
	cells      []*plan.Cell // of the first model, one for each value of the parameter
	samples    map[int]plan.Described
	index      []int // of the samples that have values everywhere
	models     []sampledModel
	measure    string
	statistic  string
	title      string         // of the statistic
	predicted  bool           // the values are of predictions
	falls      bool           // a lower value of the statistic means a larger change
	classes    []string       // names; classes and labels are stored as positions in this list
	classPlace map[string]int // position of each name
	labels     []int          // of the samples in index; -1: unknown
}

// A sampledModel holds the values of one model for the samples in sampled.index.
type sampledModel struct {
	name       string
	clean      []int     // predicted classes
	confidence []float64 // their probabilities
	views      []sampledView
}

// A sampledView holds the values of one model under one value of the transformation.
type sampledView struct {
	transformed []int     // predicted classes
	confidence  []float64 // their probabilities
	value       []float64 // of the statistic
}

// A valueSource names per-sample values that show by how much samples change.
type valueSource struct {
	sample    string // the per-sample value that a cell must have
	statistic string // the statistic to show
}

// valueSources lists the sources in order of preference.
var valueSources = []valueSource{{"predicted-moved", "ei"}, {"js", "js"}, {"pixel-agreement", "pixel-agreement"}, {"matched", "matched"},
	{"cosine", "cosine"}, {"relative-error", "relative-error"}}

// sampledOf reads the per-sample values of the cells of one transformation. It returns nil if there
// are none.
func (r *Writer) sampledOf(ctx context.Context, cells []*plan.Cell) (*sampled, error) {
	for _, source := range valueSources {
		v, err := r.readValues(cells, source)
		if err != nil {
			return nil, err
		}
		if len(v.models) == 0 {
			continue
		}
		samples, err := r.describeSamples(ctx, v.firstCell().Data)
		if err != nil {
			return nil, err
		}
		if s := newSampled(v, samples); len(s.index) > 0 {
			return s, nil
		}
	}
	return nil, nil
}

// sourceValues holds the per-sample values of the cells of one transformation that have those of a
// source. Each model has a cell for each parameter.
type sourceValues struct {
	source     valueSource
	models     []string
	parameters []string
	cells      map[cellPlace]*plan.Cell
	values     map[cellPlace]map[string]map[int]float64 // by statistic and index of the sample
}

// A cellPlace identifies a cell among those of one transformation.
type cellPlace struct{ model, parameter string }

func (v *sourceValues) firstCell() *plan.Cell {
	return v.cells[cellPlace{v.models[0], v.parameters[0]}]
}

// readValues reads the values of the cells. It leaves out models that lack a value of the
// parameter.
func (r *Writer) readValues(cells []*plan.Cell, source valueSource) (*sourceValues, error) {
	v := &sourceValues{source: source, cells: map[cellPlace]*plan.Cell{}, values: map[cellPlace]map[string]map[int]float64{}}
	for _, c := range cells {
		place := cellPlace{c.Model.Entry.Name, c.View.Parameter}
		if v.cells[place] != nil {
			continue
		}
		values, err := r.Folder.cellSamples(c)
		if err != nil {
			return nil, err
		}
		if values[source.sample] == nil {
			continue
		}
		v.values[place], v.cells[place] = values, c
		if !slices.Contains(v.models, place.model) {
			v.models = append(v.models, place.model)
		}
		if !slices.Contains(v.parameters, place.parameter) {
			v.parameters = append(v.parameters, place.parameter)
		}
	}
	if len(v.parameters) > maxValues {
		v.parameters = spread(v.parameters, maxValues)
	}
	v.models = slices.DeleteFunc(v.models, func(m string) bool {
		return slices.ContainsFunc(v.parameters, func(p string) bool { return v.cells[cellPlace{m, p}] == nil })
	})
	v.models = v.models[:min(len(v.models), mostModels)]
	return v, nil
}

// complete reports whether each cell of the models has a value of the sample. An image without
// boxes has none of their statistics.
func (v *sourceValues) complete(index int) bool {
	for _, m := range v.models {
		for _, p := range v.parameters {
			if x, ok := v.values[cellPlace{m, p}][v.source.sample][index]; !ok || math.IsNaN(x) {
				return false
			}
		}
	}
	return true
}

func newSampled(v *sourceValues, samples map[int]plan.Described) *sampled {
	s := &sampled{samples: samples, statistic: v.source.statistic, predicted: v.source.statistic == "ei", classPlace: map[string]int{}}
	descriptor := v.firstCell().Method.Descriptor()
	if s.predicted {
		descriptor = prediction.EffectiveInvarianceDescriptor()
	}
	about, _ := descriptor.Statistic(s.statistic)
	s.measure, s.title, s.falls = descriptor.Name, about.Title, about.Direction == measure.Higher
	for _, p := range v.parameters {
		s.cells = append(s.cells, v.cells[cellPlace{v.models[0], p}])
	}
	for index := range samples {
		if v.complete(index) {
			s.index = append(s.index, index)
		}
	}
	slices.Sort(s.index)
	for _, m := range v.models {
		s.models = append(s.models, s.readModel(v, m))
	}
	s.findLabels(v.firstCell())
	return s
}

// readModel returns the values of a model. Effective invariance is computed from both predictions.
func (s *sampled) readModel(v *sourceValues, name string) sampledModel {
	model := sampledModel{name: name}
	for i, p := range v.parameters {
		place := cellPlace{name, p}
		values := v.values[place]
		if !s.predicted {
			model.views = append(model.views, sampledView{value: s.valuesOf(values[v.source.sample])})
			continue
		}
		names := v.cells[place].Classes()
		view := sampledView{transformed: s.classesOf(values["predicted-moved"], names), confidence: s.valuesOf(values["confidence-moved"])}
		if i == 0 {
			model.clean = s.classesOf(values["predicted-clean"], names)
			model.confidence = s.valuesOf(values["confidence-clean"])
		}
		for j := range s.index {
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

// cellSamples returns the per-sample values of a cell by statistic and index of the sample. Of
// several layers, they are those of the last.
func (f Folder) cellSamples(c *plan.Cell) (map[string]map[int]float64, error) {
	byTask, err := f.readSampleFiles(c.Key)
	if err != nil {
		return nil, err
	}
	out := map[string]map[int]float64{}
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

// spread returns n items that are evenly spaced, the first and the last among them.
func spread(items []string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = items[i*(len(items)-1)/(n-1)]
	}
	return out
}

func (s *sampled) valuesOf(values map[int]float64) []float64 {
	out := make([]float64, len(s.index))
	for i, index := range s.index {
		out[i] = values[index]
	}
	return out
}

// classesOf returns the predicted classes as positions in s.classes.
func (s *sampled) classesOf(values map[int]float64, names []string) []int {
	out := make([]int, len(s.index))
	for i, index := range s.index {
		name := fmt.Sprint(values[index])
		if at := int(values[index]); at >= 0 && at < len(names) {
			name = names[at]
		}
		out[i] = s.class(name)
	}
	return out
}

// class returns the position of a class in s.classes.
func (s *sampled) class(name string) int {
	at, known := s.classPlace[name]
	if !known {
		at = len(s.classes)
		s.classes = append(s.classes, name)
		s.classPlace[name] = at
	}
	return at
}

func (s *sampled) findLabels(c *plan.Cell) {
	names := c.Data.Source.Classes()
	for _, index := range s.index {
		label := -1
		if at := s.samples[index].Label; at != dataset.NoLabel && at >= 0 && at < len(names) {
			label = s.class(names[at])
		}
		s.labels = append(s.labels, label)
	}
}
