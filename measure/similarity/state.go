package similarity

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/state"
)

// header returns numbers that differ between grids, layouts and settings.
func (a *accumulator) header() []int {
	l := a.grid.Layout
	out := []int{l.N, a.block, l.Groups, len(a.layers), len(a.plans)}
	flag := func(b bool) {
		if b {
			out = append(out, 1)
		} else {
			out = append(out, 0)
		}
	}
	flag(a.minibatches != nil)
	for u, layer := range a.layers {
		out = append(out, layer.p, a.stored.limit[u])
		flag(a.layerMoments[u] != nil && len(a.layerMoments[u].groups) > 0)
	}
	for i, p := range a.plans {
		u, v := a.pairLayers(i)
		out = append(out, u, v)
		flag(a.pairs[i] != nil) // second moments are gathered
		flag(p.groups)          // also those of each jackknife group
		flag(p.debiased())      // fourth moments for debiased CKA
		flag(p.drawsNull())     // moments of shuffled pairs
		flag(p.inFloat64())
	}
	return out
}

func (a *accumulator) MarshalBinary() ([]byte, error) {
	w := state.NewWriter("similarity", a.comparison.Version())
	w.Ints(a.header())
	w.Int(a.n)
	w.Ints(a.pending.places)
	for _, rows := range a.pending.rows {
		w.Float32s(rows)
	}
	w.Ints(a.stored.places)
	for _, rows := range a.stored.rows {
		w.Float32s(rows)
	}
	if a.minibatches != nil {
		w.Ints(a.minibatches.n)
		for _, values := range slices.Concat(a.minibatches.self, a.minibatches.across) {
			w.Floats(values)
		}
	}
	for _, s := range a.layerMoments {
		if s != nil {
			writeTables(w, s.tables())
		}
	}
	for _, m := range a.pairs {
		if m != nil {
			writeTables(w, m.tables())
		}
	}
	return w.Bytes(), nil
}

// UnmarshalBinary leaves an accumulator that must not be used after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	r, err := state.NewReader(data, "similarity", a.comparison.Version())
	if err != nil {
		return fmt.Errorf("similarity: %w", err)
	}
	if got := r.Ints(); !slices.Equal(got, a.header()) {
		r.Fail(fmt.Errorf("the state is of another grid, layout or settings"))
	}
	if a.n = r.Int(); a.n < 0 {
		r.Fail(fmt.Errorf("the state has %d samples", a.n))
	}
	a.readBlock(r)
	a.readStored(r)
	if a.minibatches != nil {
		if n := r.Ints(); len(n) == len(a.minibatches.n) && slices.Min(n) >= 0 {
			a.minibatches.n = n
		} else {
			r.Fail(fmt.Errorf("the state does not have the numbers of samples in the minibatches of %d jackknife groups", len(a.minibatches.n)))
		}
		for _, values := range slices.Concat(a.minibatches.self, a.minibatches.across) {
			r.FloatsInto(values)
		}
	}
	for _, s := range a.layerMoments {
		if s != nil {
			readTables(r, s.tables())
		}
	}
	for _, m := range a.pairs {
		if m != nil {
			readTables(r, m.tables())
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("similarity: %w", err)
	}
	return nil
}

func (a *accumulator) readBlock(r *state.Reader) {
	a.pending.places = r.Ints()
	for i, place := range a.pending.places {
		if place < 0 || place >= a.grid.Layout.N || place/a.block != a.pending.places[0]/a.block || i > 0 && place <= a.pending.places[i-1] {
			r.Fail(fmt.Errorf("the state has a block of the places %v, which do not fit the layout", a.pending.places))
			return
		}
	}
	for u, layer := range a.layers {
		a.pending.rows[u] = r.Float32s()
		if len(a.pending.rows[u]) != len(a.pending.places)*layer.p {
			r.Fail(fmt.Errorf("the state has %d values of a block of %d samples", len(a.pending.rows[u]), len(a.pending.places)))
		}
	}
}

// readStored reads values, of layer u at places below stored.limit[u].
func (a *accumulator) readStored(r *state.Reader) {
	a.stored.places = r.Ints()
	seen := map[int]bool{}
	for _, place := range a.stored.places {
		if place < 0 || place >= slices.Max(a.stored.limit) || seen[place] {
			r.Fail(fmt.Errorf("the state has values of a sample at place %d, which does not fit the layout", place))
			return
		}
		seen[place] = true
	}
	for u, layer := range a.layers {
		a.stored.rows[u] = r.Float32s()
		if n := a.stored.count(u); len(a.stored.rows[u]) != n*layer.p {
			r.Fail(fmt.Errorf("the state has %d values of %d samples", len(a.stored.rows[u]), n))
		}
	}
}

func (k *storedRows) count(u int) int {
	n := 0
	for _, place := range k.places {
		if place < k.limit[u] {
			n++
		}
	}
	return n
}

func writeTables(w *state.Writer, tables []table) {
	for _, t := range tables {
		t.Write(w)
	}
}

func readTables(r *state.Reader, tables []table) {
	for _, t := range tables {
		t.Read(r)
	}
}
