package study

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/study/spec"
)

// openData is a data set of the study, opened; or that data set as one model sees it, with labels that are its outputs.
type openData struct {
	spec   spec.Data
	source dataset.Source
	layout measure.Layout
	order  []int // order[place] is a place in the source: a keyed permutation

	keep       []int // outputs of the model that stay before the softmax; nil: all
	mismatch   error // why the labels are no outputs of the model; nil: they are
	unreadable *unreadable
	redrawn    *redrawn
	described  *map[int]dataset.Sample // by index; nil until somebody asks
}

func openStudyData(ctx context.Context, s *spec.Study, spec spec.Data) (*openData, error) {
	src, err := s.OpenData(ctx, spec)
	if err != nil {
		return nil, err
	}
	return newOpenData(spec, src, s.Seed), nil
}

func newOpenData(spec spec.Data, src dataset.Source, studySeed uint64) *openData {
	n := src.Len()
	return &openData{spec: spec, source: src, layout: measure.NewLayout(n),
		order: seed.Rand(studySeed, "order", spec.Name).Perm(n), unreadable: &unreadable{n: n}, redrawn: &redrawn{}, described: new(map[int]dataset.Sample)}
}

// sound is what is known of the sounds before they are read; nil where the data are images.
func (d *openData) sound(ctx context.Context) *dataset.Waveform {
	s, err := dataset.Describe(ctx, d.source, 0)
	if err != nil {
		return nil
	}
	return s.Waveform
}

// size is the height and width of an image as it comes; zero where it cannot be read, and of sounds.
func (d *openData) size(ctx context.Context) [2]int {
	if d.sound(ctx) != nil {
		return [2]int{}
	}
	s, err := d.source.At(ctx, 0, dataset.Frame{})
	if err != nil || s.Input.Rank() != 3 {
		return [2]int{}
	}
	return [2]int{s.Input.Shape[1], s.Input.Shape[2]}
}
