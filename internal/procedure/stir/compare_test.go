package stir

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Compare computes STIR(b | a) of each layer of a with each layer of b on images x in memory, n x c
// x h x w, values in [0, 1], of the size of a's input. The seed determines the noise from which the
// searches start. For STIR(a | b) swap a and b.
func Compare(ctx context.Context, a, b procedure.Subject, x tensor.Tensor, s Settings, seed uint64) ([]measure.PairScore, error) {
	m, err := New(s)
	if err != nil {
		return nil, fmt.Errorf("stir: %w", err)
	}
	if x.Rank() != 4 || !slices.Equal(x.Shape[1:], a.Model.ImageShape()) {
		return nil, fmt.Errorf("stir: images have shape %v, but model %s takes n x %v", x.Shape, a.Name, a.Model.ImageShape())
	}
	source := memorySource{x}
	j := &procedure.Job{
		A: a, B: b, Key: measure.Key{Seed: seed}, Data: source,
		Progress: func(int64, string) {},
		Read: func(ctx context.Context, indices []int, f dataset.Frame) ([]dataset.Sample, error) {
			var list []dataset.Sample
			for _, i := range indices {
				sample, err := source.At(ctx, i, f)
				if err != nil {
					return nil, err
				}
				list = append(list, sample)
			}
			return list, nil
		},
	}
	for i := range a.Layers {
		for k := range b.Layers {
			j.Pairs = append(j.Pairs, [2]int{i, k})
		}
	}
	if why := m.Skip(j); why != "" {
		return nil, fmt.Errorf("stir: %s", why)
	}
	scores, err := m.Run(ctx, j)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("stir: %w", err)
	}
	return scores, err
}

// A memorySource is a source of images in memory.
type memorySource struct{ x tensor.Tensor }

func (p memorySource) Len() int            { return p.x.Shape[0] }
func (p memorySource) Classes() []string   { return nil }
func (p memorySource) Factors() []string   { return nil }
func (p memorySource) Fingerprint() string { return "" }

// At returns image i as it is, whatever the frame: x has the size of a's input, and the measure
// resizes images for b.
func (p memorySource) At(_ context.Context, i int, _ dataset.Frame) (dataset.Sample, error) {
	return dataset.Sample{Index: i, Name: fmt.Sprintf("image %d", i), Input: p.x.At(i), Label: dataset.NoLabel}, nil
}
