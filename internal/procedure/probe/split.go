package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
)

type split struct{ train, validation, test []int }

// split divides the samples in a random order that depends on the key. The settings Validation and
// Test may instead select their samples by a factor. The order does not depend on the
// transformation, so that a trained probe is valid for all transformations.
func (t *Training) split(s *features.Samples, src dataset.Source, k measure.Key) (split, error) {
	var out split
	fractions := slices.Clone(t.Split)
	order := seed.Rand(k.Seed, "probe: split", k.Data, k.Trial).Perm(s.Len())
	for i, part := range []struct {
		*Part
		key  string
		rows *[]int
	}{{&t.Validation, "validation", &out.validation}, {&t.Test, "test", &out.test}} {
		if part.Factor == "" {
			continue
		}
		in, rest, err := part.separate(s, src, order)
		if err != nil {
			return out, fmt.Errorf("%s: %w", part.key, err)
		}
		*part.rows, order, fractions[i+1] = in, rest, 0
	}
	out.divide(order, fractions)
	if len(out.train) < 2 || len(out.validation) < 1 || len(out.test) < 2 {
		return out, fmt.Errorf("%w: %d samples for training, %d for validation and %d for the test; at least 2, 1 and 2 are needed",
			measure.ErrTooFew, len(out.train), len(out.validation), len(out.test))
	}
	for _, part := range []*[]int{&out.train, &out.validation, &out.test} {
		*part = slices.Sorted(slices.Values(*part))
	}
	return out, nil
}

// divide divides samples in order. A fraction of 0 means that the part has its samples already.
func (p *split) divide(order []int, fractions []float64) {
	n, sum := float64(len(order)), 1.0 // the settings' fractions add up to 1, except for rounding
	if fractions[1] == 0 || fractions[2] == 0 {
		sum = fractions[0] + fractions[1] + fractions[2]
	}
	a := int(math.Round(n * (fractions[0] / sum)))
	b := int(math.Round(n * (fractions[0]/sum + fractions[1]/sum)))
	p.train = order[:a]
	if fractions[1] > 0 {
		p.validation = order[a:b]
	}
	if fractions[2] > 0 {
		p.test = order[b:]
	}
}

// separate returns the samples of the part (validation or test) and the others.
func (p *Part) separate(s *features.Samples, src dataset.Source, order []int) (in, out []int, err error) {
	values, err := factor(s, p.Factor)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := p.wanted(src)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range order {
		if slices.Contains(wanted, values[i]) {
			in = append(in, i)
		} else {
			out = append(out, i)
		}
	}
	return in, out, nil
}

// wanted returns the factor values that select the part's samples, given as numbers or by name.
func (p *Part) wanted(src dataset.Source) ([]float64, error) {
	out := slices.Clone(p.Values)
	names := p.categories(src)
	for _, name := range p.Names {
		at := slices.Index(names, name)
		if at < 0 {
			return nil, fmt.Errorf("factor %s has no value %q: its values are %s", p.Factor, name, strings.Join(names, ", "))
		}
		out = append(out, float64(at))
	}
	return out, nil
}

// categories returns the names of the factor's values, or nil for numbers.
func (p *Part) categories(src dataset.Source) []string {
	if p.Factor == Label {
		return src.Classes()
	}
	return dataset.Categories(src, p.Factor)
}
