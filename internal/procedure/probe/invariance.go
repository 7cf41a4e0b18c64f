package probe

import (
	"context"
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// InvarianceSettings are the settings of the measure invariance.
type InvarianceSettings struct {
	Parts int `key:"parts" json:"parts" default:"10" min:"1" doc:"number of equal parts of a range; each has a score, a point of the curve over the parameter"`
	Representation
}

// Invariance returns the measure invariance, a procedure: the cosine and the Euclidean distance
// (l2) between z and z', the vectors of a layer for a sample and for the transformed sample, for
// each value of the transformation or part of its range, and over all of them.
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
func (m *invariance) Needs() procedure.Needs       { return m.settings.needsWithPairs() }

func (m *invariance) Skip(j *procedure.Job) string { return m.settings.skip(j) }

// Work counts x, and T(x) for each value. Values has one element if there is no list of values.
func (m *invariance) Work(j *procedure.Job) int64 {
	return int64(j.Data.Len()) * int64(1+len(j.Transform.Values))
}

func (m *invariance) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	return scoreCurves(ctx, j, &m.settings.Representation, curve{
		parts: m.settings.Parts, compare: (*run).pairDistances,
		statistics: []estimate{{name: "cosine", min: -1, max: 1}, {name: "l2", max: math.Inf(1)}},
	})
}

// pairDistances compares every sample's z (in clean) with its z' (in transformed) and, for the
// null, with another sample's z'. The columns are cosine and l2, then both for these shuffled
// pairs.
func (r *run) pairDistances(_ context.Context, clean, transformed *features.Table) (sampleColumns, error) {
	a, b := newProbeInput("", r.samples.Positions, clean), newProbeInput("", r.samples.Positions, transformed)
	const columns = 4 // two statistics, and the null of each
	out := r.newSampleColumns(a, b, columns)
	k := r.job.Key
	// Each trial has other partners. r.samples.Positions are indices in the data set, and
	// out.samples indices in Positions.
	partner := cyclicPartners(seed.Rand(k.Seed, "probe: strangers", k.Data, k.Trial).Perm(len(out.samples)))
	// z, z' and the z' of the partner
	z, z1, other := make([]float32, a.dim()), make([]float32, a.dim()), make([]float32, a.dim())
	for n, i := range out.samples {
		for _, err := range []error{a.row(z, i), b.row(z1, i), b.row(other, out.samples[partner[n]])} {
			if err != nil {
				return out, err
			}
		}
		for c, v := range []float64{cosine(z, z1), tensor.Distance(z, z1), cosine(z, other), tensor.Distance(z, other)} {
			out.columns[c] = append(out.columns[c], v)
		}
	}
	return out, nil
}

// cyclicPartners pairs each index with the next in a permutation; of two or more none with itself.
func cyclicPartners(perm []int) []int {
	out := make([]int, len(perm))
	for k, i := range perm {
		out[i] = perm[(k+1)%len(perm)]
	}
	return out
}
