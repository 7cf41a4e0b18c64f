package dataset

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/seed"
)

// A noisy source is a data set with some wrong labels.
type noisy struct {
	wrapped
	probability float64 // that a label is replaced
	seed        uint64
}

// LabelNoise returns a source in which each label is replaced with the given probability. All other
// classes are equally likely to replace it (symmetric noise). The seed and the index of a sample in
// the original source determine its label, so a sample has the same one in every subset.
func LabelNoise(src Source, probability float64, seed uint64) (Source, error) {
	switch {
	case !(probability > 0 && probability <= 1):
		return nil, fmt.Errorf("label noise: the probability is %g: it must be above 0 and at most 1", probability)
	case len(src.Classes()) < 2:
		return nil, fmt.Errorf("label noise: the samples have %d classes: two are needed", len(src.Classes()))
	}
	d := newDigest("label noise")
	d.add(src.Fingerprint(), probability, seed)
	return noisy{wrapped{src, d.String()}, probability, seed}, nil
}

func (s noisy) At(ctx context.Context, i int, f Frame) (Sample, error) {
	sample, err := s.Source.At(ctx, i, f)
	return s.relabel(sample), err
}

// describe returns sample i without its pixels or other values.
func (s noisy) describe(ctx context.Context, i int) (Sample, error) {
	sample, err := Describe(ctx, s.Source, i)
	return s.relabel(sample), err
}

// relabel replaces the label of a sample, or leaves it as it is, by a draw with s.probability.
func (s noisy) relabel(sample Sample) Sample {
	if sample.Label == NoLabel {
		return sample
	}
	r := seed.Rand(s.seed, "dataset: label noise", sample.Index)
	if r.Float64() >= s.probability {
		return sample
	}
	if k := r.IntN(len(s.Classes()) - 1); k < sample.Label {
		sample.Label = k
	} else {
		sample.Label = k + 1
	}
	return sample
}
