package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// InformativenessSettings are those of the measure informativeness.
type InformativenessSettings struct {
	Targets
	Training
	Representation
}

// Informativeness returns the measure informativeness: rmse, r2 and baseline-rmse of factors that are quantities; accuracy, f1 and
// baseline-accuracy of those that are classes.
func Informativeness(s InformativenessSettings) (procedure.Procedure, error) {
	if len(s.Hidden) == 0 {
		s.Hidden = []int{512, 256}
	}
	if err := s.Training.check(); err != nil {
		return nil, err
	}
	if err := s.Targets.check(); err != nil {
		return nil, err
	}
	return &informativeness{s}, nil
}

// InformativenessDefaults are the paper's.
func InformativenessDefaults() InformativenessSettings {
	return InformativenessSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

type informativeness struct{ settings InformativenessSettings }

func (*informativeness) Name() string                   { return "informativeness" }
func (*informativeness) Descriptor() measure.Descriptor { return InformativenessDescriptor() }
func (*informativeness) Version() int                   { return 2 }
func (m *informativeness) Settings() any                { return m.settings }
func (m *informativeness) Needs() procedure.Needs       { return m.settings.needs(false) }

func (m *informativeness) Skip(j *procedure.Job) string {
	return m.settings.Targets.skip(&m.settings.Representation, j)
}

// skip tells why no factor can be read in a job, "" if some can.
func (t *Targets) skip(r *Representation, j *procedure.Job) string {
	if len(t.factors(j.Data.Factors(), j.Data.Classes() != nil)) == 0 {
		return "the data carry neither factors nor labels"
	}
	return r.skip(j)
}

func (m *informativeness) Work(j *procedure.Job) int64 {
	s := &m.settings
	return int64(j.Data.Len()) + s.work(j, &s.Representation, len(s.factors(j.Data.Factors(), j.Data.Classes() != nil)), 1)
}

// work is that of probes of every kind and seed, with nulls, for so many targets at every layer; vectors are so many layers' long.
func (t *Training) work(j *procedure.Job, r *Representation, targets, layers int) int64 {
	var sum int64
	for _, i := range r.layers(j) {
		for _, kind := range t.Probe {
			n := t.Seeds + 1
			if kind == Ridge {
				n = 2
			}
			one := trainingWork(j, t, kind, t.Hidden, layers*r.dim(j.A.Layers[i]), 1, int(t.Split[0]*float64(j.Data.Len())))
			sum += one * int64(n*targets)
		}
	}
	return sum
}

func (m *informativeness) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return layerwise(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		targets, err := r.targets(&s.Targets)
		return func(layer onnx.Layer) ([]measure.Score, error) { return r.informed(ctx, layer, targets) }, err
	})
}

// A factorTarget is a factor, and how the samples are split for it.
type factorTarget struct {
	*target
	split split
}

// targets are the factors that the settings ask for.
func (r *run) targets(t *Targets) ([]factorTarget, error) {
	var out []factorTarget
	for _, name := range t.factors(r.job.Data.Factors(), r.job.Data.Classes() != nil) {
		one, err := t.target(r.job.Data, r.samples, name)
		if err != nil {
			return nil, err
		}
		if name == Label && !slices.ContainsFunc(r.samples.Label, func(l int) bool { return l != dataset.NoLabel }) {
			return nil, errors.New("no sample has a label that is a class of the model: leave label out of factors, or say with classes of the data which output each class is")
		}
		f := factorTarget{target: one, split: one.look(r.split)}
		if len(f.split.train) < 2 || len(f.split.validation) < 1 || len(f.split.test) < 2 {
			return nil, fmt.Errorf("%w with a known %s: %d for training, %d for validation, %d for the test", measure.ErrTooFew, name,
				len(f.split.train), len(f.split.validation), len(f.split.test))
		}
		out = append(out, f)
	}
	return out, nil
}

// informed trains probes for every factor on the clean representation of a layer.
func (r *run) informed(ctx context.Context, layer onnx.Layer, targets []factorTarget) ([]measure.Score, error) {
	table, err := r.open(ctx, layer, view{}, nil)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	in, err := r.clean(layer, table)
	if err != nil {
		return nil, err
	}
	var readings []*reading
	var problems []*problem
	for _, t := range targets {
		for _, d := range r.readings(layer, in, t.target, t.split, r.training.Hidden, t.name) {
			readings, problems = append(readings, d), append(problems, d.problems()...)
		}
	}
	found, err := r.solve(ctx, problems, func(ctx context.Context, p *problem, net *onnx.Model) (outcome, error) {
		test, err := r.predictions(ctx, p, net, in, p.want.with(r.split.test))
		return outcome{test}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range readings {
		out = append(out, d.scores(found, d.target.name)...)
	}
	for _, t := range targets {
		out = append(out, baseline(t.target, t.split, t.name))
	}
	return out, nil
}

// clean are the vectors of a layer on the samples as they are, standardised where that is set.
func (r *run) clean(layer onnx.Layer, table *features.Table) (*probeInput, error) {
	in := r.features(layer, "", table)
	if r.training.Standardise {
		return in, in.standardise(r.split.train)
	}
	return in, nil
}
