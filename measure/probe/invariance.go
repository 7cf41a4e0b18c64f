package probe

import (
	"context"
	"fmt"
	"math"

	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
	"github.com/noether-ml/noether/onnx"
)

// InvarianceSettings are the settings of the measure invariance.
type InvarianceSettings struct {
	Parts int `key:"parts" json:"parts" default:"10" min:"1" doc:"number of equal parts of a range; each has a score, a point of the curve over the parameter"`
	Representation
}

// Invariance returns the measure invariance: cosine and l2, the cosine and the distance between z
// and z', for each value of the transformation or part of its range, and over all.
func Invariance(s InvarianceSettings) (procedure.Procedure, error) {
	if s.Parts < 1 {
		return nil, fmt.Errorf("parts is %d: it must be at least 1", s.Parts)
	}
	return &invariance{s}, nil
}

type invariance struct{ settings InvarianceSettings }

func (*invariance) Name() string                   { return "invariance" }
func (*invariance) Descriptor() measure.Descriptor { return InvarianceDescriptor() }
func (*invariance) Version() int                   { return 1 }
func (m *invariance) Settings() any                { return m.settings }
func (m *invariance) Needs() procedure.Needs       { return m.settings.needs(true) }

func (m *invariance) Skip(j *procedure.Job) string { return m.settings.skip(j) }

func (m *invariance) Work(j *procedure.Job) int64 {
	return int64(j.Data.Len()) * int64(1+len(j.Transform.Values))
}

func (m *invariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	s := &m.settings
	return scoreLayers(ctx, j, &s.Representation, nil, func(r *run) (layerScorer, error) {
		transforms := r.curveTransforms()
		for _, v := range transforms {
			if err := r.extract(ctx, v, nil); err != nil {
				return nil, err
			}
		}
		return func(layer onnx.Layer) ([]measure.Score, error) {
			return r.invarianceScores(ctx, layer, transforms, s.Parts)
		}, nil
	})
}

// curveTransforms returns a transformation for each value of a list, or one that draws from the
// range.
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

// invarianceScores returns the scores of a layer: one for each value of a list or part of a range,
// and one over all samples.
func (r *run) invarianceScores(ctx context.Context, layer onnx.Layer, transforms []sampleTransform, parts int) ([]measure.Score, error) {
	clean, err := r.open(ctx, layer, sampleTransform{}, nil)
	if err != nil {
		return nil, err
	}
	defer clean.Close()
	var out []measure.Score
	all := pairDistances{columns: make([][]float64, 4)}
	for v, one := range transforms {
		transformed, err := r.open(ctx, layer, one, nil)
		if err != nil {
			return nil, err
		}
		p, err := r.newPairDistances(clean, transformed)
		transformed.Close()
		if err != nil {
			return nil, err
		}
		all.add(p)
		if len(transforms) > 1 {
			out = append(out, p.scores(r.job.Transform.Values[v].Parameter, nil)...)
		}
	}
	if ranged(r.job.Transform) && len(transforms) == 1 {
		for _, part := range r.parameterBins(parts) {
			out = append(out, all.scores(part.parameter, part.contains)...)
		}
	}
	all.average(len(transforms))
	return append(out, all.scores("", nil)...), nil
}

// pairDistances holds the cosine and the distance between z and z' of each sample, and between z
// and another sample's z'.
type pairDistances struct {
	samples []int
	columns [][]float64 // cosine, l2, cosine of shuffled pairs, l2 of shuffled pairs
}

// newPairDistances compares every sample's z with its z' and with another sample's z'.
func (r *run) newPairDistances(clean, transformed *features.Table) (pairDistances, error) {
	a, b := newProbeInput("", r.samples.Places, clean), newProbeInput("", r.samples.Places, transformed)
	out := pairDistances{columns: make([][]float64, 4)}
	for i := range r.samples.Len() {
		if a.has(i) && b.has(i) {
			out.samples = append(out.samples, i)
		}
	}
	k := r.job.Key
	partner := cyclicPartners(seed.Rand(k.Seed, "probe: strangers", k.Data, k.Trial).Perm(len(out.samples)))
	z, z1, other := make([]float32, a.dim()), make([]float32, a.dim()), make([]float32, a.dim())
	for n, i := range out.samples {
		for _, err := range []error{a.row(z, i), b.row(z1, i), b.row(other, out.samples[partner[n]])} {
			if err != nil {
				return out, err
			}
		}
		for c, v := range []float64{cosine(z, z1), distance(z, z1), cosine(z, other), distance(z, other)} {
			out.columns[c] = append(out.columns[c], v)
		}
	}
	return out, nil
}

// cyclicPartners pairs each index with the next one in a permutation. With at least two indices
// none is paired with itself.
func cyclicPartners(perm []int) []int {
	out := make([]int, len(perm))
	for k, i := range perm {
		out[i] = perm[(k+1)%len(perm)]
	}
	return out
}

func distance(a, b []float32) float64 {
	var sum float64
	for i, v := range a {
		d := float64(v) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum)
}

// add adds the values for another transformation of the same samples.
func (p *pairDistances) add(q pairDistances) {
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

// average divides the sums by the number of transformations.
func (p *pairDistances) average(transforms int) {
	for _, column := range p.columns {
		for i := range column {
			column[i] /= float64(transforms)
		}
	}
}

// scores returns the means over the samples for which in reports true, or over all if in is nil.
func (p *pairDistances) scores(parameter string, in func(i int) bool) []measure.Score {
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
	for c, e := range []estimate{{name: "cosine", min: -1, max: 1}, {name: "l2", max: math.Inf(1)}} {
		e.n, e.seeds = len(rows), 1
		e.of = func(network int, samples []int) float64 {
			column := take(p.columns[c], rows)
			if network < 0 {
				column = take(p.columns[c+2], rows)
			}
			return mean(take(column, samples))
		}
		s := e.score()
		s.Parameter = parameter
		out = append(out, s)
	}
	return out
}
