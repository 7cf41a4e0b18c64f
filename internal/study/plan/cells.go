package plan

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// addCells lists the cells of the study, first those of single models.
func (p *Plan) addCells() error {
	for _, m := range p.Models {
		if !p.includes(m.Entry.Name) { // the plan may be of some of the models
			continue
		}
		for _, d := range p.Data {
			if err := p.addCellsOf(m, d); err != nil {
				return err
			}
		}
	}
	for _, spec := range p.Study.Measures {
		for _, pair := range spec.ModelPairs(p.Study.Models) {
			if !p.includes(p.Study.Models[pair[0]].Name) {
				continue
			}
			a, b := p.openModelAt(pair[0]), p.openModelAt(pair[1])
			if a == nil || b == nil {
				continue // could not be opened, which is recorded as a failure
			}
			for _, d := range p.Data {
				if err := p.addCellsBetween(a, b, d, spec); err != nil {
					return err
				}
			}
		}
	}
	if len(p.Cells) == 0 && len(p.Failures.Causes) > 0 {
		return p.Failures.Causes[0]
	}
	if len(p.Cells) == 0 && !p.mayEmpty {
		why := "no measure applies"
		if len(p.Skips) > 0 {
			why = p.Skips[0].Measure + ": " + p.Skips[0].Why
		}
		return fmt.Errorf("there is nothing to measure: %s", why)
	}
	return nil
}

// dataFor returns the data as Data.forModel does. Equal arguments give the same pointer.
func (p *Plan) dataFor(d *Data, m *Model) *Data {
	key := passOwner{m, d}
	if p.modelData[key] == nil {
		p.modelData[key] = d.forModel(m.Net.Classes(), m.classNames)
	}
	return p.modelData[key]
}

