package study

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/run"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// LayerScores are the scores of a measure at one layer.
type LayerScores struct {
	Measure string
	Layer   tensor.Layer // the zero Layer for measures of the prediction
	Scores  []measure.Score
}

// Measure runs measures at every layer that the model was opened with, on clean inputs and, unless
// t is nil, under t, drawn once for all samples. It returns the scores of each measure by layer,
// without layers that it does not apply to. The seed is 1.
func Measure(ctx context.Context, m *model.Model, src dataset.Source, t transform.Transform, measures ...measure.Measure) ([]LayerScores, error) {
	p, err := plan.ForMeasures(m, src, t, measures)
	if err != nil {
		return nil, err
	}
	if err := run.InMemory(ctx, p); err != nil {
		return nil, err
	}
	var out []LayerScores
	for _, c := range p.Cells { // a cell is one measure of the model
		for _, t := range c.Tasks { // a task is the measure at one layer
			out = append(out, LayerScores{c.Method.Name(), t.ScoredLayer(), t.Scored.Layers[0].Scores})
		}
	}
	return out, nil
}

// PairScores are the scores of a comparison of two layers.
type PairScores struct {
	Comparison   string
	Layer, Other tensor.Layer // of the first model, and of the second
	Scores       []measure.Score
}

// Compare compares every layer that a was opened with to every layer that b was opened with. Each
// model reads samples at its own input size; a and b may be the same. Scores are in the order of
// the layers of a, without pairs that a comparison does not apply to. The seed is 1.
func Compare(ctx context.Context, a, b *model.Model, src dataset.Source, comparisons ...measure.Comparison) ([]PairScores, error) {
	p, err := plan.ForComparisons(a, b, src, comparisons)
	if err != nil {
		return nil, err
	}
	if err := run.InMemory(ctx, p); err != nil {
		return nil, err
	}
	named := func(m *model.Model, name string) tensor.Layer {
		layers := m.Layers()
		return layers[slices.IndexFunc(layers, func(l tensor.Layer) bool { return l.Name == name })]
	}
	var out []PairScores
	for _, c := range p.Cells { // a cell is one comparison of the two models
		for _, l := range c.ScoredLayers() {
			out = append(out, PairScores{c.Method.Name(), named(a, l.Name), named(b, l.Other), l.Scores})
		}
	}
	return out, nil
}

// Cells runs every cell of a plan in memory and returns them with their scores, which keep the
// replicates of the jackknife.
func Cells(ctx context.Context, p *Plan) ([]scores.Cell, error) {
	if err := run.InMemory(ctx, p); err != nil {
		return nil, err
	}
	var out []scores.Cell
	for _, c := range p.Cells {
		cell := c.Identity()
		cell.Layers = c.ScoredLayers()
		out = append(out, cell)
	}
	return out, nil
}
