package dataset

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A corrupted source applies a corruption to each image, with draws of its own.
type corrupted struct {
	Source
	how         transform.Corrupt
	seed        uint64
	name        string
	fingerprint string
}

// Corrupt returns a source with the samples of src, corrupted after they were brought to the frame:
// a test set like the 75 of ImageNet-C. The draws are keyed by the seed, the name and the sample's
// index, so a sample is corrupted in the same way whenever it is read.
func Corrupt(src Source, how transform.Corrupt, seed uint64, name string) Source {
	d := newDigest("corrupted")
	d.add(src.Fingerprint(), corruptionKey(how), seed, name)
	if v := transform.Version(how); v > 1 { // version 1 has no suffix, so that older fingerprints stay valid
		d.add(v)
	}
	return corrupted{src, how, seed, name, d.String()}
}

// corruptionKey identifies a corruption in a fingerprint. The text must not change, whatever the
// type is called in Go.
func corruptionKey(c transform.Corrupt) string {
	return fmt.Sprintf("transform.Corrupt{Kind:%q, Severity:transform.Law{Low:%#v, High:%#v}}",
		c.Kind, c.Severity.Low, c.Severity.High)
}

func (c corrupted) Fingerprint() string { return c.fingerprint }
func (c corrupted) Close() error        { return Close(c.Source) }

func (c corrupted) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := c.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	if s.Input.Rank() != 3 {
		return s, fmt.Errorf("%s: corruptions are of images", s.Name)
	}
	op := c.how.Draw(seed.Rand(c.seed, "corruption", c.name, s.Index))
	damaged := tensor.New(s.Input.Shape...)
	op.Apply(damaged, s.Input)
	s.Input = damaged
	return s, nil
}

func (c corrupted) describe(ctx context.Context, i int) (Sample, error) {
	return Describe(ctx, c.Source, i)
}
