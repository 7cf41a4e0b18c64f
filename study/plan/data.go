package plan

import (
	"context"
	"errors"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/study/spec"
)

// Data is an opened data set of the study. A copy made for a model has the model's outputs as
// labels.
type Data struct {
	Entry  spec.Data
	Source dataset.Source
	Layout measure.Layout
	Order  []int // a keyed permutation: Order[position] is an index into the source

	Outputs    []int    // outputs of the model that are kept before the softmax; nil: all
	labels     []string // names of the model's classes; nil if unknown
	mismatch   error    // why the labels cannot be mapped to the model's outputs; nil if they can
	Unreadable *UnreadableSamples
	Redrawn    *RedrawCounts
	described  *map[int]Described // by index; filled by the first call of Describe
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
		Order: seed.Rand(studySeed, "order", spec.Name).Perm(n), Unreadable: &UnreadableSamples{n: n, data: spec.Name}, Redrawn: &RedrawCounts{}, described: new(map[int]Described)}
}

// audioInfo returns the properties of the audio that are known before it is read, or nil if the
// data are images.
func (d *Data) audioInfo(ctx context.Context) *dataset.Waveform {
	s, err := dataset.Describe(ctx, d.Source, 0)
	if err != nil {
		return nil
	}
	return s.Waveform
}

// size returns the height and width of the first readable image, in pixels. It is zero for audio,
// and if no image can be read.
func (d *Data) size(ctx context.Context) [2]int {
	if d.audioInfo(ctx) != nil {
		return [2]int{}
	}
	s, err := d.Source.At(ctx, 0, dataset.Frame{})
	if err != nil || s.Input.Rank() != 3 {
		return [2]int{}
	}
	return [2]int{s.Input.Shape[1], s.Input.Shape[2]}
}

// A Described is a sample without its input, and its position in the source.
type Described struct {
	dataset.Sample
	At int
}

// DescribeFirst returns the first n samples in the study's random order by index, without their
// inputs.
func (d *Data) DescribeFirst(ctx context.Context, n int) (map[int]Described, error) {
	if *d.described != nil {
		return *d.described, nil
	}
	return d.describe(ctx, d.Order[:min(n, len(d.Order))])
}

// Describe returns the samples of a data set by index, without their inputs.
func (d *Data) Describe(ctx context.Context) (map[int]Described, error) {
	if *d.described == nil {
		by, err := d.describe(ctx, d.Order)
		if err != nil {
			return nil, err
		}
		*d.described = by
	}
	return *d.described, nil
}

// describe returns the readable ones of some samples of the source by index.
func (d *Data) describe(ctx context.Context, of []int) (map[int]Described, error) {
	by := make(map[int]Described, len(of))
	for _, i := range of {
		s, err := dataset.Describe(ctx, d.Source, i)
		var bad *dataset.BadSample
		if err != nil && !errors.As(err, &bad) {
			return nil, err
		}
		if err == nil {
			by[s.Index] = Described{s, i}
		}
	}
	return by, nil
}
