package probe

import (
	"context"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A curve describes a measure of pooled vectors (activations of a layer, averaged over positions or
// pooled otherwise) that needs no training, such as invariance, as a function of the
// transformation's parameter. Clean vectors are of samples that are not transformed. It scores each
// value of the transformation if there are several, or each part of its range, and all of them
// together. A score is a mean over samples.
type curve struct {
	parts      int        // number of parts into which a range is divided
	statistics []estimate // names and ranges of the statistics, from which scores are computed
	// compare computes a column for each statistic, then for each null: one value for each sample.
	compare func(r *run, ctx context.Context, clean, transformed *features.Table) (sampleColumns, error)
}

func scoreCurves(ctx context.Context, j *procedure.Job, rep *Representation, c curve) ([]measure.PairScore, error) {
	return scoreLayers(ctx, j, rep, nil, func(r *run) (layerScorer, error) {
		transforms := r.curveTransforms()
		for _, v := range transforms {
			if err := r.extract(ctx, v, nil); err != nil {
				return nil, err
			}
		}
		return func(layer tensor.Layer) ([]measure.Score, error) {
			return r.curveScores(ctx, layer, transforms, c)
		}, nil
	})
}

func (r *run) curveTransforms() []sampleTransform {
	if !listed(r.job.Transform) {
		return []sampleTransform{r.randomTransform()}
	}
	var out []sampleTransform
	for v := range r.job.Transform.Values {
		out = append(out, r.valueTransform(v))
	}
	return out
}

func (r *run) curveScores(ctx context.Context, layer tensor.Layer, transforms []sampleTransform, c curve) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, sampleTransform{}, nil) // nil: all samples
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	var out []measure.Score
	sums := sampleColumns{columns: make([][]float64, 2*len(c.statistics))}
	for v, t := range transforms {
		transformed, err := r.open(ctx, layer, t, nil)
		if err != nil {
			return nil, err
		}
		p, err := c.compare(r, ctx, clean, transformed)
		transformed.Close()
		if err != nil {
			return nil, err
		}
		sums.add(p)
		if len(transforms) > 1 {
			out = append(out, p.scores(c.statistics, r.job.Transform.Values[v].Parameter, nil)...)
		}
	}
	if ranged(r.job.Transform) && len(transforms) == 1 {
		for _, part := range r.parameterBins(c.parts) {
			out = append(out, sums.scores(c.statistics, part.parameter, part.contains)...)
		}
	}
	for _, column := range sums.columns {
		for i := range column {
			column[i] /= float64(len(transforms))
		}
	}
	return append(out, sums.scores(c.statistics, "", nil)...), nil // over all samples and values
}

// sampleColumns holds a column for each statistic, then for each null, with a value for each
// sample.
type sampleColumns struct {
	samples []int       // indices of samples in the run
	columns [][]float64 // each has a value for each of samples
}

// newSampleColumns returns empty columns for the samples with vectors in both a and b.
func (r *run) newSampleColumns(a, b *probeInput, columns int) sampleColumns {
	out := sampleColumns{columns: make([][]float64, columns)}
	for i := range r.samples.Len() {
		if a.has(i) && b.has(i) {
			out.samples = append(out.samples, i)
		}
	}
	return out
}

func (p *sampleColumns) add(q sampleColumns) {
	if p.samples == nil {
		p.samples = q.samples
		for c := range p.columns {
			p.columns[c] = make([]float64, len(q.samples))
		}
	}
	for c := range p.columns {
		for i, v := range q.columns[c] {
			p.columns[c][i] += v
		}
	}
}

// scores returns means over the samples for which in returns true, or over all if in is nil.
func (p *sampleColumns) scores(statistics []estimate, parameter string, in func(i int) bool) []measure.Score {
	var rows []int
	for n, i := range p.samples {
		if in == nil || in(i) {
			rows = append(rows, n)
		}
	}
	if len(rows) == 0 {
		return nil // no sample has a parameter in this part of the range
	}
	var out []measure.Score
	for c, e := range statistics {
		e.n, e.seeds = len(rows), 1
		// Network 0 stands for the statistic, -1 for its null.
		e.compute = func(network int, samples []int) float64 {
			column := take(p.columns[c], rows)
			if network < 0 {
				column = take(p.columns[c+len(statistics)], rows)
			}
			return mean(take(column, samples))
		}
		s := e.score()
		s.Parameter = parameter
		out = append(out, s)
	}
	return out
}
