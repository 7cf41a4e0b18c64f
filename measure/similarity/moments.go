package similarity

import (
	"context"
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// ownMoments holds the second moments of one representation: of all observations, and of each group
// of a jackknife.
type ownMoments struct {
	all    *linalg.Scatter[float64]
	groups []*linalg.Scatter[float32]
	fourth []*fourthMoments // of all, then of each group; nil unless debiased CKA is wanted
}

func newOwnMoments(p, groups int, debiased bool) *ownMoments {
	s := &ownMoments{all: linalg.NewScatter[float64](p)}
	for range groups {
		s.groups = append(s.groups, linalg.NewScatter[float32](p))
	}
	if debiased {
		s.fourth = newFourthMoments(p, p, groups)
	}
	return s
}

// A chunk holds some observations of one representation, centred on their own mean, in float32 or
// in float64.
type chunk struct {
	p      int
	narrow []float32
	wide   []float64
	block  linalg.Block
}

// narrowChunk returns a chunk of rows, which it centres in place.
func narrowChunk(rows []float32, p int) chunk {
	return chunk{p: p, narrow: rows, block: linalg.Centre(rows, p)}
}

// wideChunk is narrowChunk in float64.
func wideChunk(rows []float64, p int) chunk {
	return chunk{p: p, wide: rows, block: linalg.Centre64(rows, p)}
}

// add adds a chunk whose observations all belong to one group.
func (s *ownMoments) add(c chunk, group int, scratch *linalg.Scratch) {
	var part *linalg.Scatter[float32]
	if len(s.groups) > 0 {
		part = s.groups[group]
	}
	if s.fourth != nil {
		s.fourth[0].add(viewOfScatter(s.all), c, c)
		if part != nil {
			s.fourth[1+group].add(viewOfScatter(part), c, c)
		}
	}
	s.all.Add(c.block, part, scratch)
}

// constant reports whether no variable varies.
func (s *ownMoments) constant() bool { return trace(s.all) == 0 }

func trace[T float32 | float64](s *linalg.Scatter[T]) float64 {
	var sum float64
	for _, v := range s.Diagonal() {
		sum += float64(v)
	}
	return sum
}

// merge adds the moments of other observations.
func (s *ownMoments) merge(o *ownMoments) {
	if s.fourth != nil {
		s.fourth[0].merge(viewOfScatter(s.all), o.fourth[0], viewOfScatter(o.all))
	}
	s.all.Merge(o.all)
	for g, part := range s.groups {
		if s.fourth != nil {
			s.fourth[1+g].merge(viewOfScatter(part), o.fourth[1+g], viewOfScatter(o.groups[g]))
		}
		part.Merge(o.groups[g])
	}
}

// A table is a part of the moments that a state holds.
type table interface {
	Write(*state.Writer)
	Read(*state.Reader)
}

func appendTables[T table](dst []table, more []T) []table {
	for _, t := range more {
		dst = append(dst, t)
	}
	return dst
}

// tables returns all parts in the order of a state.
func (s *ownMoments) tables() []table {
	return appendTables(appendTables([]table{s.all}, s.groups), s.fourth)
}

// pairMoments holds the second moments between two representations of the same observations.
type pairMoments struct {
	x, y   *ownMoments
	xy     *linalg.CrossScatter[float64]
	groups []*linalg.CrossScatter[float32]
	null   []*linalg.CrossScatter[float64] // xy of shuffled pairs, one for each draw
	fourth []*fourthMoments                // as in ownMoments
}

func newPairMoments(x, y *ownMoments, groups, draws int, debiased bool) *pairMoments {
	p, q := x.all.P, y.all.P
	out := &pairMoments{x: x, y: y, xy: linalg.NewCrossScatter[float64](p, q)}
	for range groups {
		out.groups = append(out.groups, linalg.NewCrossScatter[float32](p, q))
	}
	for range draws {
		out.null = append(out.null, linalg.NewCrossScatter[float64](p, q))
	}
	if debiased {
		out.fourth = newFourthMoments(p, q, groups)
	}
	return out
}

// add adds chunks of the same observations, all of one group. draw is the generator that shuffles
// them for the null.
func (m *pairMoments) add(x, y chunk, group int, draw *rand.Rand, scratch *linalg.Scratch) {
	var part *linalg.CrossScatter[float32]
	if len(m.groups) > 0 {
		part = m.groups[group]
	}
	if m.fourth != nil {
		m.fourth[0].add(viewOfJoint(m.xy), x, y)
		if part != nil {
			m.fourth[1+group].add(viewOfJoint(part), x, y)
		}
	}
	m.xy.Add(x.block, y.block, part, scratch)
	if n := x.block.N(); n > 1 {
		for _, null := range m.null {
			null.Add(x.block, y.block.Permuted(resample.Cycle(draw, n)), nil, scratch)
		}
	}
}

// merge adds the moments between other observations.
func (m *pairMoments) merge(o *pairMoments) {
	if m.fourth != nil {
		m.fourth[0].merge(viewOfJoint(m.xy), o.fourth[0], viewOfJoint(o.xy))
	}
	m.xy.Merge(o.xy)
	for g, part := range m.groups {
		if m.fourth != nil {
			m.fourth[1+g].merge(viewOfJoint(part), o.fourth[1+g], viewOfJoint(o.groups[g]))
		}
		part.Merge(o.groups[g])
	}
	for i, null := range m.null {
		null.Merge(o.null[i])
	}
}

// tables returns all parts in the order of a state.
func (m *pairMoments) tables() []table {
	return appendTables(appendTables(appendTables([]table{m.xy}, m.groups), m.null), m.fourth)
}

// shuffles returns the moments between x and y of shuffled pairs, for each draw p x q values. Where
// an observation had no other to be paired with, the sums are scaled up to all observations.
func (m *pairMoments) shuffles() [][]float64 {
	var out [][]float64
	for _, null := range m.null {
		if null.N == 0 {
			continue
		}
		data := append([]float64(nil), null.Data...)
		if null.N < m.xy.N {
			scale := float64(m.xy.N) / float64(null.N)
			for i := range data {
				data[i] *= scale
			}
		}
		out = append(out, data)
	}
	return out
}

// gather computes the moments of two samples of the same observations, with so many shuffles for
// the null. sx and sy are the moments of the samples where they are known already, in the same
// groups, and nil otherwise.
func gather(ctx context.Context, x, y *centredSample, sx, sy *ownMoments, r *calculator, draws int) (*pairMoments, error) {
	groups := max(0, len(r.cuts)-1)
	newX, newY := sx == nil, sy == nil
	if newX {
		sx = newOwnMoments(x.p, groups, r.debiased)
	}
	if newY {
		sy = newOwnMoments(y.p, groups, r.debiased)
	}
	m := newPairMoments(sx, sy, groups, draws, r.debiased)
	scratch, draw := new(linalg.Scratch), r.generator()
	readerX, readerY := newReader(x, y, r.double), newReader(y, x, r.double)
	err := walk(ctx, x.n, min(chunkOf(x.p), chunkOf(y.p)), r.cuts, func(from, to, group int) error {
		var cx, cy chunk
		err := inParallel(func() (err error) {
			cx, err = readerX.read(from, to)
			return err
		}, func() (err error) {
			cy, err = readerY.read(from, to)
			return err
		})
		if err != nil {
			return err
		}
		if newX {
			sx.add(cx, group, scratch)
		}
		if newY {
			sy.add(cy, group, scratch)
		}
		m.add(cx, cy, group, draw, scratch)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// walk cuts n observations into chunks of at most size and calls each for them. A chunk lies within
// one group. It has two observations or more where the group has as many.
func walk(ctx context.Context, n, size int, cuts []int, each func(from, to, group int) error) error {
	if cuts == nil {
		cuts = []int{0, n}
	}
	for g := range len(cuts) - 1 {
		length := cuts[g+1] - cuts[g]
		parts := (length + size - 1) / size
		for i := range parts {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := each(cuts[g]+i*length/parts, cuts[g]+(i+1)*length/parts, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// walkBoth is walk with the n observations of each chunk, read from x and from y. The rows are
// valid during the call.
func walkBoth(ctx context.Context, x, y *centredSample, size int, cuts []int, each func(n int, rowsX, rowsY []float64, group int)) error {
	bx, by := make([]float64, size*x.p), make([]float64, size*y.p)
	return walk(ctx, x.n, size, cuts, func(from, to, group int) error {
		rowsX, rowsY := bx[:(to-from)*x.p], by[:(to-from)*y.p]
		if err := x.read(from, to, rowsX); err != nil {
			return err
		}
		if err := y.read(from, to, rowsY); err != nil {
			return err
		}
		each(to-from, rowsX, rowsY, group)
		return nil
	})
}

// A reader reads chunks of a sample.
type reader struct {
	s      *centredSample
	wide   []float64
	narrow []float32 // nil: chunks in float64
}

// newReader returns a reader of s for products with the other sample.
func newReader(s, other *centredSample, double bool) reader {
	size := min(chunkOf(s.p), chunkOf(other.p), s.n) * s.p
	r := reader{s: s, wide: make([]float64, size)}
	if !double && s.source.Single() && other.source.Single() {
		r.narrow = make([]float32, size)
	}
	return r
}

// read returns the chunk of the observations at positions from to to (exclusive).
func (r reader) read(from, to int) (chunk, error) {
	rows := r.wide[:(to-from)*r.s.p]
	if err := r.s.read(from, to, rows); err != nil {
		return chunk{}, err
	}
	if r.narrow == nil {
		return wideChunk(rows, r.s.p), nil
	}
	narrow := r.narrow[:len(rows)]
	for i, v := range rows {
		narrow[i] = float32(v)
	}
	return narrowChunk(narrow, r.s.p), nil
}
