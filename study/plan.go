package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/config"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/transform"
)

// A Plan is a study with its models and data opened: every cell that it asks for.
type Plan struct {
	Study *Study
	Cells []*Cell // in the order of the scores: by model, data, measure, transformation, value, trial
	Skips []scores.Skip

	models []*openModel
	data   []*openData
}

// A Cell is what one record holds: a measure for a model, data, transformation value and trial.
type Cell struct {
	Key     string // hash of all that the cell depends on
	Model   *openModel
	Data    *openData
	View    View
	Measure measure.Measure

	tasks []*task // a layer each; one for a measure of the prediction
	done  bool    // its record is in the folder
}

// A View is one way of moving the input: a transformation with one value of its parameter, in one trial.
type View struct {
	Transform string // name; "" where nothing is moved
	Parameter string
	Trial     int

	on        string              // "input" or "activations"
	law       transform.Transform // nil where nothing is moved, or where the data are pairs
	per       string              // "sample" or "trial"
	canonical any                 // what the cell's key depends on
}

// A task is one accumulator's work: a measure at a layer.
type task struct {
	cell *Cell
	site measure.Site
	cost int64

	seen   int         // places from 0 that need not be fed again
	scored *finished   // set once the layer is finished
	stored *stateEntry // where its state stands in the cell's state file
}

// openModel is a model of the study, opened.
type openModel struct {
	spec       Model
	model      *model.Model
	preprocess dataset.Preprocess
}

