package dataset

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// corrupted is a source whose images were damaged, each in its own way.
type corrupted struct {
	Source
	how         transform.Corrupt
	seed        uint64
	name        string
	fingerprint string
}

// Corrupt returns a source whose samples are those of src, damaged after they were framed: a test set of its own, such as
// the 75 of ImageNet-C are. The draws are keyed by the seed, the name and the sample's index, so that a sample is damaged in the
// same way whenever it is read; whatever is measured on it comes on top.
func Corrupt(src Source, how transform.Corrupt, seed uint64, name string) Source {
	d := newDigest("corrupted")
	d.add(src.Fingerprint(), corruptionKey(how), seed, name)
	if v := transform.Version(how); v > 1 { // fingerprints from before there were versions stay as they are
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
