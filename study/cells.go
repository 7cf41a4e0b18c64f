package study

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

func (p *Plan) addCells() error {
	for _, m := range p.models {
		if !p.runs(m.spec.Name) {
			continue
		}
		for _, d := range p.data {
			if err := p.addCellsOf(m, d); err != nil {
				return err
			}
		}
	}
	for _, spec := range p.Study.Measures {
		for _, pair := range spec.pairs(p.Study.Models) {
			if !p.runs(p.Study.Models[pair[0]].Name) {
				continue
			}
			a, b := p.find(pair[0]), p.find(pair[1])
			if a == nil || b == nil {
				continue // its failure is noted
			}
			for _, d := range p.data {
				if err := p.addCellsBetween(a, b, d, spec); err != nil {
					return err
				}
			}
		}
	}
	if len(p.Cells) == 0 && len(p.failures.causes) > 0 {
		return p.failures.causes[0]
	}
	if len(p.Cells) == 0 {
		why := "no measure applies"
		if len(p.Skips) > 0 {
			why = p.Skips[0].Measure + ": " + p.Skips[0].Why
		}
		return fmt.Errorf("there is nothing to measure: %s", why)
	}
	return nil
}

// under is the data as a model sees them: the same each time.
func (p *Plan) under(d *openData, m *openModel) *openData {
	key := owner{m, d}
	if p.seen[key] == nil {
		p.seen[key] = d.under(m.model.Classes())
	}
	return p.seen[key]
}

