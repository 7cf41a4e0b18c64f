package seis

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Compare returns the scores of z and, on transformed inputs, zt, both b x c x h x w or b x c x t.
// Inputs may be in any order: the null's partners and the interval's groups are random.
func Compare(z, zt tensor.Tensor, s Settings) ([]measure.Score, error) {
	axes := map[int]tensor.Axes{4: "NCHW", 3: "NCT"}[z.Rank()]
	if axes == "" {
		return nil, fmt.Errorf("seis needs activations of shape b x c x h x w or b x c x t, not %v", z.Shape)
	}
	if !slices.Equal(z.Shape, zt.Shape) {
		return nil, fmt.Errorf("seis needs activations of one shape, not %v and %v", z.Shape, zt.Shape)
	}
	n := z.Shape[0]
	site := measure.Site{ // what to measure: a layer, with the order and groups of samples
		Layer:  tensor.Layer{Name: "activations", Shape: z.Shape[1:], Axes: axes},
		Layout: measure.NewLayout(n),
	}
	a, err := New(s).New(site)
	if err != nil {
		return nil, err
	}
	// place is the position of sample i in the random order.
	for place, i := range seed.Rand(0, "seis compare").Perm(n) {
		b := &measure.Batch{Place: []int{place}, Index: []int{i}, Clean: z.Slice(i, i+1), Transformed: zt.Slice(i, i+1)}
		if err := a.Update(b); err != nil {
			return nil, err
		}
	}
	return a.Scores()
}
