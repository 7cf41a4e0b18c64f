package paired

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// reducible returns the Spec of difference, in paired_test.go, with a Reduction: its values of a
// sample are the two differences.
func reducible() *Spec {
	s := difference()
	s.Reduction = &Reduction{Sums: make([]measure.Sum, 2), Columns: func(own, shuffled []float64, values, _ []float32) error {
		if values[0] > 100 {
			return measure.ErrNeedsActivations
		}
		own[0] = float64(values[0])
		if shuffled != nil {
			shuffled[0] = float64(values[1])
		}
		return nil
	}}
	return s
}

// TestReducedBatches checks that scores and per-sample values are the same for the values of a
// Reduction as for activations, with batches of whole blocks, samples that cannot be read,
// projections to a plane, and without a null, the mean over shuffled pairs. So are those of a run
// that is interrupted after each batch, and continues with either of the two.
func TestReducedBatches(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		n := 1 + r.IntN(40)
		site := measure.Site{Layer: tensor.Layer{Shape: []int{2, 2, 2}, Axes: "NCHW"}, Layout: measure.Layout{N: n, Block: 1 + r.IntN(n), Groups: 3},
			Classes: []string{"even", "odd"}, KeepSamples: true, Project: r.IntN(2) * 5}
		if r.IntN(5) == 0 {
			site.Budget = 1 // byte: too little memory for the null
		}
		reduced, plain, mixed := newAccumulator(reducible(), site), newAccumulator(reducible(), site), newAccumulator(reducible(), site)
		for from := 0; from < n; {
			to := min(n, from+site.Layout.Block*(1+r.IntN(3)))
			activations, values := randomBatches(r, reduced, from, to)
			update(t, plain, activations)
			update(t, reduced, values)
			update(t, mixed, []*measure.Batch{activations, values}[r.IntN(2)])
			mixed = restored(t, mixed)
			from = to
		}
		if len(plain.open) == 0 && fmt.Sprint(reduced.null) != fmt.Sprint(plain.null) {
			t.Fatalf("%+v: the null has the sums %v, want %v", site, reduced.null, plain.null)
		}
		want := results(t, plain)
		for name, a := range map[string]*accumulator{"reduced": reduced, "mixed": mixed} {
			if got := results(t, a); got != want {
				t.Fatalf("%s, %+v: %s, want %s", name, site, got, want)
			}
		}
	}
}

// restored returns a new accumulator with the state of a.
func restored(t *testing.T, a *accumulator) *accumulator {
	t.Helper()
	state, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again := newAccumulator(a.spec, a.site)
	if err := again.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	return again
}

func update(t *testing.T, a *accumulator, b *measure.Batch) {
	t.Helper()
	if err := a.Update(b); err != nil {
		t.Fatal(err)
	}
}

// results returns the scores and the per-sample values of an accumulator as text.
func results(t *testing.T, a *accumulator) string {
	t.Helper()
	scores, err := a.Scores()
	if err != nil && !errors.Is(err, measure.ErrTooFew) {
		t.Fatal(err)
	}
	return fmt.Sprint(scores, a.Samples())
}

// randomBatches returns the samples at the places from to to-1, of which some cannot be read, as
// activations and as values of the Reduction of the accumulator a.
func randomBatches(r *rand.Rand, a *accumulator, from, to int) (activations, reduced *measure.Batch) {
	b := &measure.Batch{}
	for p := from; p < to; p++ {
		if r.IntN(6) > 0 {
			b.Place, b.Index, b.Label = append(b.Place, p), append(b.Index, p), append(b.Label, p%2)
		}
	}
	k := len(b.Place)
	if k == 0 {
		return b, b
	}
	b.Clean, b.Transformed = tensor.New(k, 2, 2, 2), tensor.New(k, 2, 2, 2)
	for i := range b.Clean.Data {
		b.Clean.Data[i], b.Transformed.Data[i] = float32(r.IntN(9)), float32(r.IntN(9))
	}
	width := 2 + a.pooledMeans()
	values := tensor.New(k, width)
	for i, p := range a.site.Layout.Partners(b.Place) {
		row := values.At(i).Data
		z, moved := b.Clean.At(i).Data, b.Transformed.At(i).Data
		row[0], row[1] = moved[0]-z[0], moved[0]-b.Clean.At(p).Data[0]
		if width > 2 {
			a.projection.pool(row[2:4], z)
			a.projection.pool(row[4:6], moved)
		}
	}
	return b, &measure.Batch{Place: b.Place, Index: b.Index, Label: b.Label, Reduced: values}
}

