package probe

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
)

// RetrievalSettings are the settings of the measure retrieval.
type RetrievalSettings struct {
	Parts int `key:"parts" json:"parts" default:"10" min:"1" doc:"number of equal parts of a range; each has a score, a point of the curve over the parameter"`
	Representation
}

// Retrieval returns the measure retrieval: recall-1, recall-10 and mean-reciprocal-rank of a
// sample's own clean vector, with all ordered by their cosine with the transformed one, for each
// value or part of the range, and over all. Parts below 1 is an error.
func Retrieval(s RetrievalSettings) (procedure.Procedure, error) {
	if s.Parts < 1 {
		return nil, fmt.Errorf("parts is %d: it must be at least 1", s.Parts)
	}
	return &retrieval{s}, nil
}

// retrieval is a procedure: a measure that works in steps on samples.
type retrieval struct{ settings RetrievalSettings }

func (*retrieval) Name() string                   { return "retrieval" }
func (*retrieval) Descriptor() measure.Descriptor { return RetrievalDescriptor() }
func (*retrieval) Version() int                   { return 1 }
func (m *retrieval) Settings() any                { return m.settings }
func (m *retrieval) Needs() procedure.Needs       { return m.settings.needsWithPairs() }

func (m *retrieval) Skip(j *procedure.Job) string { return m.settings.skip(j) }

// Work counts, per sample, one forward pass clean, and one for each value.
func (m *retrieval) Work(j *procedure.Job) int64 {
	return int64(j.Data.Len()) * int64(1+len(j.Transform.Values))
}

func (m *retrieval) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	return scoreCurves(ctx, j, &m.settings.Representation, curve{
		parts: m.settings.Parts, compare: (*run).retrieve,
		statistics: []estimate{{name: "recall-1", max: 1}, {name: "recall-10", max: 1}, {name: "mean-reciprocal-rank", max: 1}},
	})
}

// retrieve returns columns of the three statistics, then of their expected values in random order.
func (r *run) retrieve(ctx context.Context, clean, transformed *features.Table) (sampleColumns, error) {
	a, b := newProbeInput("", r.samples.Positions, clean), newProbeInput("", r.samples.Positions, transformed)
	a.unit, b.unit = true, true
	const columns = 6 // three statistics, and the null of each
	out := r.newSampleColumns(a, b, columns)
	ranks, err := rankSamples(ctx, a, b, out.samples, r.job.Memory)
	if err != nil {
		return out, err
	}
	n := len(out.samples)
	harmonic := newHarmonic(n)
	chance := rank{tied: n}
	for _, k := range ranks {
		for c, v := range []float64{
			k.recall(1), k.recall(10), k.reciprocal(harmonic),
			chance.recall(1), chance.recall(10), chance.reciprocal(harmonic),
		} {
			out.columns[c] = append(out.columns[c], v)
		}
	}
	return out, nil
}

// A rank is the place of a sample's own clean vector by descending cosine. better counts vectors
// with a larger cosine, tied those with the same, its own among them, in random order.
type rank struct{ better, tied int }

// recall returns the probability that the sample's own vector is among the first k.
func (r rank) recall(k int) float64 {
	return float64(min(max(k-r.better, 0), r.tied)) / float64(r.tied)
}

// reciprocal returns the expected 1 / place, counted from 1, with the result of newHarmonic.
func (r rank) reciprocal(harmonic []float64) float64 {
	return (harmonic[r.better+r.tied] - harmonic[r.better]) / float64(r.tied)
}

func newHarmonic(n int) []float64 {
	out := make([]float64, n+1)
	for k := 1; k <= n; k++ {
		out[k] = out[k-1] + 1/float64(k)
	}
	return out
}

const (
	// Cosines are computed in float32.
	tieTolerance = 1e-6
	// rankColumns candidates and rankRows queries are compared at once.
	rankColumns, rankRows = 1024, 256
)

// rankSamples returns the rank of each sample's own candidate by cosine with its query. Vectors
// have length 1 or 0. Queries are read in blocks of at most a quarter of memory (in bytes; 0: no
// bound) and at least rankRows; the candidates are read once for each block.
func rankSamples(ctx context.Context, candidates, queries *probeInput, samples []int, memory int64) ([]rank, error) {
	d := candidates.dim()
	blockSize := len(samples)
	if memory > 0 {
		blockSize = min(blockSize, max(rankRows, int(memory/4/(4*int64(d))))) // a query has 4 d bytes
	}
	q, c := newMatrix(blockSize, d), newMatrix(min(rankColumns, len(samples)), d)
	products := newMatrix(min(rankRows, blockSize), c.Rows)
	ownCosine, ranks := make([]float32, blockSize), make([]rank, 0, len(samples))
	for from := 0; from < len(samples); from += blockSize {
		block := samples[from:min(from+blockSize, len(samples))]
		if err := readRows(q, queries, block); err != nil {
			return nil, err
		}
		if err := ownCosines(ownCosine, q, candidates, block); err != nil {
			return nil, err
		}
		counts := make([]rank, len(block))
		for at := 0; at < len(samples); at += c.Rows {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			some := samples[at:min(at+c.Rows, len(samples))]
			if err := readRows(c, candidates, some); err != nil {
				return nil, err
			}
			for row := 0; row < len(block); row += products.Rows {
				end := min(row+products.Rows, len(block))
				s := blas32.General{Rows: end - row, Cols: len(some), Stride: products.Stride, Data: products.Data}
				blas32.Gemm(blas.NoTrans, blas.Trans, 1, part(q, row, end), part(c, 0, len(some)), 0, s)
				for i := row; i < end; i++ {
					counts[i].count(s.Data[(i-row)*s.Stride:][:s.Cols], ownCosine[i], from+i-at)
				}
			}
		}
		ranks = append(ranks, counts...)
	}
	return ranks, nil
}

// count counts better and tied candidates. own is the cosine of the sample's own candidate, self
// its index in cosines, which may be out of range.
func (r *rank) count(cosines []float32, own float32, self int) {
	above, below := own+tieTolerance, own-tieTolerance
	for j, v := range cosines {
		switch {
		case j == self:
			r.tied++
		case v > above:
			r.better++
		case v >= below:
			r.tied++
		}
	}
}

func newMatrix(rows, columns int) blas32.General {
	return blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: make([]float32, rows*columns)}
}

func part(m blas32.General, from, to int) blas32.General {
	return blas32.General{Rows: to - from, Cols: m.Cols, Stride: m.Stride, Data: m.Data[from*m.Stride : to*m.Stride]}
}

func readRows(m blas32.General, in *probeInput, samples []int) error {
	for k, i := range samples {
		if err := in.row(m.Data[k*m.Stride:(k+1)*m.Stride], i); err != nil {
			return err
		}
	}
	return nil
}

// own[k] becomes the cosine of query k with its own candidate.
func ownCosines(own []float32, queries blas32.General, candidates *probeInput, samples []int) error {
	row := make([]float32, queries.Cols)
	for k, i := range samples {
		if err := candidates.row(row, i); err != nil {
			return err
		}
		var sum float64
		for j, v := range queries.Data[k*queries.Stride : (k+1)*queries.Stride] {
			sum += float64(v) * float64(row[j])
		}
		own[k] = float32(sum)
	}
	return nil
}
