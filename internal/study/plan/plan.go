package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/filestate"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/open"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// A Plan is a study with its models and data opened, and the list of its cells.
type Plan struct {
	Study *spec.Study
	Cells []*Cell       // in the order of the scores: by model, data, measure, transformation, value, trial; then pairs of models
	Skips []scores.Skip // measures that do not apply, with the reasons

	Models    []*Model
	Data      []*Data
	hasStore  bool                // running sums of measures may be kept on disk, see measure.Store
	Only      []string            // names of the models whose cells are planned; nil: all
	modelData map[passOwner]*Data // copies of the data for each model, see dataFor
	encoded   map[any]string      // JSON from which the keys of cells are hashed, see encode

	Stats    *telemetry.Stats // times of the stages of the run
	Failures FailureLog       // models, data and cells that could not be prepared
	failFast bool             // return the first failure instead of recording it
	mayEmpty bool             // see Options.AllowEmpty
}

// New opens the models and data of a study and lists its cells. Failed lists what cannot be opened;
// with o.FailFast, New returns the error. It is an error if nothing is left to measure, unless
// o.AllowEmpty is set.
func New(ctx context.Context, s *spec.Study, o Options) (*Plan, error) {
	p := &Plan{Study: s, hasStore: true, Only: o.Only, failFast: o.FailFast, mayEmpty: o.AllowEmpty, modelData: map[passOwner]*Data{}, Stats: o.Stats}
	if p.Stats == nil {
		p.Stats = &telemetry.Stats{}
	}
	p.Stats.Started = time.Now()
	defer p.Stats.During(telemetry.Opening)()
	if err := p.open(ctx, o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plan) open(ctx context.Context, o Options) (err error) {
	ctx, opened := telemetry.Span(ctx, "open") // of a trace
	defer func() { telemetry.EndSpan(opened, err) }()
	files := open.New(p.Study, open.Options{Cache: o.Downloads, Log: func(text string) { o.Warnf("%s", text) }})
	if err := p.openData(ctx, files, o); err != nil {
		return err
	}
	if err := p.checkBy(o); err != nil {
		return err
	}
	if err := checkModelNames(p.Study, o.Only); err != nil {
		return err
	}
	if err := p.openModels(ctx, files, o); err != nil {
		return err
	}
	defer machine.AllowGarbage()() // for the many small objects of a large study
	if err := p.addCells(); err != nil {
		return err
	}
	p.warnOfNumbers(o)
	return nil
}

// openData records data that cannot be opened as failures; it is an error if none can.
func (p *Plan) openData(ctx context.Context, files *open.Files, o Options) error {
	for _, d := range p.Study.Data {
		if err := ctx.Err(); err != nil {
			return err
		}
		opened, err := openData(filestate.WithNotice(ctx, func(text string) { o.Warnf("data %s: %s", d.Name, text) }), files, p.Study, d)
		switch {
		case err == nil:
			opened.Unreadable.log, opened.Unreadable.strict = o.Log, o.Strict
			p.Data = append(p.Data, opened)
			for _, note := range dataset.Notes(opened.Source) {
				o.Warnf("data %s: %s", d.Name, note)
			}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			f := scores.Failure{Key: FailureKey("data", d.Name), Data: d.Name}
			if err := p.fail(f, spec.Within("data "+d.Name, err)); err != nil {
				return err
			}
		}
	}
	if len(p.Data) == 0 {
		return p.Failures.Causes[0]
	}
	return nil
}

// openModels handles failures as openData does.
func (p *Plan) openModels(ctx context.Context, files *open.Files, o Options) error {
	// first describes the first data set, whose size models that take any size use. Zero is
	// unknown.
	var first inputInfo
	if p.Data[0].Entry.Name == p.Study.Data[0].Name {
		first = p.Data[0].inputInfo(ctx)
	}
	for _, m := range p.Study.Models {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !p.mustOpen(m.Name) {
			continue
		}
		opened, err := openModel(ctx, files, p.Study, m, first, o)
		if err == nil {
			err = p.checkInputs(ctx, opened)
		}
		if err == nil {
			err = p.checkImageSizes(ctx, opened)
		}
		if err == nil {
			for _, note := range p.padding(opened) {
				o.Warnf("%s", note)
			}
			p.Models = append(p.Models, opened)
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f := scores.Failure{Key: FailureKey("model", m.Name), Model: m.Name}
		if err := p.fail(f, err); err != nil { // the error names the file
			return err
		}
	}
	if len(p.Models) == 0 {
		return p.Failures.Causes[0]
	}
	return nil
}

func (p *Plan) includes(model string) bool { return p.Only == nil || slices.Contains(p.Only, model) }

// mustOpen reports whether a model has cells or is read by a planned comparison.
func (p *Plan) mustOpen(model string) bool {
	if p.includes(model) {
		return true
	}
	names := p.Study.Models
	return slices.ContainsFunc(p.Study.Measures, func(m spec.MeasureSpec) bool {
		return slices.ContainsFunc(m.ModelPairs(names), func(pair [2]int) bool {
			return names[pair[1]].Name == model && p.includes(names[pair[0]].Name)
		})
	})
}

func (p *Plan) openModelAt(index int) *Model {
	i := slices.IndexFunc(p.Models, func(m *Model) bool { return m.Entry.Name == p.Study.Models[index].Name })
	if i < 0 {
		return nil
	}
	return p.Models[i]
}

// Close closes the files of the data.
func (p *Plan) Close() error {
	var errs []error
	for _, d := range p.Data {
		errs = append(errs, dataset.Close(d.Source))
	}
	return errors.Join(errs...)
}
