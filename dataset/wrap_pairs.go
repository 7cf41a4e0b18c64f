package dataset

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/plural"
)

// Pairs is a source of ready-made pairs: each sample of one source with its transformed version
// from another. A study with such pairs needs no transformation.
type Pairs struct {
	Source      // the clean samples
	transformed Source
	partner     []int // index in transformed of the partner of each clean sample
	fingerprint string
}

// Pair matches each sample of clean with one of transformed. by is "row", sample i with sample i,
// or "name", samples whose names are equal apart from their file extensions; "" is "name" for two
// folders and "row" otherwise. A sample without a partner is an error. Names, labels and factors
// are those of clean.
func Pair(ctx context.Context, clean, transformed Source, by string) (*Pairs, error) {
	partner, err := match(ctx, clean, transformed, by)
	if err == nil {
		err = checkArrays(clean, transformed)
	}
	if err != nil {
		return nil, fmt.Errorf("pairing: %w", err)
	}
	d := newDigest("pairs")
	d.add(clean.Fingerprint(), transformed.Fingerprint(), partner)
	return &Pairs{clean, transformed, partner, d.String()}, nil
}

// checkArrays returns an error if the ready-made inputs of the two sources (see RawArrays: arrays
// that a model takes as they are, such as token ids) differ in name or shape, or if only one source
// has such inputs.
func checkArrays(clean, transformed Source) error {
	a, b := arraysOf(clean), arraysOf(transformed)
	if !slices.EqualFunc(a, b, Array.Equal) {
		return fmt.Errorf("the clean samples are %s, and the transformed samples %s", ArraysText(a), ArraysText(b))
	}
	return nil
}

// match returns the index in transformed of the partner of each clean sample.
func match(ctx context.Context, clean, transformed Source, by string) ([]int, error) {
	if by == "" {
		by = "row"
		_, a := clean.(*Folder)
		if _, b := transformed.(*Folder); a && b {
			by = "name"
		}
	}
	switch by {
	case "row":
		if clean.Len() != transformed.Len() {
			return nil, fmt.Errorf("%d clean and %d transformed samples do not match row by row", clean.Len(), transformed.Len())
		}
		return Indices(clean.Len()), nil
	case "name":
		return matchNames(ctx, clean, transformed)
	}
	return nil, fmt.Errorf("unknown by %q: use name or row", by)
}

func matchNames(ctx context.Context, clean, transformed Source) ([]int, error) {
	names, err := stems(ctx, clean)
	if err != nil {
		return nil, err
	}
	others, err := stems(ctx, transformed)
	if err != nil {
		return nil, err
	}
	indices := make(map[string]int, len(others))
	for i, n := range others {
		if before, twice := indices[n]; twice {
			return nil, fmt.Errorf("transformed samples %d and %d are both called %s", before, i, n)
		}
		indices[n] = i
	}
	partner := make([]int, len(names))
	for i, n := range names {
		j, ok := indices[n]
		if !ok {
			return nil, fmt.Errorf("clean sample %s has no transformed sample of the same name", n)
		}
		partner[i] = j
	}
	if used := slices.Compact(slices.Sorted(slices.Values(partner))); len(used) < len(others) {
		return nil, fmt.Errorf("no clean sample has the name of %s", plural.Of(len(others)-len(used), "transformed sample"))
	}
	return partner, nil
}

// stems returns the names of all samples, without file extensions.
func stems(ctx context.Context, src Source) ([]string, error) {
	names := make([]string, src.Len())
	for i := range names {
		s, err := Describe(ctx, src, i)
		if err != nil {
			return nil, err
		}
		names[i] = strings.TrimSuffix(s.Name, path.Ext(s.Name))
	}
	return names, nil
}

// Fingerprint returns a hash of the fingerprints of both sources and of the matching.
func (p *Pairs) Fingerprint() string { return p.fingerprint }
func (p *Pairs) unwrap() Source      { return p.Source }
func (p *Pairs) Close() error        { return errors.Join(Close(p.Source), Close(p.transformed)) }

func (p *Pairs) At(ctx context.Context, i int, f Frame) (Sample, error) {
	s, err := p.Source.At(ctx, i, f)
	if err != nil {
		return s, err
	}
	other, err := p.transformed.At(ctx, p.partner[i], f)
	if err != nil {
		return s, err
	}
	if !slices.Equal(s.Input.Shape, other.Input.Shape) {
		return s, &BadSample{Name: s.Name, Err: fmt.Errorf("its shape is %v, and that of the transformed sample %v: set a size", s.Input.Shape, other.Input.Shape)}
	}
	s.Transformed = &other.Input
	return s, nil
}

// describe returns clean sample i without its input, as Describe does.
func (p *Pairs) describe(ctx context.Context, i int) (Sample, error) {
	return Describe(ctx, p.Source, i)
}