// addCellsOf adds the cells that concern one model.
func (p *Plan) addCellsOf(m *openModel, raw *openData) error {
	d := p.under(raw, m)
	views := p.Study.views(d)
	for _, spec := range p.Study.Measures {
		if spec.Between.given() {
			continue
		}
		var err error
		switch method := spec.Method.(type) {
		case measure.Measure:
			err = each(views, func(v View) error { return p.addMeasure(m, d, v, method) })
		case measure.Comparison:
			err = each(views, func(v View) error { p.addMoved(m, d, v, method); return nil })
		case procedure.Procedure:
			err = each(p.Study.runs(method, raw), func(v View) error { return p.addProcedure(m, nil, raw, v, spec) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each calls f for each view until it fails.
func each(views []View, f func(View) error) error {
	for _, v := range views {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// runs are the runs of a procedure: one for each trial, and where it wants a transformation one for each of them.
func (s *Study) runs(method procedure.Procedure, d *openData) []View {
	subjects := []View{{}}
	switch {
	case !method.Needs().Transform, method.Needs().OwnTrajectories && hasTrajectories(d.source):
	case d.spec.Pairs != nil:
		subjects[0] = View{Transform: "pair", on: "input", per: "trial"}
	case len(s.Transforms) > 0:
		subjects = subjects[:0]
		for _, t := range s.Transforms {
			subjects = append(subjects, t.view())
		}
	}
	var out []View
	for _, v := range subjects {
		for v.Trial = range s.Trials {
			out = append(out, v)
		}
	}
	return out
}

// hasTrajectories reports whether the samples of a source become others without a transformation.
func hasTrajectories(src dataset.Source) bool {
	return dataset.AsGratings(src) != nil || dataset.Amounts(src) != nil
}

// view is the transformation with all its values.
func (t *Transform) view() View {
	return View{Transform: t.Name, on: t.On, per: t.Per, canonical: t.canonical(), sweep: t.sweep()}
}

// canonical tells the transformation with all its values from every other.
func (t *Transform) canonical() []any {
	var out []any
	for _, c := range t.Cells {
		out = append(out, []any{c.Parameter, c.Canonical})
	}
	return out
}

// addCellsBetween adds the cells that concern two models, or the layers of one among each other: clean, and under each
// transformation of both models' inputs.
func (p *Plan) addCellsBetween(a, b *openModel, d *openData, spec MeasureSpec) error {
	if method, ok := spec.Method.(procedure.Procedure); ok {
		return each(p.Study.runs(method, d), func(v View) error { return p.addProcedure(a, b, d, v, spec) })
	}
	if a == b {
		d = p.under(d, a) // so that passes of the model's other cells serve these as well
	}
	views := p.Study.views(d)
	if views[0].Transform != "" {
		views = append([]View{{}}, views...)
	}
	return each(views, func(v View) error { return p.addBetween(a, b, d, v, spec) })
}

// views lists the ways in which the inputs of a data set are moved: one that moves nothing where there is no other. Pairs
// bring their own.
func (s *Study) views(d *openData) []View {
	var out []View
	if d.spec.Pairs != nil {
		for trial := range s.Trials {
			out = append(out, View{Transform: "pair", Trial: trial, on: "input", per: "trial"})
		}
		return out
	}
	if len(s.Transforms) == 0 {
		return []View{{}}
	}
	for _, t := range s.Transforms {
		for _, c := range t.Cells {
			for trial := range s.Trials {
				out = append(out, View{Transform: t.Name, Parameter: c.Parameter, Trial: trial,
					on: t.On, per: t.Per, law: c.Law, canonical: c.Canonical})
			}
		}
	}
	return out
}

// add adds a cell, unless there is nothing to do in it.
func (p *Plan) add(c *Cell) {
	if len(c.tasks) > 0 || c.work != nil {
		c.Key = c.key(p.Study)
		p.Cells = append(p.Cells, c)
	}
}

// skip notes that a measure does not apply somewhere, once.
func (p *Plan) skip(c *Cell, layer, why string) {
	s := scores.Skip{Model: c.modelNames(), Layer: layer, Data: c.Data.spec.Name, Measure: c.Method.Name(), Why: why}
	if !slices.Contains(p.Skips, s) {
		p.Skips = append(p.Skips, s)
	}
}

// modelNames names the model, or the two that are compared.
func (c *Cell) modelNames() string {
	if c.Other == nil {
		return c.Model.spec.Name
	}
	return c.Model.spec.Name + ", " + c.Other.spec.Name
}

// addMeasure adds a cell with a task for each layer that its measure applies to, and notes what it skips.
func (p *Plan) addMeasure(m *openModel, d *openData, v View, meas measure.Measure) error {
	c := &Cell{Model: m, Data: d, View: v, Method: meas}
	needs := meas.Needs()
	if why := unmet(needs, m, d, v); why != "" {
		p.skip(c, "", why)
		return nil
	}
	if d.mismatch != nil && (needs.Labels || needs.Prediction && d.spec.Classes != nil) {
		return p.failCell(c, d.mismatch)
	}
	classes := d.classNames(m.model.Classes())
	layers := m.layers
	if needs.Prediction {
		layers = []onnx.Layer{{Depth: scores.NoDepth, Shape: []int{len(classes)}, Axes: "NC"}}
	}
	for _, layer := range layers {
		site := measure.Site{
			Layer: layer, Layout: d.layout, Classes: classes,
			PerSample: v.law != nil && v.per == "sample" && transform.Random(v.law), KeepSamples: p.Study.Samples,
			Budget: int64(p.Study.Memory), Key: p.key(c),
		}
		why := v.immovable(layer)
		if why == "" {
			why = meas.Skip(site)
		}
		if why != "" {
			p.skip(c, layer.Name, why)
			continue
		}
		target := &siteTarget{measure: meas, model: m, site: site, moved: v.Transform != ""}
		t := &task{target: target, cell: c, full: meas.Cost(site)}
		if p.stored {
			site.Store = &store{} // in place of that of a pass
		}
		t.cost = meas.Cost(site)
		if b, ok := meas.(measure.Borrower); ok {
			t.loan = b.Borrowed(site)
		}
		c.tasks = append(c.tasks, t)
	}
	p.add(c)
	return nil
}

// unmet tells which need of a measure is not met, "" if all are.
func unmet(needs measure.Needs, m *openModel, d *openData, v View) string {
	switch {
	case needs.Labels && d.source.Classes() == nil:
		return "the data have no labels"
	case needs.Moved && !needs.CleanServes && v.Transform == "":
		return "the study names no transformation"
	case needs.Prediction && m.model.Classes() == 0:
		return "the model has no class scores"
	case needs.Prediction && v.on == "activations":
		return "a transformation of activations leaves the prediction as it is"
	}
	return ""
}

// immovable tells why a view cannot move a layer's activations, "" where it can or has not to.
func (v View) immovable(layer onnx.Layer) string {
	if v.on == "activations" && layer.Axes != "NCHW" && layer.Axes != "NHWC" {
		return "a transformation of activations wants feature maps, and its axes are " + string(layer.Axes)
	}
	return ""
}

// key is what random draws inside the accumulators of a cell are keyed by.
func (p *Plan) key(c *Cell) measure.Key {
	return measure.Key{Seed: p.Study.Seed, Data: c.Data.spec.Name, Transform: c.View.Transform, Trial: c.View.Trial}
}
