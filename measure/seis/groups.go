package seis

import (
	"sync"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// groups holds the second moments of the groups of samples in a Store (usually a file). The
// confidence interval is computed from half-samples, each of which consists of half of the groups.
// The moments of all samples are their sum. An observation is one channel of one sample. Since a
// group is a range of places, one group at a time is open: it gets the observations. Memory holds
// the moments of that group alone; they are stored when another group begins. A complete group is
// stored in float32. A group that is incomplete, because a shard or a state ends in it, is stored
// in float64 until its other samples are added, so that the result does not change.
type groups struct {
	store   measure.Store
	current *linalg.Scatter[float64] // of the open group
	open    int                      // index of the open group; negative: none
	sizes   []int                    // number of observations of each complete group
	stored  []storedScatter          // of each group

	closing sync.Mutex // for storing the open group: a run that is stopped saves accumulators while they are scored
}

// newGroups returns n empty groups of a layout. current is memory for the moments of the open
// group.
func newGroups(n int, l measure.Layout, channels int, current *linalg.Scatter[float64], store measure.Store) *groups {
	if store == nil {
		store = new(memoryStore)
	}
	g := &groups{store: store, current: current, open: -1, stored: make([]storedScatter, n)}
	for i := range n {
		from, to := placesOf(i, n, l)
		g.sizes = append(g.sizes, (to-from)*channels)
	}
	return g
}

// groupOf returns the group, one of n, of the sample at a place. A group consists of consecutive
// blocks of the layout: it need not mix them, since the samples are in random order.
func groupOf(place, n int, l measure.Layout) int { return place / l.Block * n / l.Blocks() }

// placesOf returns the half-open range of places of a group.
func placesOf(group, n int, l measure.Layout) (from, to int) {
	first := func(group int) int { return min((group*l.Blocks()+n-1)/n*l.Block, l.N) }
	return first(group), first(group + 1)
}

func (g *groups) len() int { return len(g.stored) }

// begin opens a group, which then gets observations. A group that was stored before it was
// complete, when a state was saved, is loaded, so that its sums are added in the same order as
// without saving.
func (g *groups) begin(group int) error {
	if group == g.open {
		return nil
	}
	if err := g.close(); err != nil {
		return err
	}
	g.open = group
	g.allocate()
	s := &g.stored[group]
	if s.n == 0 || s.width != double {
		return nil
	}
	err := load(g.store, s, g.current)
	s.n = 0
	return err
}

// allocate allocates memory for the open group if the method total has taken it.
func (g *groups) allocate() {
	if g.current.Data == nil {
		g.current.Data = linalg.NewScatter[float64](g.current.P).Data
	}
}

// close stores the moments of the open group, if there is one.
func (g *groups) close() error {
	g.closing.Lock()
	defer g.closing.Unlock()
	return g.storeCurrent()
}

// storeCurrent is close for a caller that holds the mutex closing.
func (g *groups) storeCurrent() error {
	if g.current.N == 0 || g.open < 0 {
		return nil
	}
	if err := g.addTo(g.open, g.current); err != nil {
		return err
	}
	g.current.Clear()
	g.open = -1
	return nil
}

// total returns the moments of all observations. It closes the open group and uses its memory for
// the result. The groups are added in order, in the precision in which they are stored, so that the
// sum does not depend on how the samples were divided among runs.
func (g *groups) total() (*linalg.Scatter[float64], error) {
	g.closing.Lock()
	defer g.closing.Unlock()
	if err := g.storeCurrent(); err != nil {
		return nil, err
	}
	g.allocate()
	all := &linalg.Scatter[float64]{P: g.current.P, Mean: make([]float64, g.current.P), Data: g.current.Data}
	g.current.Data = nil
	for i := range g.stored {
		if err := mergeStored(g.store, &g.stored[i], all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addTo adds the moments of further observations to a group and stores the group.
func (g *groups) addTo(group int, part *linalg.Scatter[float64]) error {
	s := &g.stored[group]
	if part.N == 0 {
		return nil
	}
	if s.n > 0 {
		all := linalg.NewScatter[float64](part.P)
		if err := load(g.store, s, all); err != nil {
			return err
		}
		all.Merge(part)
		part = all
	}
	if part.N == g.sizes[group] {
		return saveSingle(g.store, s, part)
	}
	return save(g.store, s, part)
}

// merge adds the moments of the groups of o, which are of other samples.
func (g *groups) merge(o *groups) error {
	if err := g.close(); err != nil {
		return err
	}
	if err := o.close(); err != nil {
		return err
	}
	part := linalg.NewScatter[float64](g.current.P)
	for i := range o.stored {
		if err := load(o.store, &o.stored[i], part); err != nil {
			return err
		}
		if err := g.addTo(i, part); err != nil {
			return err
		}
	}
	return nil
}

// each calls f for each of the first n groups, in order. The scatter is valid during the call.
func (g *groups) each(n int, f func(group int, s *linalg.Scatter[float32]) error) error {
	if err := g.close(); err != nil || n == 0 {
		return err
	}
	s := linalg.NewScatter[float32](g.current.P)
	for i := range n {
		if err := load(g.store, &g.stored[i], s); err != nil {
			return err
		}
		if err := f(i, s); err != nil {
			return err
		}
	}
	return nil
}

// write writes the groups into a state.
func (g *groups) write(w *state.Writer) error {
	if err := g.close(); err != nil {
		return err
	}
	var x32 *linalg.Scatter[float32]
	var x64 *linalg.Scatter[float64]
	for i := range g.stored {
		s := &g.stored[i]
		w.Bool(s.width == double)
		err := error(nil)
		if s.width == double {
			err = writeGroup(w, g, s, &x64)
		} else {
			err = writeGroup(w, g, s, &x32)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeGroup writes a stored group into a state. x is memory, which the first call allocates.
func writeGroup[T float32 | float64](w *state.Writer, g *groups, s *storedScatter, x **linalg.Scatter[T]) error {
	if *x == nil {
		*x = linalg.NewScatter[T](g.current.P)
	}
	err := load(g.store, s, *x)
	(*x).Write(w)
	return err
}

// read replaces the groups by those of a state.
func (g *groups) read(r *state.Reader) error {
	g.allocate()
	g.current.Clear()
	g.open = -1
	for i := range g.stored {
		var err error
		if r.Bool() {
			err = readGroup[float64](r, g, &g.stored[i])
		} else {
			err = readGroup[float32](r, g, &g.stored[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readGroup[T float32 | float64](r *state.Reader, g *groups, s *storedScatter) error {
	x := linalg.NewScatter[T](g.current.P)
	x.Read(r)
	return save(g.store, s, x)
}
