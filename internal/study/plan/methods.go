package plan

import (
	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/transform"
)

// newPlan returns an empty plan without a study file, with FailFast and a memory bound of 1 TiB,
// which has no effect.
func newPlan() *Plan {
	return &Plan{Study: &spec.Study{Name: "measure", Seed: 1, Trials: 1, Memory: 1 << 40}, failFast: true, Stats: &telemetry.Stats{}}
}

// ForMeasures plans measures at every layer that the model was opened with. t is drawn once for all
// samples; nil is clean only.
func ForMeasures(m *model.Model, src dataset.Source, t transform.Transform, measures []measure.Measure) (*Plan, error) {
	p := newPlan()
	view := View{} // a transformation with one value of its parameter; empty: clean
	if t != nil {
		view = View{Name: "transform", On: "input", Per: "trial", Transform: t}
	}
	d := newOpenData(spec.Data{}, src, p.Study.Seed).forModel(m.Classes(), nil)
	open := &Model{Net: m, layers: m.Layers()}
	for _, one := range measures {
		if err := p.addMeasure(open, d, view, one); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// ForComparisons plans comparisons of every layer that model a was opened with, with every layer
// that b was opened with. The models a and b may be the same.
func ForComparisons(a, b *model.Model, src dataset.Source, comparisons []measure.Comparison) (*Plan, error) {
	p := newPlan()
	d := newOpenData(spec.Data{}, src, p.Study.Seed)
	first := &Model{Entry: spec.Model{Name: "a"}, Net: a, layers: a.Layers()}
	second := first
	if b != a {
		second = &Model{Entry: spec.Model{Name: "b"}, Net: b, layers: b.Layers()}
	}
	for _, one := range comparisons {
		if err := p.addBetween(first, second, d, View{}, spec.MeasureSpec{Method: one, Pairs: spec.Pairs{Layers: measure.PairGrid}}); err != nil {
			return nil, err
		}
	}
	return p, nil
}
