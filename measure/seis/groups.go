package seis

import (
	"sync"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

// groups holds the second moments of the groups of samples in a Store, for the interval. A group is
// a range of places, so one at a time is open: memory holds its moments alone. Complete groups are
// stored in float32, incomplete ones in float64 until their other samples are added, so that the
// result does not change.
type groups struct {
	store   measure.Store
	current *linalg.Scatter[float64] // of the open group
	open    int                      // index of the open group; negative: none
	sizes   []int                    // number of observations of each complete group
	stored  []storedScatter          // of each group

	closing sync.Mutex // for storing the open group: a run that is stopped saves accumulators while they are scored
}

// newGroups returns n empty groups; current is memory for the open one.
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

// groupOf returns the group, of n, of a place. Its blocks are consecutive: samples are in random
// order.
func groupOf(place, n int, l measure.Layout) int { return place / l.Block * n / l.Blocks() }

// placesOf returns the half-open range of places of a group.
func placesOf(group, n int, l measure.Layout) (from, to int) {
	first := func(group int) int { return min((group*l.Blocks()+n-1)/n*l.Block, l.N) }
	return first(group), first(group + 1)
}

func (g *groups) len() int { return len(g.stored) }

// begin opens a group. One that was stored incomplete is loaded, so that sums are added in the same
// order.
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

func (g *groups) allocate() {
	if g.current.Data == nil {
		g.current.Data = linalg.NewScatter[float64](g.current.P).Data
	}
}

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

// total returns the moments of all, in the memory of the open group, which it closes. Groups are
// added in order and stored precision, so that the division among runs does not matter.
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

// each calls f for the first n groups; the scatter is valid during the call.
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

func (g *groups) code(c *state.Codec) {
	if c.Reads() {
		g.allocate()
		g.current.Clear()
		g.open = -1
	} else {
		c.Fail(g.close())
	}
	var x32 *linalg.Scatter[float32]
	var x64 *linalg.Scatter[float64]
	for i := range g.stored {
		s := &g.stored[i]
		isDouble := s.width == double
		if c.Values(&isDouble); isDouble {
			codeGroup(c, g, s, &x64)
		} else {
			codeGroup(c, g, s, &x32)
		}
	}
}

// codeGroup writes or reads a stored group. x is memory, which the first call allocates.
func codeGroup[T float32 | float64](c *state.Codec, g *groups, s *storedScatter,
	x **linalg.Scatter[T]) {
	if *x == nil {
		*x = linalg.NewScatter[T](g.current.P)
	}
	if !c.Reads() {
		c.Fail(load(g.store, s, *x))
	}
	if c.Values(*x); c.Reads() && !c.Failed() {
		c.Fail(save(g.store, s, *x))
	}
}
