package dataset

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// wrapper is a source made of one other, whose samples it passes on.
type wrapper interface{ unwrap() Source }

func (s subset) unwrap() Source     { return s.Source }
func (r relabelled) unwrap() Source { return r.Source }
func (c corrupted) unwrap() Source  { return c.Source }
func (m computed) unwrap() Source   { return m.Source }
func (p *Pairs) unwrap() Source     { return p.Source }

// Categories are the names of the values of a factor that is no number, such as a speaker: Factors holds places in this list. It is
// nil for a factor that is a number.
func Categories(src Source, factor string) []string {
	for {
		switch s := src.(type) {
		case interface{ factorCategories(string) []string }:
			return s.factorCategories(factor)
		case wrapper:
			src = s.unwrap()
		default:
			return nil
		}
	}
}

func (l *fileList) factorCategories(factor string) []string {
	return slices.Clone(l.categories[factor])
}

// Notes are lines about what a source has left out when it was opened, with names and numbers.
func Notes(src Source) []string {
	for {
		switch s := src.(type) {
		case interface{ Notes() []string }:
			return s.Notes()
		case wrapper:
			src = s.unwrap()
		default:
			return nil
		}
	}
}

// A Condition says which values of a factor are wanted: those from Low to High, both included, or where Values is not nil those
// in it, which are numbers or the names of categories.
type Condition struct {
	Low, High float64
	Values    []string
}

// Where returns the samples whose factors meet all conditions, in the order of the source. The factor "label" is the name of the
// label, and its number. A source that is no Describer is read once.
func Where(ctx context.Context, src Source, conditions map[string]Condition) (Source, error) {
	var tests []func(Sample) bool
	for factor, c := range conditions {
		test, err := c.test(src, factor)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test)
	}
	var places []int
	for i := range src.Len() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := Describe(ctx, src, i)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(tests, func(test func(Sample) bool) bool { return !test(s) }) {
			places = append(places, i)
		}
	}
	return newSubset(src, places), nil
}

// test is the condition on one factor of a source.
func (c Condition) test(src Source, factor string) (func(Sample) bool, error) {
	names := Categories(src, factor)
	value := func(s Sample) (float64, bool) { v, ok := s.Factors[factor]; return v, ok }
	if factor == "label" {
		names = src.Classes()
		value = func(s Sample) (float64, bool) { return float64(s.Label), s.Label != NoLabel }
	} else if !slices.Contains(src.Factors(), factor) {
		return nil, fmt.Errorf("no factor is called %q: there are label, %s", factor, strings.Join(src.Factors(), ", "))
	}
	if c.Values == nil {
		return func(s Sample) bool {
			v, ok := value(s)
			return ok && c.Low <= v && v <= c.High
		}, nil
	}
	wanted, err := numbersOf(c.Values, names)
	if err != nil {
		return nil, fmt.Errorf("factor %s: %w", factor, err)
	}
	return func(s Sample) bool {
		v, ok := value(s)
		return ok && slices.Contains(wanted, v)
	}, nil
}

// numbersOf reads values as names of categories, else as numbers.
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
			return nil, fmt.Errorf("there is no %q among %s", text, someNames(names))
		case err != nil:
			return nil, fmt.Errorf("%q is no number, and there is no name among its values", text)
		}
		out = append(out, v)
	}
	return out, nil
}
