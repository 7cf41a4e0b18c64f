package features

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/state"
)

// Samples holds the indices, labels and factors (known properties such as hue) of samples, in the
// order of Positions.
type Samples struct {
	Positions []int                // in the source of the request, ascending
	Index     []int                // in the original data, before any selection or shuffle
	Label     []int                // dataset.NoLabel: no label
	Factors   map[string][]float64 // values by name
}

// Len returns the number of samples.
func (s *Samples) Len() int { return len(s.Positions) }

func (s *Samples) add(positions []int, samples []dataset.Sample) {
	for i, one := range samples {
		if s.Factors == nil {
			s.Factors = map[string][]float64{}
			for name := range one.Factors {
				s.Factors[name] = nil
			}
		}
		s.Positions, s.Index, s.Label = append(s.Positions, positions[i]), append(s.Index, one.Index), append(s.Label, one.Label)
		for name := range s.Factors {
			s.Factors[name] = append(s.Factors[name], one.Factors[name])
		}
	}
}

// The name and the version of the format that start the saved form of Samples.
const (
	samplesKind    = "samples"
	samplesVersion = 1
)

// samplesName returns the name of the Samples of a request in the store, a folder on disk. A
// request names the data, the model and its layers whose representations are wanted. The name
// includes the frame, that is, how images are resized and cropped, since factors may depend on it.
func (r *Request) samplesName() string {
	return fmt.Sprintf("samples %s %d %v", r.Data, r.N, r.Model.Frame())
}

func (s *Store) saveSamples(r *Request, found *Samples) error {
	w := state.NewWriter(samplesKind, samplesVersion)
	w.Ints(found.Positions)
	w.Ints(found.Index)
	w.Ints(found.Label)
	names := slices.Sorted(maps.Keys(found.Factors))
	w.Int(len(names))
	for _, name := range names {
		w.String(name)
		w.Floats(found.Factors[name])
	}
	return s.Save(r.samplesName(), w.Bytes())
}

// Samples returns the labels and factors of all readable samples of a request. It reads the samples
// if the store does not have them.
func (s *Store) Samples(ctx context.Context, r Request) (*Samples, error) {
	raw, err := s.Load(r.samplesName())
	if err != nil {
		return nil, err
	}
	if raw != nil {
		if found, err := decodeSamples(raw); err == nil {
			return found, nil
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	found := &Samples{}
	all := r
	all.Positions = nil // all samples
	for b := range all.read(ctx, r.Model.Frame()) {
		if b.err != nil {
			return nil, b.err
		}
		found.add(b.positions, b.samples)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return found, s.saveSamples(&r, found)
}

// decodeSamples reads what saveSamples has written. r.Close returns the first error of reading, or
// that of r.Fail.
func decodeSamples(raw []byte) (*Samples, error) {
	r, err := state.NewReader(raw, samplesKind, samplesVersion)
	if err != nil {
		return nil, err
	}
	out := &Samples{Positions: r.Ints(), Index: r.Ints(), Label: r.Ints(), Factors: map[string][]float64{}}
	n := len(out.Positions)
	if len(out.Index) != n || len(out.Label) != n {
		r.Fail(fmt.Errorf("%d positions, %d indices and %d labels", n, len(out.Index), len(out.Label)))
	}
	for range min(r.Int(), 1<<16) { // bounded, so that a damaged count does not loop for long
		name := r.String()
		values := make([]float64, n)
		r.FloatsInto(values)
		out.Factors[name] = values
	}
	return out, r.Close()
}
