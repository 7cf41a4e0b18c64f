package study

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
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
	s := &Study{Name: "measure", Seed: 1, Trials: 1, Memory: 1 << 40}
	view := View{}
	if t != nil {
		view = View{Transform: "transform", on: "input", per: "trial", law: t}
	}
	p := &Plan{Study: s, models: []*openModel{{model: m, layers: m.Layers()}}}
	d := newOpenData(Data{}, src, s.Seed).under(m.Classes())
	for _, one := range measures {
		if err := p.addMeasure(p.models[0], d, view, one); err != nil {
			return nil, err
		}
	}
	r := &runner{plan: p, accs: map[*task]accumulator{}}
	for _, pass := range passes(p.Cells, int64(s.Memory), Part{}) {
		if err := r.measurePass(ctx, pass); err != nil {
			return nil, err
		}
	}
	var out []LayerScores
	for _, c := range p.Cells {
		for _, t := range c.tasks {
			out = append(out, LayerScores{c.Method.Name(), t.target.(*siteTarget).site.Layer, t.scored.Layers[0].Scores})
		}
	}
	return out, nil
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
