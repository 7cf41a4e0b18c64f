package paired

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Reduction lists sums over a sample's activations from which the columns of a Spec, without
// Action, follow.
type Reduction struct {
	Sums []measure.Sum
	// Columns computes a sample's columns from its sums and, unless shuffled is nil, those of its
	// transformed row with its partner's clean row. It returns measure.ErrNeedsActivations if they
	// do not suffice, as after overflow.
	Columns func(own, shuffled []float64, sums, partner []float32) error
}

func (m *method) Reduction(s measure.Site) *measure.Reduction {
	r := m.spec.Reduction
	size := tensor.Size(s.Layer.Shape)
	if r == nil || size <= 0 {
		return nil
	}
	out := &measure.Reduction{Sums: r.Sums, Width: len(r.Sums), Means: m.spec.projects(s)}
	if out.Means {
		dim := pooling.Mean.Dim(s.Layer)
		if dim == size { // no axis is averaged: the means would be all activations
			return nil
		}
		out.Width += 2 * dim
	}
	return out
}

func (a *accumulator) updateReduced(b *measure.Batch) error {
	if err := a.checkReduced(b); err != nil {
		return err
	}
	own, shuffled := make([]float64, len(a.spec.Columns)), []float64(nil)
	if a.open != nil { // there is a null
		shuffled = make([]float64, len(a.spec.Columns))
	}
	row := func(i int) []float32 { return b.Reduced.At(i).Data[:len(a.spec.Reduction.Sums)] }
	for i, partner := range a.site.Layout.Partners(b.Place) {
		if err := a.spec.Reduction.Columns(own, shuffled, row(i), row(partner)); err != nil {
			return fmt.Errorf("sample %d: %w", b.Index[i], err)
		}
		if err := a.addSample(b, i, nil, own); err != nil {
			return err
		}
		if shuffled != nil && partner != i {
			copy(a.out, shuffled)
			a.addOut(&a.null, b.Place[i]/a.site.Layout.Block, b.Label[partner])
		}
	}
	return nil
}

// checkReduced checks a batch of values of the Reduction against those before it.
func (a *accumulator) checkReduced(b *measure.Batch) error {
	r, n := a.spec.Reduction, len(b.Place)
	switch {
	case r == nil:
		return fmt.Errorf("%s needs the activations of a layer, not values that are computed from them", a.spec.Descriptor.Name)
	case len(b.Index) != n || len(b.Label) != n || !slices.Equal(b.Reduced.Shape, []int{n, len(r.Sums) + a.pooledMeans()}):
		return fmt.Errorf("a batch of %d places has %d indices, %d labels and reduced values of shape %v", n, len(b.Index), len(b.Label), b.Reduced.Shape)
	}
	if err := a.checkPlaces(b.Place); err != nil {
		return err
	}
	for _, place := range b.Place {
		if block := place / a.site.Layout.Block; a.open[block] != nil {
			return fmt.Errorf("a part of the samples of block %d came in an earlier batch", block)
		}
	}
	return a.setWidth(tensor.Size(a.site.Layer.Shape), true)
}

func (a *accumulator) pooledMeans() int {
	if a.projection == nil {
		return 0
	}
	return 2 * len(a.projection.pooled)
}
