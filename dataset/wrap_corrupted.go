package dataset

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A corrupted source applies a corruption, such as noise, blur or fog, to each image. The seed, the
// name and the sample's index determine the random numbers.
type corrupted struct {
	wrapped
	corruption transform.Corrupt
	seed       uint64
	name       string
}

// Corrupt returns a source with the samples of src, corrupted after they are brought to the Frame.
// At returns an error for samples that are not images. The result is a test set like one of
// ImageNet-C, which has 75: 15 corruptions at 5 severities. The seed, the name and the sample's
// index determine the random numbers, so a sample is corrupted in the same way whenever it is read.
func Corrupt(src Source, corruption transform.Corrupt, seed uint64, name string) Source {
	d := newDigest("corrupted")
	d.add(src.Fingerprint(), corruptionKey(corruption), seed, name)
	// Older fingerprints, of version 1, have no version.
	if v := transform.Version(corruption); v > 1 {
		d.add(v)
	}
	return corrupted{wrapped{src, d.String()}, corruption, seed, name}
}

// corruptionKey identifies a corruption in a fingerprint. The text must not change, whatever the
// type is called in Go.
func corruptionKey(c transform.Corrupt) string {
	return fmt.Sprintf("transform.Corrupt{Kind:%q, Severity:transform.Law{Low:%#v, High:%#v}}",
		c.Kind, c.Severity.Low, c.Severity.High)
}

func (c corrupted) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := c.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	if s.Input.Rank() != 3 {
		return s, fmt.Errorf("%s: corruptions apply to images only", s.Name)
	}
	op := c.corruption.Draw(seed.Rand(c.seed, "corruption", c.name, s.Index))
	output := tensor.New(s.Input.Shape...)
	op.Apply(output, s.Input)
	s.Input = output
	return s, nil
}