// TestReducedBatchErrors checks the errors for batches that a Reduction cannot have computed.
func TestReducedBatchErrors(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layer: tensor.Layer{Shape: []int{1}, Axes: "NC"}, Layout: measure.Layout{N: 8, Block: 4, Groups: 2}, Classes: []string{"even", "odd"}}
	batch := func(values tensor.Tensor, places ...int) *measure.Batch {
		return &measure.Batch{Place: places, Index: places, Label: make([]int, len(places)), Reduced: values}
	}
	half := &measure.Batch{Place: []int{0, 1}, Index: []int{0, 1}, Label: []int{0, 1}, Clean: tensor.New(2, 1), Transformed: tensor.New(2, 1)}
	unlabelled := batch(tensor.New(2, 2), 0, 1)
	unlabelled.Label = unlabelled.Label[:1]
	large := tensor.New(1, 2)
	large.Data[0] = 1000
	for want, c := range map[string]struct {
		spec   *Spec
		before *measure.Batch
		batch  *measure.Batch
	}{
		"needs the activations of a layer": {difference(), nil, batch(tensor.New(1, 2), 0)},
		"reduced values of shape [1 3]":    {reducible(), nil, batch(tensor.New(1, 3), 0)},
		"reduced values of shape [2 2]":    {reducible(), nil, batch(tensor.New(2, 2), 0)},
		"2 indices, 1 labels":              {reducible(), nil, unlabelled},
		"places must be ascending":         {reducible(), nil, batch(tensor.New(2, 2), 1, 0)},
		"came in an earlier batch":         {reducible(), half, batch(tensor.New(2, 2), 2, 3)},
		"cannot be computed from sums":     {reducible(), nil, batch(large, 0)},
	} {
		a := newAccumulator(c.spec, site)
		if c.before != nil {
			if err := a.Update(c.before); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Update(c.batch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestPartners checks that a sample's partner is the one before in its block, and the last for the
// first, also where samples are missing.
func TestPartners(t *testing.T) {
	t.Parallel()
	l := measure.Layout{N: 12, Block: 4, Groups: 3}
	if got, want := l.Partners([]int{0, 1, 3, 5, 8, 9, 10, 11}), []int{2, 0, 1, 3, 7, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("partners %v, want %v", got, want)
	}
}

// TestReductionOfSite checks for which sites a measure has a Reduction: for layers of known sizes,
// and for a projection only if it averages some axes.
func TestReductionOfSite(t *testing.T) {
	t.Parallel()
	m := New(*reducible()).(measure.Reducer)
	maps, flat, empty := tensor.Layer{Shape: []int{3, 2, 2}, Axes: "NCHW"}, tensor.Layer{Shape: []int{3}, Axes: "NC"}, tensor.Layer{Shape: []int{3, 0}, Axes: "NTC"}
	for _, c := range []struct {
		site  measure.Site
		width int // 0: no Reduction
	}{
		{measure.Site{Layer: maps}, 2},
		{measure.Site{Layer: maps, Project: 4}, 2 + 2*3},
		{measure.Site{Layer: flat}, 2},
		{measure.Site{Layer: flat, Project: 4}, 0},
		{measure.Site{Layer: empty}, 0},
	} {
		r := m.Reduction(c.site)
		if r == nil {
			r = &measure.Reduction{}
		}
		if r.Width != c.width || r.Means != (c.width > 2) {
			t.Errorf("%v, projection of %d samples: %d values, want %d", c.site.Layer.Shape, c.site.Project, r.Width, c.width)
		}
	}
	if r := New(*difference()).(measure.Reducer).Reduction(measure.Site{Layer: maps}); r != nil {
		t.Errorf("a measure without a Reduction has %+v", r)
	}
}
