package probe

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// RepresentationSettings are the settings of representation-equivariance.
type RepresentationSettings struct {
	EquivarianceSettings
	Codes bool `key:"codes" json:"codes,omitzero" doc:"the values of a layer are discrete codes, such as the indices of a codebook: the probe classifies each"`
}

// Bounds of what a probe of codes reads: the codes, and the components of their indicators.
const (
	maxCodebook  = 4096
	maxCodeWidth = 1 << 16
)

// codebook returns the distinct codes in the tables, ascending. Values that are no whole numbers,
// and too many codes, are an error.
func codebook(tables ...*features.Table) ([]float32, error) {
	seen := map[float32]bool{}
	for _, t := range tables {
		row := make([]float32, t.Dim)
		for i := range t.Len() {
			if err := t.Row(row, i); err != nil {
				return nil, err
			}
			for _, v := range row {
				if v != float32(math.Round(float64(v))) || math.IsInf(float64(v), 0) {
					return nil, fmt.Errorf("it has the value %g, which is no code: codes are whole numbers, of a layer that is not pooled (pool: flatten)", v)
				}
				seen[v] = true
			}
			if len(seen) > maxCodebook || len(seen)*t.Dim > maxCodeWidth {
				return nil, fmt.Errorf("it has at least %d codes at %d positions: at most %d, and %d of codes times positions, are possible", len(seen), t.Dim, maxCodebook, maxCodeWidth)
			}
		}
	}
	var out []float32
	for v := range seen {
		out = append(out, v)
	}
	slices.Sort(out)
	return out, nil
}

// codes returns the index in the codebook of the code at each position of a sample.
func (f *probeInput) codes(i int) ([]int, error) {
	raw := *f
	raw.codebook, raw.condition = nil, nil
	row := make([]float32, raw.dim())
	if err := raw.row(row, i); err != nil {
		return nil, err
	}
	out := make([]int, len(row))
	for k, v := range row {
		out[k], _ = slices.BinarySearch(f.codebook, v)
	}
	return out, nil
}

// indicators sets dst to a 1 for the code of each position, among zeros for the others.
func (f *probeInput) indicators(dst []float32, i int) error {
	codes, err := f.codes(i)
	if err != nil {
		return err
	}
	clear(dst)
	for k, c := range codes {
		dst[k*len(f.codebook)+c] = 1
	}
	return nil
}

// asPositions reshapes the output of a network of codes to b x codes x positions x 1, of which the
// loss takes the softmax over the codes.
func asPositions(net *onnx.Model, codes, positions int) (*onnx.Model, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, net.Inputs()[0].Sizes()[1])
	y := b.Scope("codes").Include(net, map[string]onnx.Value{"x": x})[0]
	b.Output("y", b.Reshape(y, -1, codes, positions, 1))
	return b.Model()
}

// discreteScores trains probes to predict the codes of z' from those of z, and scores the fraction of
// codes that they predict, that of codes that do not change, and that of the most frequent code of
// each position. in and to hold the codes.
func (r *run) discreteScores(ctx context.Context, sets []*probeSet, in, to *probeInput) ([]measure.Score, error) {
	test := r.split.test
	outcomes, err := r.trainProbes(ctx, sets, func(ctx context.Context, _ *probeSpec, net *onnx.Model) (outcome, error) {
		right := make([]float64, len(test))
		err := r.predict(ctx, net, in, test, func(k int, y []float32) error {
			want, err := to.codes(test[k])
			if err != nil {
				return err
			}
			right[k] = equalFraction(mostLikely(y, len(want)), want)
			return nil
		})
		return outcome{right}, err
	})
	if err != nil {
		return nil, err
	}
	var out []measure.Score
	for _, d := range sets {
		e := estimate{name: "accuracy", n: len(test), max: 1, compute: func(s int, samples []int) float64 {
			return mean(take(outcomes[d.probeName(s)][0], samples))
		}}
		s := d.estimate(e).score()
		s.Variant = d.kind
		out = append(out, s)
	}
	frequent, err := r.mostFrequentCodes(to)
	if err != nil {
		return nil, err
	}
	unchanged, constant := make([]float64, len(test)), make([]float64, len(test))
	for k, i := range test {
		before, err := in.codes(i)
		if err != nil {
			return nil, err
		}
		after, err := to.codes(i)
		if err != nil {
			return nil, err
		}
		unchanged[k], constant[k] = equalFraction(before, after), equalFraction(frequent, after)
	}
	plain := func(name string, values []float64) measure.Score {
		return estimate{name: name, n: len(test), seeds: 1, noNull: true, max: 1, compute: func(_ int, samples []int) float64 { return mean(take(values, samples)) }}.score()
	}
	return append(out, plain("identity-accuracy", unchanged), plain("baseline-accuracy", constant)), nil
}

// mostFrequentCodes returns the most frequent code of each position in the training samples.
func (r *run) mostFrequentCodes(to *probeInput) ([]int, error) {
	var counts tensor.Tensor // positions x codes
	for _, i := range r.split.train {
		codes, err := to.codes(i)
		if err != nil {
			return nil, err
		}
		if counts.Data == nil {
			counts = tensor.New(len(codes), len(to.codebook))
		}
		for k, c := range codes {
			counts.At(k).Data[c]++
		}
	}
	out := make([]int, counts.Shape[0])
	for k := range out {
		row := counts.At(k).Data
		out[k] = slices.Index(row, slices.Max(row))
	}
	return out, nil
}

// mostLikely returns the index of the largest of the values of each position; y is codes x positions.
func mostLikely(y []float32, positions int) []int {
	out := make([]int, positions)
	for c := range len(y) / positions {
		for k := range out {
			if y[c*positions+k] > y[out[k]*positions+k] {
				out[k] = c
			}
		}
	}
	return out
}

func equalFraction(a, b []int) float64 {
	n := 0
	for k := range a {
		if a[k] == b[k] {
			n++
		}
	}
	return float64(n) / float64(len(a))
}
