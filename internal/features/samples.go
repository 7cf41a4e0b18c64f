package features

import (
	"context"
	"fmt"

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

// Code writes or reads the samples.
func (s *Samples) Code(c *state.Codec) {
	c.Values(&s.Positions, &s.Index, &s.Label)
	n := len(s.Positions)
	c.Check(len(s.Index) == n && len(s.Label) == n, "%d positions, %d indices and %d labels", n,
		len(s.Index), len(s.Label))
	state.Map(c, s.Factors, 1<<16, func(values *[]float64) {
		c.Values(values)
		c.Check(len(*values) == n, "%d factors of %d samples", len(*values), n)
	})
}

func (s *Store) saveSamples(r *Request, found *Samples) error {
	raw, err := state.Marshal(samplesKind, samplesVersion, found.Code)
	if err != nil {
		return err
	}
	return s.Save(r.samplesName(), raw)
}

// Samples returns the labels and factors of all readable samples of a request. It reads the samples
// if the store does not have them.
func (s *Store) Samples(ctx context.Context, r Request) (*Samples, error) {
	raw, err := s.Load(r.samplesName())
	if err != nil {
		return nil, err
	}
	if raw != nil {
		found := &Samples{Factors: map[string][]float64{}}
		if state.Unmarshal(raw, samplesKind, samplesVersion, found.Code) == nil {
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
