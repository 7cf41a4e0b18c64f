package probe

import (
	"context"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// EquivarianceSettings are the settings of parameter- and representation-equivariance.
type EquivarianceSettings struct {
	Training
	Representation
}

// ParameterEquivariance returns the measure parameter-equivariance: rmse, r2 and baseline-rmse of
// the transformation's parameter, such as an angle, scaled to [0, 1] over its range. A probe
// predicts it from the concatenation of z and z', a layer's vectors for x and T(x). The baseline is
// a constant prediction, the mean of the training samples or their most frequent class. If the
// transformation has a list of values and no single number describes a draw, as with words and
// translations, the statistics are accuracy, f1 and baseline-accuracy.
func ParameterEquivariance(s EquivarianceSettings) (procedure.Procedure, error) {
	if len(s.Hidden) == 0 {
		s.Hidden = []int{512, 256}
	}
	if err := s.Training.check(); err != nil {
		return nil, err
	}
	return &parameterEquivariance{s}, nil
}

type parameterEquivariance struct{ settings EquivarianceSettings }

func (*parameterEquivariance) Name() string { return "parameter-equivariance" }
func (*parameterEquivariance) Descriptor() measure.Descriptor {
	return ParameterEquivarianceDescriptor()
}
func (m *parameterEquivariance) Version() int           { return m.settings.Training.version(2) }
func (m *parameterEquivariance) Settings() any          { return m.settings }
func (m *parameterEquivariance) Needs() procedure.Needs { return m.settings.needs(true) }

// Skip returns why the measure does not apply to a job, or "". The parameter must be drawn for each
// sample, from a range or a list of values.
func (m *parameterEquivariance) Skip(j *procedure.Job) string {
	switch t := j.Transform; {
	case t.PerTrial && !listed(t):
		return t.Name + " is drawn once for a trial, but a probe needs a draw for each sample"
	case !ranged(t) && !listed(t):
		return t.Name + " has no parameter that varies"
	}
	return m.settings.skip(j)
}

func (m *parameterEquivariance) Work(j *procedure.Job) int64 {
	// In forward passes of one sample: those of x and T(x), and the training of the probes.
	const targets, representations = 1, 2 // the parameter; z and z'
	return 2*int64(j.Data.Len()) + m.settings.work(j, &m.settings.Representation, targets, representations)
}

func (m *parameterEquivariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		want := r.parameterTarget()
		parts := want.checkSplit(r.split)
		score := func(layer tensor.Layer) ([]measure.Score, error) { return r.parameterScores(ctx, layer, want, parts) }
		return score, r.extract(ctx, r.randomTransform(), nil)
	})
}

// parameterTarget returns parameters, or indices of listed values.
func (r *run) parameterTarget() *target {
	out := &target{name: "parameter"}
	if ranged(r.job.Transform) {
		out.value = r.parameters()
		return out
	}
	values := make([]float64, r.samples.Len())
	for i, index := range r.samples.Index {
		values[i] = float64(r.value(index))
	}
	out.setClasses(values)
	return out
}

// parameterScores trains probes on z and z' and scores them and the baseline. want is what they
// predict.
func (r *run) parameterScores(ctx context.Context, layer tensor.Layer, want *target, parts split) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, sampleTransform{}, nil) // nil: all samples
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	transformed, err := r.open(ctx, layer, r.randomTransform(), nil)
	if err != nil {
		return nil, err
	}
	defer transformed.Close()
	in := r.newInput(layer, "and "+r.randomTransform().id, clean, transformed)
	if r.training.Standardise {
		if err := in.standardise(parts.train); err != nil {
			return nil, err
		}
	}
	sets := r.newProbeSets(layer, in, want, parts, r.training.Hidden, "parameter")
	outcomes, err := r.trainProbes(ctx, sets, func(ctx context.Context, p *probeSpec, net *onnx.Model) (outcome, error) {
		test, err := r.predictions(ctx, p, net, in, parts.test)
		return outcome{test}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	const factor = "" // the target is the parameter, not a factor
	for _, d := range sets {
		out = append(out, d.scores(outcomes, factor)...)
	}
	if len(sets) > 0 {
		out = append(out, baseline(want, parts, factor))
	}
	return out, nil
}
