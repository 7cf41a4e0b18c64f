package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/study/spec"
)

// Data is a data set of the study, opened; or that data set as one model sees it, with labels that
// are its outputs.
type Data struct {
	Entry  spec.Data
	Source dataset.Source
	Layout measure.Layout
	Order  []int // order[place] is a place in the source: a keyed permutation

	Outputs    []int // outputs of the model that stay before the softmax; nil: all
	mismatch   error // why the labels are no outputs of the model; nil: they are
	Unreadable *UnreadableSamples
	Redrawn    *RedrawCounts
	described  *map[int]dataset.Sample // by index; nil until somebody asks
}

func openData(ctx context.Context, s *spec.Study, spec spec.Data) (*Data, error) {
	src, err := s.OpenData(ctx, spec)
	if err != nil {
		return nil, err
	}
	return newOpenData(spec, src, s.Seed), nil
}

func newOpenData(spec spec.Data, src dataset.Source, studySeed uint64) *Data {
	n := src.Len()
	return &Data{Entry: spec, Source: src, Layout: measure.NewLayout(n),
		Order: seed.Rand(studySeed, "order", spec.Name).Perm(n), Unreadable: &UnreadableSamples{n: n}, Redrawn: &RedrawCounts{}, described: new(map[int]dataset.Sample)}
}

// sound is what is known of the sounds before they are read; nil where the data are images.
func (d *Data) sound(ctx context.Context) *dataset.Waveform {
	s, err := dataset.Describe(ctx, d.Source, 0)
	if err != nil {
		return nil
	}
	return s.Waveform
}

// size is the height and width of an image as it comes; zero where it cannot be read, and of
// sounds.
func (d *Data) size(ctx context.Context) [2]int {
	if d.sound(ctx) != nil {
		return [2]int{}
	}
	s, err := d.Source.At(ctx, 0, dataset.Frame{})
	if err != nil || s.Input.Rank() != 3 {
		return [2]int{}
	}
	return [2]int{s.Input.Shape[1], s.Input.Shape[2]}
}

// Describe describes the samples of a data set by their index.
func (d *Data) Describe(ctx context.Context) (map[int]dataset.Sample, error) {
	if *d.described == nil {
		by := map[int]dataset.Sample{}
		for place := range d.Source.Len() {
			s, err := dataset.Describe(ctx, d.Source, place)
			var bad *dataset.BadSample
			if err != nil && !errors.As(err, &bad) {
				return nil, err
			}
			if err == nil {
				by[s.Index] = s
			}
		}
		*d.described = by
	}
	return *d.described, nil
}

// firstReadable is a sample that can be read.
func (d *Data) firstReadable(ctx context.Context, f dataset.Frame) (sample dataset.Sample, err error) {
	for _, place := range d.Order[:min(8, len(d.Order))] { // the first may be one that cannot be read
		if sample, err = d.Source.At(ctx, place, f); err == nil {
			return sample, nil
		}
	}
	return sample, fmt.Errorf("data %s: %w", d.Entry.Name, err)
}