// NewPlan opens the models and the data of a study and lists its cells.
func NewPlan(ctx context.Context, s *Study, o Options) (*Plan, error) {
	p := &Plan{Study: s}
	if err := p.open(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plan) open(ctx context.Context, o Options) error {
	s := p.Study
	for _, d := range s.Data {
		if err := ctx.Err(); err != nil {
			return err
		}
		open, err := s.openData(ctx, d)
		if err != nil {
			return fmt.Errorf("data %s: %w", d.Name, err)
		}
		p.data = append(p.data, open)
	}
	if err := s.knows(o.Only); err != nil {
		return err
	}
	for _, m := range s.Models {
		if err := ctx.Err(); err != nil {
			return err
		}
		if o.Only != nil && !slices.Contains(o.Only, m.Name) {
			continue
		}
		open, err := s.openModel(m, p.data[0].size(ctx), o)
		if err != nil {
			return err // names the file
		}
		p.models = append(p.models, open)
	}
	return p.addCells()
}

// knows finds a name that is no model of the study.
func (s *Study) knows(models []string) error {
	var names []string
	for _, m := range s.Models {
		names = append(names, m.Name)
	}
	for _, name := range models {
		if !slices.Contains(names, name) {
			return fmt.Errorf("the study has no model %q; %s", name, config.Suggest(name, names))
		}
	}
	return nil
}

// Close closes the files of the data.
func (p *Plan) Close() error {
	var errs []error
	for _, d := range p.data {
		errs = append(errs, dataset.Close(d.source))
	}
	return errors.Join(errs...)
}

func (p *Plan) addCells() error {
	for _, m := range p.models {
		for _, d := range p.data {
			d := d.under(m.model.Classes())
			views, err := p.Study.views(d)
			if err != nil {
				return err
			}
			for _, spec := range p.Study.Measures {
				for _, v := range views {
					if err := p.addCell(m, d, v, spec.Measure); err != nil {
						return fmt.Errorf("model %s on %s: %w", m.spec.Name, d.spec.Name, err)
					}
				}
			}
		}
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

// views lists the ways in which the inputs of a data set are moved. Pairs bring their own.
func (s *Study) views(d *openData) ([]View, error) {
	var out []View
	if d.spec.Pairs != nil {
		for trial := range s.Trials {
			out = append(out, View{Transform: "pair", Trial: trial, on: "input", per: "trial"})
		}
		return out, nil
	}
	if len(s.Transforms) == 0 {
		return []View{{}}, nil
	}
	for _, t := range s.Transforms {
		for _, c := range t.Cells {
			for trial := range s.Trials {
				out = append(out, View{Transform: t.Name, Parameter: c.Parameter, Trial: trial,
					on: t.On, per: t.Per, law: c.Law, canonical: c.Canonical})
			}
		}
	}
	return out, nil
}

// addCell adds a cell with a task for each layer that its measure applies to, and notes what it skips.
func (p *Plan) addCell(m *openModel, d *openData, v View, meas measure.Measure) error {
	needs := meas.Needs()
	skip := func(layer, why string) {
		s := scores.Skip{Model: m.spec.Name, Layer: layer, Data: d.spec.Name, Measure: meas.Name(), Why: why}
		if !slices.Contains(p.Skips, s) {
			p.Skips = append(p.Skips, s)
		}
	}
	switch {
	case needs.Labels && d.source.Classes() == nil:
		skip("", "the data have no labels")
		return nil
	case needs.Moved && !needs.CleanServes && v.Transform == "":
		skip("", "the study names no transformation")
		return nil
	case needs.Prediction && m.model.Classes() == 0:
		skip("", "the model has no class scores")
		return nil
	case needs.Prediction && v.on == "activations":
		skip("", "a transformation of activations leaves the prediction as it is")
		return nil
	}
	if d.mismatch != nil && (needs.Labels || needs.Prediction && d.spec.Classes != nil) {
		return d.mismatch
	}
	classes := d.classNames(m.model.Classes())
	c := &Cell{Model: m, Data: d, View: v, Measure: meas}
	sites := m.model.Layers()
	if needs.Prediction {
		sites = []onnx.Layer{{Depth: -1, Shape: []int{len(classes)}, Axes: "NC"}}
	}
	for _, layer := range sites {
		site := measure.Site{
			Layer: layer, Layout: d.layout, Classes: classes,
			PerSample: v.law != nil && v.per == "sample" && transform.Random(v.law), KeepSamples: p.Study.Samples,
			Budget: int64(p.Study.Memory),
			Key:    measure.Key{Seed: p.Study.Seed, Data: d.spec.Name, Transform: v.Transform, Trial: v.Trial},
		}
		if v.on == "activations" && layer.Axes != "NCHW" && layer.Axes != "NHWC" {
			skip(layer.Name, "a transformation of activations wants feature maps, and its axes are "+string(layer.Axes))
			continue
		}
		if why := meas.Skip(site); why != "" {
			skip(layer.Name, why)
			continue
		}
		c.tasks = append(c.tasks, &task{cell: c, site: site, cost: meas.Cost(site)})
	}
	if len(c.tasks) == 0 {
		return nil
	}
	c.Key = c.key(p.Study)
	p.Cells = append(p.Cells, c)
	return nil
}

// key hashes all that the scores of a cell depend on: nothing that does not matter, such as the batch size, and
// everything that does.
func (c *Cell) key(s *Study) string {
	layers := make([]string, len(c.tasks))
	for i, t := range c.tasks {
		layers[i] = t.site.Layer.Name + " " + string(t.site.Layer.Axes)
	}
	raw := canonicalJSON(map[string]any{
		"seed":    s.Seed,
		"model":   []any{c.Model.spec.Name, c.Model.canonical()},
		"data":    []any{c.Data.spec.Name, c.Data.source.Fingerprint(), c.Data.layout},
		"view":    []any{c.View.Transform, c.View.Parameter, c.View.Trial, c.View.on, c.View.per, c.View.canonical},
		"measure": []any{c.Measure.Name(), c.Measure.Version(), c.Measure.Settings()},
		"layers":  layers,
		"samples": s.Samples,
		"budget":  s.Memory, // decides whether an interval can be afforded
	})
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:12])
}

// canonicalJSON encodes what a key depends on; equal values give equal text.
func canonicalJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // what keys depend on are plain values
	}
	return string(raw)
}
