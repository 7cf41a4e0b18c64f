package study

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/study/spec"
	"github.com/noether-ml/noether/transform"
)

// A LayerScores is what a measure found at one layer.
type LayerScores struct {
	Measure string
	Layer   onnx.Layer // the zero Layer for measures of the prediction
	Scores  []measure.Score
}

// Measure feeds measures at every chosen layer of a model with the samples of a source, clean and under a transformation
// drawn once (nil: clean alone), and returns their scores: for each measure its layers in order. It is Run without a study
// file and a folder, for programs that want numbers at once. Layers that a measure does not apply to are left out.
// The draws are those of seed 1.
func Measure(ctx context.Context, m *model.Model, src dataset.Source, t transform.Transform, measures ...measure.Measure) ([]LayerScores, error) {
	p := newLoosePlan()
	view := View{}
	if t != nil {
		view = View{Transform: "transform", on: "input", per: "trial", law: t}
	}
	d := newOpenData(spec.Data{}, src, p.Study.Seed).under(m.Classes())
	open := &openModel{model: m, layers: m.Layers()}
	for _, one := range measures {
		if err := p.addMeasure(open, d, view, one); err != nil {
			return nil, err
		}
	}
	if err := p.measure(ctx); err != nil {
		return nil, err
	}
	var out []LayerScores
	for _, c := range p.Cells {
		for _, t := range c.tasks {
			out = append(out, LayerScores{c.Method.Name(), t.target.(*siteTarget).site.Layer, t.scored.Layers[0].Scores})
		}
	}
	return out, nil
}

// A PairScores is what a comparison found at two layers.
type PairScores struct {
	Comparison   string
	Layer, Other onnx.Layer // of the first model, and of the second
	Scores       []measure.Score
}

// Compare feeds comparisons of every chosen layer of a with every one of b, which may be a itself, with the samples of a
// source, each model in its own frame, and returns their scores: for each comparison its pairs by the layers of a. Pairs
// that a comparison does not apply to are left out. Its draws are those of seed 1.
func Compare(ctx context.Context, a, b *model.Model, src dataset.Source, comparisons ...measure.Comparison) ([]PairScores, error) {
	p := newLoosePlan()
	d := newOpenData(spec.Data{}, src, p.Study.Seed)
	first := &openModel{spec: spec.Model{Name: "a"}, model: a, layers: a.Layers()}
	second := first
	if b != a {
		second = &openModel{spec: spec.Model{Name: "b"}, model: b, layers: b.Layers()}
	}
	for _, one := range comparisons {
		if err := p.addBetween(first, second, d, View{}, spec.MeasureSpec{Method: one}); err != nil {
			return nil, err
		}
	}
	if err := p.measure(ctx); err != nil {
		return nil, err
	}
	named := func(m *openModel, name string) onnx.Layer {
		return m.layers[slices.IndexFunc(m.layers, func(l onnx.Layer) bool { return l.Name == name })]
	}
	var out []PairScores
	for _, c := range p.Cells {
		for _, l := range c.layers() {
			out = append(out, PairScores{c.Method.Name(), named(first, l.Name), named(second, l.Other), l.Scores})
		}
	}
	return out, nil
}

// newLoosePlan is a plan without a study file: it ends at what fails, and bounds no memory to speak of.
func newLoosePlan() *Plan {
	return &Plan{Study: &spec.Study{Name: "measure", Seed: 1, Trials: 1, Memory: 1 << 40}, failFast: true, stats: &Stats{}}
}

// measure runs every cell of a plan without keeping anything in a folder.
func (p *Plan) measure(ctx context.Context) error {
	r := &runner{plan: p, o: Options{FailFast: true}, log: newLogger(nil), stats: p.stats, accs: map[*task]accumulator{}}
	for _, pass := range passes(p.Cells, bound{int64(p.Study.Memory), r.o.cores()}, Part{}) {
		if err := r.measurePass(ctx, pass); err != nil {
			return err
		}
	}
	return nil
}

// measurePass runs a pass that nothing is saved of.
func (r *runner) measurePass(ctx context.Context, p *pass) error {
	f, err := r.newFeeder(p)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.run(ctx, func(int) error { return ctx.Err() }); err != nil {
		return err
	}
	for _, t := range p.all() {
		if t.scored, err = t.compute(r.accs[t]); err != nil {
			return err
		}
	}
	return nil
}
