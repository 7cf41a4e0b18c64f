package paired

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// byRows returns the Spec of difference, in paired_test.go, with PairRows, which computes what Pair
// does, the transformed minus the clean value, for several samples at once. PairRows writes the
// values of the samples to own, and those of shuffled pairs to shuffled: the transformed value of a
// sample with the clean value of the previous one. *pairs counts the pairs that PairRows computes.
func byRows(pairs *int) *Spec {
	s := difference()
	pair := func(out []float64, clean, transformed float32) bool {
		out[0] = float64(transformed - clean)
		*pairs++
		return !math.IsNaN(out[0])
	}
	s.Pair = func(out []float64, _ int, clean, transformed []float32) error {
		if out[0] = float64(transformed[0] - clean[0]); math.IsNaN(out[0]) {
			return &measure.NonFinite{View: "clean"}
		}
		return nil
	}
	s.PairRows = func(own, shuffled []float64, previous, clean, transformed []float32) bool {
		for i := range own {
			if !pair(own[i:], clean[i], transformed[i]) {
				return false
			}
			if shuffled != nil && previous != nil && !pair(shuffled[i:], previous[0], transformed[i]) {
				return false
			}
			previous = clean[i:]
		}
		return true
	}
	return s
}

// TestPairRows checks that states (serialised accumulators, the running sums of a measure) are the
// same with PairRows as with Pair alone, for batches of any size, blocks that begin and end within
// a batch, samples that cannot be read, and without a null, the mean over shuffled pairs.
func TestPairRows(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		n := 1 + r.IntN(40)
		site := measure.Site{Layout: measure.Layout{N: n, Block: 1 + r.IntN(n), Groups: 3}, Classes: []string{"even", "odd"}, KeepSamples: true}
		if r.IntN(5) == 0 {
			site.Budget = 1 // byte: too little memory for the null
		}
		var places []int
		for p := range n {
			if r.IntN(6) > 0 { // a sixth of the samples cannot be read
				places = append(places, p)
			}
		}
		pairs := 0
		with, without := newAccumulator(byRows(&pairs), site), newAccumulator(difference(), site)
		for len(places) > 0 {
			k := 1 + r.IntN(len(places))
			batch := &measure.Batch{Clean: tensor.New(k, 1), Transformed: tensor.New(k, 1)}
			for i, p := range places[:k] {
				batch.Place, batch.Index, batch.Label = append(batch.Place, p), append(batch.Index, p), append(batch.Label, p%2)
				batch.Clean.Data[i], batch.Transformed.Data[i] = r.Float32(), r.Float32()
			}
			if err := errors.Join(with.Update(batch), without.Update(batch)); err != nil {
				t.Fatal(err)
			}
			places = places[k:]
		}
		a, errA := with.MarshalBinary()
		b, errB := without.MarshalBinary()
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Fatalf("layout %+v: states differ with PairRows (%v, %v)", site.Layout, errA, errB)
		}
		if samples := with.values.n(0); pairs < samples {
			t.Fatalf("PairRows computed %d pairs of %d samples", pairs, samples)
		}
	}
}

// TestPairRowsError checks that the error names the sample for which PairRows returns false.
func TestPairRowsError(t *testing.T) {
	t.Parallel()
	pairs := 0
	a := newAccumulator(byRows(&pairs), measure.Site{Layout: measure.Layout{N: 6, Block: 6, Groups: 1}})
	b := &measure.Batch{Clean: tensor.New(4, 1), Transformed: tensor.New(4, 1), Label: slices.Repeat([]int{-1}, 4)}
	for i := range 4 {
		b.Place, b.Index = append(b.Place, i), append(b.Index, 10+i)
	}
	b.Clean.Data[2] = float32(math.NaN())
	var bad *measure.NonFinite
	if err := a.Update(b); !errors.As(err, &bad) || bad.Index != 12 {
		t.Errorf("error %v, want one that names sample 12", err)
	}
}
