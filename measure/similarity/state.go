package similarity

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/state"
)

// header tells states of different grids, layouts and settings apart.
func (a *accumulator) header() []int {
	l := a.grid.Layout
	out := []int{l.N, l.Block, l.Groups, len(a.units), len(a.plans)}
	flag := func(b bool) {
		if b {
			out = append(out, 1)
		} else {
			out = append(out, 0)
		}
	}
	flag(a.mini != nil)
	for u, unit := range a.units {
		out = append(out, unit.p, a.kept.limit[u])
		flag(a.sides[u] != nil && len(a.sides[u].groups) > 0)
	}
	for i, p := range a.plans {
		u, v := a.ends(i)
		out = append(out, u, v)
		flag(a.pairs[i] != nil)
		flag(p.groups)
		flag(p.debiased())
		flag(p.shuffles())
		flag(p.wide())
	}
	return out
}

// MarshalBinary returns the state, the samples of a block that is not full among it.
func (a *accumulator) MarshalBinary() ([]byte, error) {
	w := state.NewWriter("similarity", a.family.Version())
	w.Ints(a.header())
	w.Int(a.n)
	w.Ints(a.block.places)
	for _, rows := range a.block.rows {
		w.Float32s(rows)
	}
	w.Ints(a.kept.places)
	for _, rows := range a.kept.rows {
		w.Float32s(rows)
	}
	if a.mini != nil {
		w.Ints(a.mini.n)
		for _, values := range slices.Concat(a.mini.self, a.mini.across) {
			w.Floats(values)
		}
	}
	for _, s := range a.sides {
		if s != nil {
			s.write(w)
		}
	}
	for _, m := range a.pairs {
		if m != nil {
			m.write(w)
		}
	}
	return w.Bytes(), nil
}

// UnmarshalBinary replaces the state by one that MarshalBinary of an accumulator of the same grid has given. After an error the accumulator is
// not to be used.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	r, err := state.NewReader(data, "similarity", a.family.Version())
	if err != nil {
		return fmt.Errorf("similarity: %w", err)
	}
	if got := r.Ints(); !slices.Equal(got, a.header()) {
		r.Fail(fmt.Errorf("a state of another grid, layout or settings"))
	}
	if a.n = r.Int(); a.n < 0 {
		r.Fail(fmt.Errorf("a state of %d samples", a.n))
	}
	a.readBlock(r)
	a.readKept(r)
	if a.mini != nil {
		if n := r.Ints(); len(n) == len(a.mini.n) && slices.Min(n) >= 0 {
			a.mini.n = n
		} else {
			r.Fail(fmt.Errorf("a state of %d groups", len(n)))
		}
		for _, values := range slices.Concat(a.mini.self, a.mini.across) {
			r.FloatsInto(values)
		}
	}
	for _, s := range a.sides {
		if s != nil {
			s.read(r)
		}
	}
	for _, m := range a.pairs {
		if m != nil {
			m.read(r)
		}
	}
	if err := r.Close(); err != nil {
		return fmt.Errorf("similarity: %w", err)
	}
	return nil
}

func (a *accumulator) readBlock(r *state.Reader) {
	a.block.places = r.Ints()
	size := a.grid.Layout.Block
	for i, place := range a.block.places {
		if place < 0 || place >= a.grid.Layout.N || place/size != a.block.places[0]/size || i > 0 && place <= a.block.places[i-1] {
			r.Fail(fmt.Errorf("a block of the places %v", a.block.places))
			return
		}
	}
	for u, unit := range a.units {
		a.block.rows[u] = r.Float32s()
		if len(a.block.rows[u]) != len(a.block.places)*unit.p {
			r.Fail(fmt.Errorf("a block of %d samples with %d values", len(a.block.places), len(a.block.rows[u])))
		}
	}
}

func (a *accumulator) readKept(r *state.Reader) {
	a.kept.places = r.Ints()
	seen := map[int]bool{}
	for _, place := range a.kept.places {
		if place < 0 || place >= slices.Max(a.kept.limit) || seen[place] {
			r.Fail(fmt.Errorf("values of a sample at place %d", place))
			return
		}
		seen[place] = true
	}
	for u, unit := range a.units {
		a.kept.rows[u] = r.Float32s()
		if n := a.kept.count(u); len(a.kept.rows[u]) != n*unit.p {
			r.Fail(fmt.Errorf("%d values of %d samples", len(a.kept.rows[u]), n))
		}
	}
}

// count is how many samples are kept of a unit.
func (k *kept) count(u int) int {
	n := 0
	for _, place := range k.places {
		if place < k.limit[u] {
			n++
		}
	}
	return n
}

func (s *side) write(w *state.Writer) {
	s.all.Write(w)
	for _, g := range s.groups {
		g.Write(w)
	}
	writeQuartics(w, s.norms, s.groupNorms)
}

func (s *side) read(r *state.Reader) {
	s.all.Read(r)
	for _, g := range s.groups {
		g.Read(r)
	}
	readQuartics(r, s.norms, s.groupNorms)
}

func (m *pair) write(w *state.Writer) {
	m.xy.Write(w)
	for _, g := range m.groups {
		g.Write(w)
	}
	for _, null := range m.null {
		null.Write(w)
	}
	writeQuartics(w, m.norms, m.groupNorms)
}

func (m *pair) read(r *state.Reader) {
	m.xy.Read(r)
	for _, g := range m.groups {
		g.Read(r)
	}
	for _, null := range m.null {
		null.Read(r)
	}
	readQuartics(r, m.norms, m.groupNorms)
}

// quartics lists what there is.
func quartics(all *quartic, groups []*quartic) []*quartic {
	if all == nil {
		return nil
	}
	return append([]*quartic{all}, groups...)
}

func writeQuartics(w *state.Writer, all *quartic, groups []*quartic) {
	for _, q := range quartics(all, groups) {
		w.Float(q.ab)
		w.Float(q.a)
		w.Float(q.b)
		w.Floats(q.g)
		w.Floats(q.h)
	}
}

func readQuartics(r *state.Reader, all *quartic, groups []*quartic) {
	for _, q := range quartics(all, groups) {
		q.ab, q.a, q.b = r.Float(), r.Float(), r.Float()
		r.FloatsInto(q.g)
		r.FloatsInto(q.h)
	}
}
