package probe

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
)

// A split is the rows of the samples for training, validation and test.
type split struct{ train, validation, test []int }

// split divides the samples in an order that the key decides, except for validation and test
// samples that the settings name. It does not depend on the transformation, so that one trained
// probe serves all transformations.
func (t *Training) split(s *features.Samples, src dataset.Source, k measure.Key) (split, error) {
	var out split
	shares := slices.Clone(t.Split)
	order := seed.Rand(k.Seed, "probe: split", k.Data, k.Trial).Perm(s.Len())
	for i, part := range []struct {
		*Part
		key  string
		rows *[]int
	}{{&t.Validation, "validation", &out.validation}, {&t.Test, "test", &out.test}} {
		if part.Factor == "" {
			continue
		}
		in, rest, err := part.divide(s, src, order)
		if err != nil {
			return out, fmt.Errorf("%s: %w", part.key, err)
		}
		*part.rows, order, shares[i+1] = in, rest, 0
	}
	out.share(order, shares)
	if len(out.train) < 2 || len(out.validation) < 1 || len(out.test) < 2 {
		return out, fmt.Errorf("%w: %d samples for training, %d for validation and %d for the test; at least 2, 1 and 2 are needed",
			measure.ErrTooFew, len(out.train), len(out.validation), len(out.test))
	}
	for _, part := range []*[]int{&out.train, &out.validation, &out.test} {
		*part = slices.Sorted(slices.Values(*part))
	}
	return out, nil
}

// share divides the samples that are not named. A part with a share of 0 has its samples already.
func (p *split) share(order []int, shares []float64) {
	n, sum := float64(len(order)), 1.0
	if shares[1] == 0 || shares[2] == 0 {
		sum = shares[0] + shares[1] + shares[2]
	}
	a := int(math.Round(n * (shares[0] / sum)))
	b := int(math.Round(n * (shares[0]/sum + shares[1]/sum)))
	p.train = order[:a]
	if shares[1] > 0 {
		p.validation = order[a:b]
	}
	if shares[2] > 0 {
		p.test = order[b:]
	}
}

// divide separates the samples of a part from the others.
func (p *Part) divide(s *features.Samples, src dataset.Source, order []int) (in, out []int, err error) {
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

// wanted returns the values of the part, with those that are given by name.
func (p *Part) wanted(src dataset.Source) ([]float64, error) {
	out := slices.Clone(p.Values)
	names := p.categories(src)
	for _, name := range p.Names {
		at := slices.Index(names, name)
		if at < 0 {
			return nil, fmt.Errorf("the factor %s has no value %q: it has %s", p.Factor, name, strings.Join(names, ", "))
		}
		out = append(out, float64(at))
	}
	return out, nil
}

// categories returns the names of the values of the part's factor, nil where they are numbers.
func (p *Part) categories(src dataset.Source) []string {
	if p.Factor == Label {
		return src.Classes()
	}
	return dataset.Categories(src, p.Factor)
}