// raw has the labels of the source, which procedures take; measures take dataFor.
func (p *Plan) addCellsOf(m *Model, raw *Data) error {
	d := p.dataFor(raw, m)
	views := views(p.Study, d)
	for _, spec := range p.Study.Measures {
		if spec.Between.Given() { // it compares models, see addCellsBetween
			continue
		}
		var err error
		switch method := spec.Method.(type) {
		case measure.Measure:
			err = forEachView(views, func(v View) error { return p.addMeasure(m, d, v, method) })
		case measure.Comparison:
			err = forEachView(views, func(v View) error { p.addCleanTransformed(m, d, v, method); return nil })
		case procedure.Procedure:
			err = forEachView(procedureViews(p.Study, method, raw), func(v View) error { return p.addProcedure(m, nil, raw, v, spec) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addCellsBetween adds the comparisons of two models, or of one model with itself, clean and under
// each transformation of both inputs.
func (p *Plan) addCellsBetween(a, b *Model, d *Data, spec spec.MeasureSpec) error {
	if method, ok := spec.Method.(procedure.Procedure); ok {
		return forEachView(procedureViews(p.Study, method, d), func(v View) error { return p.addProcedure(a, b, d, v, spec) })
	}
	if a == b {
		d = p.dataFor(d, a)
	}
	views := views(p.Study, d)
	if views[0].Name != "" {
		views = append([]View{{}}, views...) // the zero View is the clean input
	}
	if method, ok := spec.Method.(measure.Measure); ok {
		if method.Needs().OtherLayers {
			return forEachView(views, func(v View) error { return p.addLayersBetween(a, b, d, v, spec) })
		}
		if method.Needs().Decoded {
			return forEachView(views, func(v View) error { p.addOutputs(a, b, d, v, method); return nil })
		}
		return forEachView(views, func(v View) error { return p.addPredictions(a, b, d, v, method) })
	}
	return forEachView(views, func(v View) error { return p.addBetween(a, b, d, v, spec) })
}

// add ignores a cell that has neither tasks nor a procedure.
func (p *Plan) add(c *Cell) {
	if len(c.Tasks) > 0 || c.Procedure != nil {
		c.Key = p.cellKey(c)
		c.drawn = c.View.drawn(p.key(c))
		p.Cells = append(p.Cells, c)
	}
}

// skip records once that a measure does not apply to a layer, or with "" to the whole cell.
func (p *Plan) skip(c *Cell, layer, why string) {
	s := scores.Skip{Model: c.ModelNames(), Layer: layer, Data: c.Data.Entry.Name, Measure: c.Method.Name(), Why: why}
	if !slices.Contains(p.Skips, s) {
		p.Skips = append(p.Skips, s)
	}
}

// addMeasure adds a cell with a task for each layer, prediction or decoded output that its measure
// applies to, and records the others as skipped. It returns an error only if the study is to stop
// at the first failure.
func (p *Plan) addMeasure(m *Model, d *Data, v View, meas measure.Measure) error {
	c := &Cell{Model: m, Data: d, View: v, Method: meas}
	needs := meas.Needs()
	if needs.OtherModel {
		p.skip(c, "", "it compares the predictions of two models")
		return nil
	}
	if why := unmetNeed(needs, m, d, v); why != "" {
		p.skip(c, "", why)
		return nil
	}
	// d.mismatch is why labels cannot be mapped to outputs.
	if d.mismatch != nil && (needs.Labels || needs.Prediction && d.Entry.Classes != nil) {
		return p.failCell(c, d.mismatch)
	}
	classes := d.classNames(m.Net.Classes())
	layers := m.layers
	var format *decoded.Format
	var truth measure.Truth
	switch {
	case needs.Prediction:
		layers = []tensor.Layer{{Depth: scores.NoDepth, Shape: []int{len(classes)}, Axes: "NC"}}
	case needs.Decoded:
		format = decodedFormat(m)
		layers = []tensor.Layer{{Depth: scores.NoDepth, Shape: format.Shape()}}
	}
	if needs.Truth {
		var err error
		if truth, err = d.truth(format); err != nil {
			return p.failCell(c, err)
		}
	}
	for i, layer := range layers {
		site := measure.Site{
			Layer: layer, Layout: d.Layout, Classes: classes,
			PerSample: v.Transform != nil && v.Per == "sample" && transform.Random(v.Transform), Motion: transform.Motions(v.Transform), KeepSamples: p.Study.Samples,
			Budget: int64(p.Study.Memory), Key: p.key(c), Output: format, Truth: truth,
		}
		if !p.Study.Samples && i == len(layers)-1 { // a prediction, or the last layer
			site.KeepSamples = true // values per sample
			if !p.Study.KeepsSamples() {
				site.KeepBelow = FirstSamples
			}
		}
		if p.Study.Images > 0 && v.Trial == 0 && v.Name != "" && format == nil && slices.Contains([]int{0, len(layers) / 2, len(layers) - 1}, i) {
			site.Project = projectedSamples
		}
		why := v.activationSkip(layer)
		if why == "" {
			why = meas.Skip(site)
		}
		if why != "" {
			p.skip(c, layer.Name, why)
			continue
		}
		target := &siteTarget{measure: meas, model: m, site: site, transformed: v.Name != ""}
		t := &Task{target: target, Cell: c, FullCost: meas.Cost(site)}
		if p.hasStore { // the cost in memory may be less with a store on disk
			site.Store = costStore{} // Task.Open gets the store of the pass
		}
		t.cost = meas.Cost(site)
		if b, ok := meas.(measure.Borrower); ok {
			t.Borrowed = b.Borrowed(site) // bytes from a pool that accumulators share
		}
		c.Tasks = append(c.Tasks, t)
	}
	p.add(c)
	return nil
}

// FirstSamples is the number of samples, the first of the random order, that keep per-sample values
// of predictions and of the last layer if the study does not set samples: true.
const FirstSamples = 500

// projectedSamples is the number of samples projected to two dimensions for the report.
const projectedSamples = 48

// unmetNeed returns a requirement that is not met, or "".
func unmetNeed(needs measure.Needs, m *Model, d *Data, v View) string {
	switch {
	case needs.Labels && d.Source.Classes() == nil:
		return "the data have no labels"
	case needs.Truth && !d.hasTruth():
		return "the data have no labelled boxes or masks"
	case needs.Transformed && !needs.TransformOptional && v.Name == "":
		return "the study has no transformation"
	case needs.Prediction && needs.OtherModel && m.Net.Classes() == 0:
		return "model " + m.Entry.Name + " has no class scores"
	case needs.Prediction && m.Net.Classes() == 0:
		return "the model has no class scores"
	case needs.Decoded && decodedFormat(m) == nil:
		return "no output of the model is recognised as a class map, boxes or a map of values: set output, for example output: {boxes: yolov8}"
	case needs.Decoded && v.On == "activations":
		return "a transformation of activations does not change the decoded output"
	case needs.Prediction && v.On == "activations":
		return "a transformation of activations does not change the prediction"
	}
	return ""
}

func decodedFormat(m *Model) *decoded.Format {
	format, _ := m.Net.Decoded()
	return format
}

// activationSkip returns why a view cannot transform a layer's activations, or "".
func (v View) activationSkip(layer tensor.Layer) string {
	if v.On == "activations" && layer.Axes != "NCHW" && layer.Axes != "NHWC" {
		return "a transformation of activations needs feature maps, and the axes of the layer are " + string(layer.Axes)
	}
	return ""
}

func (p *Plan) key(c *Cell) measure.Key {
	return measure.Key{Seed: p.Study.Seed, Data: c.Data.Entry.Name, Transform: c.View.Name, Trial: c.View.Trial}
}

// costStore tells Measure.Cost that accumulators may store data on disk. It is never written.
type costStore struct{ measure.Store }
