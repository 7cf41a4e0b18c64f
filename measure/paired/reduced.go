package paired

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Reduction computes values of each sample within the graph of a model, from which the columns of
// a Spec follow. The columns are the values of a pair of rows, and a row is the vector of one
// sample, clean (not transformed) or transformed. It is for measures that read layers, without an
// Action.
type Reduction struct {
	Name  string // see measure.Reduction
	Width int    // number of values of each sample
	// Build adds the values to a graph, b x Width; rows have size values.
	Build func(b *onnx.Builder, size int, clean, transformed, partners onnx.Value) onnx.Value
	// Columns computes the columns of a sample's pair from its values and, unless shuffled is nil,
	// those of its shuffled pair: its transformed row with the clean row of its partner (see
	// measure.Layout.Partners), which has the values partner. It returns
	// measure.ErrNeedsActivations if the values do not suffice, for instance if they overflow.
	Columns func(own, shuffled []float64, values, partner []float32) error
}

// Reduction implements measure.Reducer. After the values of the Spec's Reduction come, if the site
// asks for a projection, the means over positions of the clean row and of the transformed one.
func (m *method) Reduction(s measure.Site) *measure.Reduction {
	r := m.spec.Reduction
	size := tensor.Size(s.Layer.Shape)
	if r == nil || size <= 0 {
		return nil
	}
	values := func(b *onnx.Builder, clean, transformed, partners onnx.Value) onnx.Value {
		return r.Build(b, size, clean, transformed, partners)
	}
	if !m.spec.projects(s) {
		return &measure.Reduction{Name: r.Name, Width: r.Width, Build: values}
	}
	dim := features.Mean.Dim(s.Layer)
	if dim == size { // no axis is averaged: the means would be all activations
		return nil
	}
	return &measure.Reduction{Name: r.Name + " and means", Width: r.Width + 2*dim, Build: func(b *onnx.Builder, clean, transformed, partners onnx.Value) onnx.Value {
		all := []onnx.Value{values(b, clean, transformed, partners)}
		for _, z := range []onnx.Value{clean, transformed} {
			all = append(all, features.BuildMean(b, s.Layer, z))
		}
		return b.Concat(1, all...)
	}}
}

// updateReduced is Update for a batch with the values of a Reduction.
func (a *accumulator) updateReduced(b *measure.Batch) error {
	if err := a.checkReduced(b); err != nil {
		return err
	}
	own, shuffled := make([]float64, len(a.spec.Columns)), []float64(nil)
	if a.open != nil { // there is a null
		shuffled = make([]float64, len(a.spec.Columns))
	}
	row := func(i int) []float32 { return b.Reduced.At(i).Data[:a.spec.Reduction.Width] }
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

// checkReduced checks that a batch of values of the Reduction is valid and fits to the batches
// before it.
func (a *accumulator) checkReduced(b *measure.Batch) error {
	r, n := a.spec.Reduction, len(b.Place)
	switch {
	case r == nil:
		return fmt.Errorf("%s needs the activations of a layer, not values that are computed from them", a.spec.Descriptor.Name)
	case len(b.Index) != n || len(b.Label) != n || !slices.Equal(b.Reduced.Shape, []int{n, r.Width + a.pooledMeans()}):
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

// pooledMeans returns the number of means over positions that follow the values of a Reduction.
func (a *accumulator) pooledMeans() int {
	if a.projection == nil {
		return 0
	}
	return 2 * len(a.projection.pooled)
}
