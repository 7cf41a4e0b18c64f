package study

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
	"github.com/noether-ml/noether/transform"
)

// A Plan is a study with its models and data opened: every cell that it asks for.
type Plan struct {
	Study *spec.Study
	Cells []*Cell // in the order of the scores: by model, data, measure, transformation, value, trial; then pairs of models
	Skips []scores.Skip

	models []*openModel
	data   []*openData
	stored bool                // accumulators have a store
	only   []string            // models whose cells are planned; nil: all
	seen   map[owner]*openData // the data as each model sees them

	stats    *Stats
	failures failureLog // what could not be opened
	failFast bool
}

// A Cell is what one record holds: a measure for a model, data, transformation value and trial.
type Cell struct {
	Key    string // hash of all that the cell depends on
	Model  *openModel
	Other  *openModel // the model that Model is compared with, which may be itself; nil where the measure concerns one model
	Data   *openData
	View   View
	Method measure.Method

	tasks []*task           // for a measure one a layer, or one for the prediction; for a comparison one a grid of layers
	work  *work             // of a procedure, which has no tasks
	order map[[2]string]int // of pairs of layers in the record; nil: that of the tasks
	done  bool              // its record is in the folder

	failed bool // it was given up in this run
}

// A View is one way of moving the input: a transformation with one value of its parameter, in one trial.
type View struct {
	Transform string // name; "" where nothing is moved
	Parameter string
	Trial     int

	on        string               // "input" or "activations"
	law       transform.Transform  // nil where nothing is moved, or where the data are pairs
	per       string               // "sample" or "trial"
	canonical any                  // what the cell's key depends on
	sweep     *procedure.Transform // of a procedure that wants the transformation with all its values
}

// redraws reports whether the view's transformation may throw values away.
func (v View) redraws() bool { return redraws(v.law) }

// redraws reports whether a transformation may draw values again.
func redraws(law transform.Transform) bool {
	_, ok := law.(transform.Reverb)
	return ok
}

// NewPlan opens the models and the data of a study and lists its cells. A model or a data set that cannot be opened
// fails alone, and is among Failed, as long as there is something left to measure.
func NewPlan(ctx context.Context, s *spec.Study, o Options) (*Plan, error) {
	p := &Plan{Study: s, stored: true, only: o.Only, failFast: o.FailFast, seen: map[owner]*openData{}, stats: o.Stats}
	if p.stats == nil {
		p.stats = &Stats{}
	}
	p.stats.started = time.Now()
	defer p.stats.during(opening)()
	if err := p.open(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plan) open(ctx context.Context, o Options) (err error) {
	ctx, opened := span(ctx, "open")
	defer func() { end(opened, err) }()
	p.Study.OpenCache(func(text string) { o.warn("%s", text) })
	if err := p.openData(ctx, o); err != nil {
		return err
	}
	if err := checkModelNames(p.Study, o.Only); err != nil {
		return err
	}
	if err := p.openModels(ctx, o); err != nil {
		return err
	}
	return p.addCells()
}

// openData opens all data. What cannot be opened is a failure, and an error where nothing can.
func (p *Plan) openData(ctx context.Context, o Options) error {
	for _, d := range p.Study.Data {
		if err := ctx.Err(); err != nil {
			return err
		}
		open, err := openStudyData(ctx, p.Study, d)
		switch {
		case err == nil:
			p.data = append(p.data, open)
			for _, note := range dataset.Notes(open.source) {
				o.warn("data %s: %s", d.Name, note)
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			f := scores.Failure{Key: failureKey("data", d.Name), Data: d.Name}
			if err := p.fail(f, spec.Within("data "+d.Name, err)); err != nil {
				return err
			}
		}
	}
	if len(p.data) == 0 {
		return p.failures.causes[0]
	}
	return nil
}

// openModels opens the models that are wanted, as openData opens data.
func (p *Plan) openModels(ctx context.Context, o Options) error {
	var size [2]int // that of the first data, and of no others: a model of free size is measured at one size
	var heard *dataset.Waveform
	if p.data[0].spec.Name == p.Study.Data[0].Name {
		size, heard = p.data[0].size(ctx), p.data[0].sound(ctx)
	}
	for _, m := range p.Study.Models {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !p.isWanted(m.Name) {
			continue
		}
		open, err := openStudyModel(ctx, p.Study, m, size, heard, o)
		if err == nil {
			err = p.fits(ctx, open)
		}
		if err == nil {
			err = p.oneSize(ctx, open)
		}
		if err == nil {
			p.models = append(p.models, open)
			continue
		}
		f := scores.Failure{Key: failureKey("model", m.Name), Model: m.Name}
		if err := p.fail(f, err); err != nil { // the error names the file
			return err
		}
	}
	if len(p.models) == 0 {
		return p.failures.causes[0]
	}
	return nil
}

// runs reports whether the plan is to have the cells of a model, those that compare it with others among them.
func (p *Plan) runs(model string) bool { return p.only == nil || slices.Contains(p.only, model) }

// isWanted reports whether a model must be opened: for its own cells, or because one that has some is compared with it.
func (p *Plan) isWanted(model string) bool {
	if p.runs(model) {
		return true
	}
	names := p.Study.Models
	return slices.ContainsFunc(p.Study.Measures, func(m spec.MeasureSpec) bool {
		return slices.ContainsFunc(m.ModelPairs(names), func(pair [2]int) bool {
			return names[pair[1]].Name == model && p.runs(names[pair[0]].Name)
		})
	})
}

// find is an open model of the study by its index there; nil where it could not be opened.
func (p *Plan) find(index int) *openModel {
	i := slices.IndexFunc(p.models, func(m *openModel) bool { return m.spec.Name == p.Study.Models[index].Name })
	if i < 0 {
		return nil
	}
	return p.models[i]
}

// Close closes the files of the data.
func (p *Plan) Close() error {
	var errs []error
	for _, d := range p.data {
		errs = append(errs, dataset.Close(d.source))
	}
	return errors.Join(errs...)
}

// key hashes all that the scores of a cell depend on: nothing that does not matter, such as the batch size, and
// everything that does.
func (c *Cell) key(s *spec.Study) string {
	var layers []string
	for _, t := range c.tasks {
		layers = append(layers, t.depends()...)
	}
	if c.work != nil {
		layers = c.work.depends()
	}
	on := map[string]any{
		"seed":    s.Seed,
		"model":   []any{c.Model.spec.Name, c.Model.canonical()},
		"data":    []any{c.Data.spec.Name, c.Data.source.Fingerprint(), c.Data.layout},
		"view":    []any{c.View.Transform, c.View.Parameter, c.View.Trial, c.View.on, c.View.per, c.View.canonical},
		"measure": []any{c.Method.Name(), c.Method.Version(), c.Method.Settings()},
		"layers":  layers,
		"samples": s.Samples,
		"budget":  s.Memory, // decides whether an interval can be afforded
	}
	if c.Other != nil {
		on["other"] = []any{c.Other.spec.Name, c.Other.canonical()}
	}
	sum := sha256.Sum256([]byte(spec.CanonicalJSON(on)))
	return hex.EncodeToString(sum[:12])
}
