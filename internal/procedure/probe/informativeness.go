package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// InformativenessSettings are the settings of the measures informativeness and disentanglement.
type InformativenessSettings struct {
	Targets
	Training
	Representation
}

// Informativeness returns the measure informativeness: how well a probe predicts a factor from a
// layer's vectors. It has rmse, r2 and baseline-rmse for factors that are quantities; accuracy, f1
// and baseline-accuracy for factors that are classes. A baseline predicts always the mean or the
// most frequent class. Invalid settings are an error.
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

type informativeness struct{ settings InformativenessSettings }

func (*informativeness) Name() string                   { return "informativeness" }
func (*informativeness) Descriptor() measure.Descriptor { return InformativenessDescriptor() }
func (m *informativeness) Version() int                 { return m.settings.Training.version(3) }
func (m *informativeness) Settings() any                { return m.settings }
func (m *informativeness) Needs() procedure.Needs       { return m.settings.needs(false) }

func (m *informativeness) Skip(j *procedure.Job) string {
	return m.settings.Targets.skip(&m.settings.Representation, j)
}

// skip returns why a job has no factor to predict, or "".
func (t *Targets) skip(r *Representation, j *procedure.Job) string {
	if len(t.factors(j.Data.Factors(), j.Data.Classes() != nil)) == 0 {
		return "the data have neither factors nor labels"
	}
	return r.skip(j)
}

func (m *informativeness) Work(j *procedure.Job) int64 {
	s := &m.settings
	const representations = 1 // z alone
	return int64(j.Data.Len()) + s.work(j, &s.Representation, len(s.factors(j.Data.Factors(), j.Data.Classes() != nil)), representations)
}

// work returns the work, in forward passes, of training all probes and nulls for a number of
// targets at every layer. representations is the number that an input vector concatenates.
func (t *Training) work(j *procedure.Job, r *Representation, targets, representations int) int64 {
	var sum int64
	for _, i := range r.layers(j) {
		for _, kind := range t.Probe {
			n := t.Seeds
			if kind == Ridge {
				n = 1
			}
			if t.Nulls != NoNulls {
				n *= 2
			}
			one := trainingWork(j, t, kind, t.Hidden, representations*r.dim(j.A.Layers[i]), 1, int(t.Split[0]*float64(j.Data.Len())))
			sum += one * int64(n*targets)
		}
	}
	return sum
}

func (m *informativeness) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		targets, err := r.targets(&s.Targets)
		return func(layer tensor.Layer) ([]measure.Score, error) { return r.informativenessScores(ctx, layer, targets) }, err
	})
}

// A factorTarget has the split of the samples that have the factor.
type factorTarget struct {
	*target
	split split
}

func (r *run) targets(t *Targets) ([]factorTarget, error) {
	var out []factorTarget
	for _, name := range t.factors(r.job.Data.Factors(), r.job.Data.Classes() != nil) {
		one, err := t.target(r.job.Data, r.samples, name)
		if err != nil {
			return nil, err
		}
		if name == Label && !slices.ContainsFunc(r.samples.Label, func(l int) bool { return l != dataset.NoLabel }) {
			return nil, errors.New("no sample has a label that is a class of the model: remove label from factors, or map the classes of the data to outputs of the model with the data's key classes")
		}
		f := factorTarget{target: one, split: one.checkSplit(r.split)}
		if len(f.split.train) < 2 || len(f.split.validation) < 1 || len(f.split.test) < 2 {
			return nil, fmt.Errorf("%w with a known %s: %d for training, %d for validation and %d for the test; at least 2, 1 and 2 are needed", measure.ErrTooFew, name,
				len(f.split.train), len(f.split.validation), len(f.split.test))
		}
		out = append(out, f)
	}
	return out, nil
}

// informativenessScores trains probes for every factor on a layer's clean representation (its
// vectors on untransformed samples) and returns their scores and those of the baselines.
func (r *run) informativenessScores(ctx context.Context, layer tensor.Layer, targets []factorTarget) ([]measure.Score, error) {
	table, err := r.open(ctx, layer, sampleTransform{}, nil) // clean; nil: all samples
	if err != nil {
		return nil, err
	}
	defer table.Close()
	in, err := r.cleanInput(layer, table)
	if err != nil {
		return nil, err
	}
	var sets []*probeSet
	for _, t := range targets {
		sets = append(sets, r.newProbeSets(layer, in, t.target, t.split, r.training.Hidden, t.name)...)
	}
	outcomes, err := r.trainProbes(ctx, sets, func(ctx context.Context, p *probeSpec, net *onnx.Model) (outcome, error) {
		test, err := r.predictions(ctx, p, net, in, p.target.samplesWithTarget(r.split.test))
		return outcome{test}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range sets {
		out = append(out, d.scores(outcomes, d.target.name)...)
	}
	for _, t := range targets {
		out = append(out, baseline(t.target, t.split, t.name))
	}
	return out, nil
}

func (r *run) cleanInput(layer tensor.Layer, table *features.Table) (*probeInput, error) {
	in := r.newInput(layer, "", table)
	if r.training.Standardise {
		return in, in.standardise(r.split.train)
	}
	return in, nil
}
