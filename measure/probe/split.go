package probe

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/represent"
)

// A split says which samples, by their row, a probe is trained, chosen and judged on.
type split struct{ train, validation, test []int }

// split shares out the samples: by an order that the key decides, but for test samples that are named. It does not depend on the
// transformation, so that a probe that was trained for one serves for all.
func (t *Training) split(s *represent.Samples, k measure.Key) (split, error) {
	var out split
	order := keyed.Rand(k.Seed, "probe: split", k.Data, k.Trial).Perm(s.Len())
	if t.Test.Factor != "" {
		named, rest, err := t.Test.divide(s, order)
		if err != nil {
			return out, err
		}
		out.test, order = named, rest
	}
	n, shares := float64(len(order)), t.Split
	named := t.Test.Factor != ""
	if named {
		sum := shares[0] + shares[1]
		shares = []float64{shares[0] / sum, shares[1] / sum}
	}
	a := int(math.Round(n * shares[0]))
	b := int(math.Round(n * (shares[0] + shares[1])))
	out.train, out.validation = order[:a], order[a:b]
	if !named {
		out.test = order[b:]
	}
	if len(out.train) < 2 || len(out.validation) < 1 || len(out.test) < 2 {
		return out, fmt.Errorf("%w: %d for training, %d for validation and %d for the test; it wants 2, 1 and 2 at least",
			measure.ErrTooFew, len(out.train), len(out.validation), len(out.test))
	}
	for _, part := range []*[]int{&out.train, &out.validation, &out.test} {
		*part = slices.Sorted(slices.Values(*part))
	}
	return out, nil
}

// divide tells the samples of a part from the others.
func (p *Part) divide(s *represent.Samples, order []int) (in, out []int, err error) {
	values, err := factor(s, p.Factor)
	if err != nil {
		return nil, nil, fmt.Errorf("test: %w", err)
	}
	for _, i := range order {
		if slices.Contains(p.Values, values[i]) {
			in = append(in, i)
		} else {
			out = append(out, i)
		}
	}
	return in, out, nil
}
