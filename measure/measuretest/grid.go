package measuretest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A GridCase is a comparison with data to test it. The sample at place p is row p.
type GridCase struct {
	Comparison measure.Comparison
	Grid       measure.Grid
	// A and B hold a tensor for each layer of a side: Layout.N x ... With Grid.Self, layers of
	// equal names have equal tensors.
	A, B []tensor.Tensor
	// Tolerance is the largest difference of two scores, relative beyond 1; 0: 1e-9.
	Tolerance float64
}

// RunGrid checks the case. The grid should have several layers on each side, and the layout several
// blocks with an incomplete last one. It feeds all samples some hundred times, so that should take
// milliseconds.
func RunGrid(t *testing.T, c GridCase) {
	t.Helper()
	c.contract().check(t)
	t.Run("single pairs", c.checkSinglePairs)
	t.Run("batches are read only", c.checkReadOnly)
}

func (c GridCase) contract() contract {
	return contract{layout: c.Grid.Layout, cost: c.Comparison.Cost(c.Grid), tolerance: c.Tolerance, open: func() (subject, error) {
		acc, err := c.Comparison.New(c.Grid)
		return &gridSubject{acc, c}, err
	}}
}

// checkSinglePairs compares each pair in a grid of its own with the whole grid.
func (c GridCase) checkSinglePairs(t *testing.T) {
	all := make([]int, c.Grid.Layout.N)
	for p := range all {
		all[p] = p
	}
	contract := c.contract()
	const batch = 32
	whole, err := contract.feed(t, all, batch).scores()
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range c.Grid.Pairs {
		one := c
		one.Grid.A, one.Grid.B = []tensor.Layer{c.Grid.A[pair[0]]}, []tensor.Layer{c.Grid.B[pair[1]]}
		one.A, one.B = []tensor.Tensor{c.A[pair[0]]}, []tensor.Tensor{c.B[pair[1]]}
		one.Grid.Pairs = [][2]int{{0, 0}}
		if why := c.Comparison.Skip(one.Grid); why != "" {
			t.Fatalf("layers %v are skipped: %s", pair, why)
		}
		alone, err := one.contract().feed(t, all, batch).scores()
		if err != nil {
			t.Fatal(err)
		}
		among := slices.DeleteFunc(slices.Clone(whole), func(s measure.PairScore) bool { return [2]int{s.A, s.B} != pair })
		for i := range among {
			among[i].A, among[i].B = 0, 0
		}
		contract.sameScores(t, alone, among)
	}
}

// checkReadOnly checks that Update does not write to a batch, whose sides may share memory.
func (c GridCase) checkReadOnly(t *testing.T) {
	s, err := c.contract().open()
	if err != nil {
		t.Fatal(err)
	}
	places := []int{0, 1}
	b := s.(*gridSubject).batch(places)
	if err := s.(*gridSubject).Update(b); err != nil {
		t.Fatal(err)
	}
	same := func(name string, got []tensor.Tensor, want []tensor.Tensor) {
		for i, z := range got {
			if !slices.Equal(z.Data, rows(want[i], places).Data) {
				t.Errorf("Update writes to layer %d of side %s", i, name)
			}
		}
	}
	same("A", b.A, c.A)
	same("B", b.B, c.B)
}

type gridSubject struct {
	measure.GridAccumulator
	c GridCase
}

// batch returns the activations of both sides on the samples at some places.
func (s *gridSubject) batch(places []int) *measure.PairBatch {
	b := &measure.PairBatch{}
	b.Place, b.Index, b.Label = identify(s.c.Grid.Layout, nil, places) // nil: no labels
	for _, z := range s.c.A {
		b.A = append(b.A, rows(z, places))
	}
	for j, z := range s.c.B {
		i := -1
		if s.c.Grid.Self {
			i = slices.IndexFunc(s.c.Grid.A, func(l tensor.Layer) bool { return l.Name == s.c.Grid.B[j].Name })
		}
		if i >= 0 {
			b.B = append(b.B, b.A[i])
		} else {
			b.B = append(b.B, rows(z, places))
		}
	}
	return b
}

// update adds a batch, and then overwrites its memory, which an accumulator must not keep.
func (s *gridSubject) update(places []int) error {
	b := s.batch(places)
	err := s.Update(b)
	overwrite([][]int{b.Place, b.Index, b.Label}, append(b.A, b.B...)...)
	return err
}

func (s *gridSubject) merge(other subject) error {
	return s.Merge(other.(*gridSubject).GridAccumulator)
}

func (s *gridSubject) scores() ([]measure.PairScore, error) {
	scores, err := s.Scores()
	for _, one := range scores {
		if !slices.Contains(s.c.Grid.Pairs, [2]int{one.A, one.B}) {
			return nil, fmt.Errorf("scores of layers %d and %d, which are not a pair of the grid", one.A, one.B)
		}
	}
	return scores, err
}

func (s *gridSubject) samples() []measure.SampleScore { return nil }
