package dataset

import (
	"context"
	"io"

	"github.com/noether-ml/noether/tensor"
)

// A Describer is a Source that also knows the name, label and factors of its samples without
// reading them.
type Describer interface {
	// Describe returns sample i without Input and Transformed.
	Describe(i int) Sample
}

// A contextDescriber is a source that wraps other sources. Its describe reads a sample only if the
// wrapped source is not a Describer, or if factors are computed from the sample.
type contextDescriber interface {
	describe(ctx context.Context, i int) (Sample, error)
}

// Close closes the open files of a source, including those of a source that it wraps.
func Close(src Source) error {
	if c, ok := src.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Describe returns sample i of any source without Input and Transformed. It reads the sample only
// if neither the source nor a source that it wraps is a Describer, or if factors are computed from
// the sample (ComputeFactors).
func Describe(ctx context.Context, src Source, i int) (Sample, error) {
	switch src := src.(type) {
	case Describer:
		return src.Describe(i), nil
	case contextDescriber:
		return src.describe(ctx, i)
	}
	s, err := src.At(ctx, i, Frame{}) // as stored: neither resized nor resampled
	s.Input, s.Transformed = tensor.Tensor{}, nil
	return s, err
}
