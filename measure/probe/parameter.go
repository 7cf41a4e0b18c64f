package probe

import (
	"context"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// EquivarianceSettings are those of the measures parameter-equivariance and representation-equivariance.
type EquivarianceSettings struct {
	Training
	Representation
}

// EquivarianceDefaults are the paper's.
func EquivarianceDefaults() EquivarianceSettings {
	return EquivarianceSettings{Training: defaultTraining(), Representation: Representation{Pool: "mean"}}
}

// ParameterEquivariance returns the measure parameter-equivariance: rmse, r2 and baseline-rmse of the transformation's parameter, brought to
// [0, 1] over its range, as a probe reads it from z and z' side by side; accuracy, f1 and baseline-accuracy where the values of the
// transformation are no numbers.
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
func (*parameterEquivariance) Version() int             { return 1 }
func (m *parameterEquivariance) Settings() any          { return m.settings }
func (m *parameterEquivariance) Needs() procedure.Needs { return m.settings.needs(true) }

func (m *parameterEquivariance) Skip(j *procedure.Job) string {
	switch t := j.Transform; {
	case t.PerTrial && !listed(t):
		return t.Name + " is drawn once for a trial, and a probe wants a draw for each sample"
	case !ranged(t) && !listed(t):
		return t.Name + " has no parameter that varies"
	}
	return m.settings.skip(j)
}

func (m *parameterEquivariance) Work(j *procedure.Job) int64 {
	return 2*int64(j.Data.Len()) + m.settings.work(j, &m.settings.Representation, 1, 2)
}

func (m *parameterEquivariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return layerwise(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		want := r.parameterTarget()
		parts := want.look(r.split)
		read := func(layer onnx.Layer) ([]measure.Score, error) { return r.parameterRead(ctx, layer, want, parts) }
		return read, r.extract(ctx, r.drawn(), nil)
	})
}

// parameterTarget is the number of every draw, or which value of the list it has.
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

// parameterRead trains probes on the clean and the moved representation of a layer side by side.
func (r *run) parameterRead(ctx context.Context, layer onnx.Layer, want *target, parts split) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, view{}, nil)
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	moved, err := r.open(ctx, layer, r.drawn(), nil)
	if err != nil {
		return nil, err
	}
	defer moved.Close()
	in := r.features(layer, "and "+r.drawn().id, clean, moved)
	if r.training.Standardise {
		if err := in.standardise(parts.train); err != nil {
			return nil, err
		}
	}
	readings := r.readings(layer, in, want, parts, r.training.Hidden, "parameter")
	var problems []*problem
	for _, d := range readings {
		problems = append(problems, d.problems()...)
	}
	found, err := r.solve(ctx, problems, func(ctx context.Context, p *problem, net *onnx.Model) (outcome, error) {
		test, err := r.predictions(ctx, p, net, in, parts.test)
		return outcome{test}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range readings {
		out = append(out, d.scores(found, "")...)
	}
	if len(readings) > 0 {
		out = append(out, baseline(want, parts, ""))
	}
	return out, nil
}
