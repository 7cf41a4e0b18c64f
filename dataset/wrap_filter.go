package dataset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A wrapper is a source made of one other source: a selection of its samples, or these with other
// labels, corrupted, with computed factors or paired with transformed samples.
type wrapper interface{ unwrap() Source }

// wrapped is the common part of wrappers that keep the indices of the samples.
type wrapped struct {
	Source
	fingerprint string
}

func (w wrapped) Fingerprint() string    { return w.fingerprint }
func (w wrapped) Close() error           { return Close(w.Source) }
func (w wrapped) unwrap() Source         { return w.Source }
func (w wrapped) amounts() []float64     { return Amounts(w.Source) }
func (w wrapped) trajectory(i int) []int { return Trajectory(w.Source, i) }

func (w wrapped) describe(ctx context.Context, i int) (Sample, error) {
	return Describe(ctx, w.Source, i)
}

// find returns src, or the first source that it wraps, as a T.
func find[T any](src Source) (found T, ok bool) {
	for {
		if found, ok := src.(T); ok {
			return found, true
		}
		w, ok := src.(wrapper)
		if !ok {
			return found, false
		}
		src = w.unwrap()
	}
}

// Categories returns the names of the values of a categorical factor, such as a speaker; a sample's
// factor is an index into this list. It returns nil for a numeric factor.
func Categories(src Source, factor string) []string {
	if s, ok := find[interface{ factorCategories(string) []string }](src); ok {
		return s.factorCategories(factor)
	}
	return nil
}

// factorCategories returns the Categories of a list of files, of images or audio.
func (l *fileList) factorCategories(factor string) []string {
	return slices.Clone(l.categories[factor])
}

// Notes returns sentences on what a source left out when it was opened, and on labels that are
// missing.
func Notes(src Source) []string {
	if s, ok := find[interface{ Notes() []string }](src); ok {
		return s.Notes()
	}
	return nil
}

// A Condition selects values of a factor: those from Low to High, both included, or, if Values is
// not nil, those in it: names of categories or, if the factor has none, numbers.
type Condition struct {
	Low, High float64
	Values    []string
}

// Where returns the samples whose factors meet all conditions, in the order of the source. The keys
// of conditions are names of factors. The name "label" stands for the label: Low and High bound its
// number, and Values are names of classes. A sample without the factor or label does not meet the
// condition. It is an error if the source does not have a factor or a named category. Where calls
// Describe for every sample, which may have to read it.
func Where(ctx context.Context, src Source, conditions map[string]Condition) (Source, error) {
	var tests []func(Sample) bool
	for factor, c := range conditions {
		test, err := c.test(src, factor)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	var indices []int
	for i := range src.Len() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := Describe(ctx, src, i)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tests, func(test func(Sample) bool) bool { return !test(s) }) {
			indices = append(indices, i)
		}
	}
	return newSubset(src, indices), nil
}

// test returns a function that reports whether a sample meets the condition on a factor.
func (c Condition) test(src Source, factor string) (func(Sample) bool, error) {
	names := Categories(src, factor)
	value := func(s Sample) (float64, bool) { v, ok := s.Factors[factor]; return v, ok }
	if factor == "label" {
		names = src.Classes()
		value = func(s Sample) (float64, bool) { return float64(s.Label), s.Label != NoLabel }
	} else if !slices.Contains(src.Factors(), factor) {
		return nil, fmt.Errorf("unknown factor %q: use one of label, %s", factor, strings.Join(src.Factors(), ", "))
	}
	if c.Values == nil {
		return func(s Sample) bool {
			v, ok := value(s)
			return ok && c.Low <= v && v <= c.High
		}, nil
	}
	values, err := numbersOf(c.Values, names)
	if err != nil {
		return nil, fmt.Errorf("factor %s: %w", factor, err)
	}
	return func(s Sample) bool {
		v, ok := value(s)
		return ok && slices.Contains(values, v)
	}, nil
}

// numbersOf returns the values of a factor: the indices of categories with these names, or, for a
// factor without categories, numbers.
func numbersOf(values, names []string) ([]float64, error) {
	var out []float64
	for _, text := range values {
		if i := slices.Index(names, text); i >= 0 {
			out = append(out, float64(i))
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case len(names) > 0:
			return nil, fmt.Errorf("unknown value %q: use one of %s", text, firstNames(names, 5))
		case err != nil:
			return nil, fmt.Errorf("%q is not a number, and the factor has no categories", text)
		}
		out = append(out, v)
	}
	return out, nil
}
