package probe

import (
	"context"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// quarters is the number of parts of the range, as in Figure 8 of Plachouras et al. 2025.
const quarters = 4

// Disentanglement returns the measure disentanglement. A probe, a small network or a linear map,
// learns to predict a factor from a layer's vectors. rmse-change is the increase of its RMSE when
// the test samples are transformed while the target stays the factor of the clean (untransformed)
// sample. For factors that are classes, accuracy-change is the decrease of the accuracy. There is a
// score for each quarter of the parameter's range, with its midpoint as parameter, or for each
// value of a list, and one over all test samples.
func Disentanglement(s InformativenessSettings) (procedure.Procedure, error) {
	inner, err := Informativeness(s)
	if err != nil {
		return nil, err
	}
	return &disentanglement{inner.(*informativeness).settings}, nil
}

type disentanglement struct{ settings InformativenessSettings }

func (*disentanglement) Name() string                   { return "disentanglement" }
func (*disentanglement) Descriptor() measure.Descriptor { return DisentanglementDescriptor() }
func (m *disentanglement) Version() int                 { return m.settings.Training.version(3) }
func (m *disentanglement) Settings() any                { return m.settings }
func (m *disentanglement) Needs() procedure.Needs       { return m.settings.needs(true) }

func (m *disentanglement) Skip(j *procedure.Job) string {
	return m.settings.Targets.skip(&m.settings.Representation, j)
}

func (m *disentanglement) Work(j *procedure.Job) int64 {
	s := &m.settings
	const representations = 1 // z alone
	test := int64(s.Split[2] * float64(j.Data.Len()))
	return int64(j.Data.Len()) + test + s.work(j, &s.Representation, len(s.factors(j.Data.Factors(), j.Data.Classes() != nil)), representations)
}

func (m *disentanglement) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		if err := r.extract(ctx, r.randomTransform(), r.testPositions()); err != nil {
			return nil, err
		}
		targets, err := r.targets(&s.Targets)
		return func(layer tensor.Layer) ([]measure.Score, error) { return r.disentanglementScores(ctx, layer, targets) }, err
	})
}

func (r *run) testPositions() []int {
	var out []int
	for _, i := range r.split.test {
		out = append(out, r.samples.Positions[i])
	}
	return out
}

// disentanglementScores trains on a layer's clean representation and tests on the clean and the
// transformed one.
func (r *run) disentanglementScores(ctx context.Context, layer tensor.Layer, targets []factorTarget) ([]measure.Score, error) {
	table, err := r.open(ctx, layer, sampleTransform{}, nil) // clean; nil: all samples
	if err != nil {
		return nil, err
	}
	defer table.Close()
	transformedTable, err := r.open(ctx, layer, r.randomTransform(), r.testPositions())
	if err != nil {
		return nil, err
	}
	defer transformedTable.Close()
	in, err := r.cleanInput(layer, table)
	if err != nil {
		return nil, err
	}
	transformedInput := r.newInput(layer, "moved", transformedTable) // "moved" is part of the identity of stored vectors
	transformedInput.mean, transformedInput.scale = in.mean, in.scale
	var sets []*probeSet
	for _, t := range targets {
		t.split.test = slices.DeleteFunc(slices.Clone(t.split.test), func(i int) bool { return !transformedInput.has(i) })
		sets = append(sets, r.newProbeSets(layer, in, t.target, t.split, r.training.Hidden, t.name)...)
	}
	tests := map[*target][]int{}
	for _, d := range sets {
		tests[d.target] = d.test
	}
	outcomes, err := r.trainProbes(ctx, sets, func(ctx context.Context, p *probeSpec, net *onnx.Model) (outcome, error) {
		before, err := r.predictions(ctx, p, net, in, tests[p.target])
		if err != nil {
			return nil, err
		}
		after, err := r.predictions(ctx, p, net, transformedInput, tests[p.target])
		return outcome{before, after}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range sets {
		parts := r.parameterBins(quarters)
		if len(parts) > 1 {
			parts = append(parts, parameterBin{"", func(int) bool { return true }})
		}
		for _, part := range parts {
			out = append(out, d.changeScores(outcomes, part)...)
		}
	}
	return out, nil
}

// changeScores returns rmse-change or accuracy-change for the test samples of a bin. The probes of
// a set differ in their seed.
func (d *probeSet) changeScores(outcomes map[string]outcome, part parameterBin) []measure.Score {
	var rows, samples []int
	for k, i := range d.test {
		if part.contains(i) {
			rows, samples = append(rows, k), append(samples, i)
		}
	}
	if len(rows) == 0 {
		return nil // no sample has a parameter in this bin
	}
	e := d.estimate(estimate{name: "rmse-change", n: len(rows), min: math.Inf(-1), max: math.Inf(1)})
	change := func(before, after []float64, want []float64) float64 { return rmse(after, want) - rmse(before, want) }
	if d.target.classes > 0 {
		e.name, e.min, e.max = "accuracy-change", -1, 1
		change = func(before, after []float64, want []float64) float64 {
			return accuracy(before, want) - accuracy(after, want)
		}
	}
	want := d.target.values(samples)
	e.compute = func(s int, some []int) float64 {
		o := outcomes[d.probeName(s)]
		return change(take(take(o[0], rows), some), take(take(o[1], rows), some), take(want, some))
	}
	s := e.score()
	s.Variant, s.Factor, s.Parameter = d.kind, d.target.name, part.parameter
	s.Warnings = append(s.Warnings, d.target.warnings...)
	return []measure.Score{s}
}
