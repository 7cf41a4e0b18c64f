package probe

import (
	"context"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// quarters are the parts of the range that disentanglement tells apart (Figure 8).
const quarters = 4

// Disentanglement returns the measure disentanglement: rmse-change, what the RMSE of a probe for a factor becomes more when the test samples
// are transformed while the factor that is wanted stays that of the clean sample; accuracy-change, what the accuracy becomes less, of
// factors that are classes. There is a score for each quarter of the parameter's range, named by its middle, or for each value of a list,
// and one over all.
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
func (*disentanglement) Version() int                   { return 2 }
func (m *disentanglement) Settings() any                { return m.settings }
func (m *disentanglement) Needs() procedure.Needs       { return m.settings.needs(true) }

func (m *disentanglement) Skip(j *procedure.Job) string {
	return m.settings.Targets.skip(&m.settings.Representation, j)
}

func (m *disentanglement) Work(j *procedure.Job) int64 {
	s := &m.settings
	test := int64(s.Split[2] * float64(j.Data.Len()))
	return int64(j.Data.Len()) + test + s.work(j, &s.Representation, len(s.factors(j.Data.Factors(), j.Data.Classes() != nil)), 1)
}

func (m *disentanglement) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return layerwise(ctx, j, &s.Representation, &s.Training, func(r *run) (layerScorer, error) {
		if err := r.extract(ctx, r.drawn(), r.testPlaces()); err != nil {
			return nil, err
		}
		targets, err := r.targets(&s.Targets)
		return func(layer onnx.Layer) ([]measure.Score, error) { return r.disturbed(ctx, layer, targets) }, err
	})
}

// testPlaces are the places of the test samples.
func (r *run) testPlaces() []int {
	var out []int
	for _, i := range r.split.test {
		out = append(out, r.samples.Places[i])
	}
	return out
}

// disturbed trains probes for every factor on the clean representation of a layer, and judges them on the moved one too.
func (r *run) disturbed(ctx context.Context, layer onnx.Layer, targets []factorTarget) ([]measure.Score, error) {
	table, err := r.open(ctx, layer, view{}, nil)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	moved, err := r.open(ctx, layer, r.drawn(), r.testPlaces())
	if err != nil {
		return nil, err
	}
	defer moved.Close()
	in, err := r.clean(layer, table)
	if err != nil {
		return nil, err
	}
	under := r.features(layer, "moved", moved)
	under.mean, under.scale = in.mean, in.scale
	var readings []*reading
	var problems []*problem
	for _, t := range targets {
		t.split.test = slices.DeleteFunc(slices.Clone(t.split.test), func(i int) bool { return !under.has(i) })
		for _, d := range r.readings(layer, in, t.target, t.split, r.training.Hidden, t.name) {
			readings, problems = append(readings, d), append(problems, d.problems()...)
		}
	}
	tests := map[*target][]int{}
	for _, d := range readings {
		tests[d.target] = d.test
	}
	found, err := r.solve(ctx, problems, func(ctx context.Context, p *problem, net *onnx.Model) (outcome, error) {
		before, err := r.predictions(ctx, p, net, in, tests[p.want])
		if err != nil {
			return nil, err
		}
		after, err := r.predictions(ctx, p, net, under, tests[p.want])
		return outcome{before, after}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range readings {
		parts := r.stretches(quarters)
		if len(parts) > 1 {
			parts = append(parts, stretch{"", func(int) bool { return true }})
		}
		for _, part := range parts {
			out = append(out, d.change(found, part)...)
		}
	}
	return out, nil
}

// change is what the samples of a stretch lose when they are moved.
func (d *reading) change(found map[string]outcome, part stretch) []measure.Score {
	var rows, samples []int
	for k, i := range d.test {
		if part.in(i) {
			rows, samples = append(rows, k), append(samples, i)
		}
	}
	if len(rows) == 0 {
		return nil // no draw fell there
	}
	e := estimate{name: "rmse-change", n: len(rows), seeds: len(d.seeds), min: math.Inf(-1), max: math.Inf(1)}
	more := func(before, after []float64, want []float64) float64 { return RMSE(after, want) - RMSE(before, want) }
	if d.target.classes > 0 {
		e.name, e.min, e.max = "accuracy-change", -1, 1
		more = func(before, after []float64, want []float64) float64 {
			return Accuracy(before, want) - Accuracy(after, want)
		}
	}
	want := d.target.truth(samples)
	e.of = func(s int, some []int) float64 {
		o := found[d.network(s)]
		return more(at(at(o[0], rows), some), at(at(o[1], rows), some), at(want, some))
	}
	s := e.score()
	s.Variant, s.Factor, s.Parameter = d.kind, d.target.name, part.parameter
	s.Warnings = append(s.Warnings, d.target.warnings...)
	return []measure.Score{s}
}
