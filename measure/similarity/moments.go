package similarity

import (
	"context"
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure/resample"
)

// singleMoments holds a representation's second moments: of all, and of each group.
type singleMoments struct {
	all    *linalg.Scatter[float64]
	groups []*linalg.Scatter[float32]
	fourth []*fourthMoments // of all, then of each group; nil unless debiased CKA is wanted
}

func newSingleMoments(p, groups int, debiased bool) *singleMoments {
	s := &singleMoments{all: linalg.NewScatter[float64](p)}
	for range groups {
		s.groups = append(s.groups, linalg.NewScatter[float32](p))
	}
	if debiased {
		s.fourth = newFourthMoments(p, p, groups)
	}
	return s
}

// A chunk holds successive observations, centred on their own mean, in float32 or float64.
type chunk struct {
	p      int       // number of variables
	rows32 []float32 // one of rows32 and rows64 is nil
	rows64 []float64
	block  linalg.Block // the rows, with the mean that was subtracted
}

// newChunk32 centres the rows in place.
func newChunk32(rows []float32, p int) chunk {
	return chunk{p: p, rows32: rows, block: linalg.Centre(rows, p)}
}

func newChunk64(rows []float64, p int) chunk {
	return chunk{p: p, rows64: rows, block: linalg.Centre64(rows, p)}
}

// add adds a chunk of one group; without groups, group is not used.
func (s *singleMoments) add(c chunk, group int, scratch *linalg.Scratch) {
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

func (s *singleMoments) constant() bool { return trace(s.all) == 0 }

func trace[T float32 | float64](s *linalg.Scatter[T]) float64 {
	var sum float64
	for _, v := range s.Diagonal() {
		sum += float64(v)
	}
	return sum
}

func (s *singleMoments) merge(o *singleMoments) {
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

func (s *singleMoments) Code(c *state.Codec) {
	c.Values(s.all)
	codeAll(c, s.groups)
	codeAll(c, s.fourth)
}

// pairMoments holds the cross moments of two representations of the same observations.
type pairMoments struct {
	x, y   *singleMoments                  // of each representation
	xy     *linalg.CrossScatter[float64]   // of all observations
	groups []*linalg.CrossScatter[float32] // of each group of a jackknife
	null   []*linalg.CrossScatter[float64] // xy with the rows of y permuted, for each shuffle
	fourth []*fourthMoments                // as in singleMoments
}

// draws is the number of shuffles.
func newPairMoments(x, y *singleMoments, groups, draws int, debiased bool) *pairMoments {
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

// add adds chunks of one group; draw shuffles them for the null.
func (m *pairMoments) add(x, y chunk, group int, draw *rand.Rand, scratch *linalg.Scratch) {
	m.addFourth(x, y, group)
	m.xy.Add(x.block, y.block, m.part(group), scratch)
	if n := x.block.N(); n > 1 {
		for _, null := range m.null {
			null.Add(x.block, y.block.Permuted(resample.Cycle(draw, n)), nil, scratch)
		}
	}
}

func (m *pairMoments) part(group int) *linalg.CrossScatter[float32] {
	if len(m.groups) == 0 {
		return nil
	}
	return m.groups[group]
}

// addFourth must precede the chunks' addition to the second moments, which the views read.
func (m *pairMoments) addFourth(x, y chunk, group int) {
	if m.fourth == nil {
		return
	}
	m.fourth[0].add(viewOfCross(m.xy), x, y)
	if part := m.part(group); part != nil {
		m.fourth[1+group].add(viewOfCross(part), x, y)
	}
}

func (m *pairMoments) merge(o *pairMoments) {
	if m.fourth != nil {
		m.fourth[0].merge(viewOfCross(m.xy), o.fourth[0], viewOfCross(o.xy))
	}
	m.xy.Merge(o.xy)
	for g, part := range m.groups {
		if m.fourth != nil {
			m.fourth[1+g].merge(viewOfCross(part), o.fourth[1+g], viewOfCross(o.groups[g]))
		}
		part.Merge(o.groups[g])
	}
	for i, null := range m.null {
		null.Merge(o.null[i])
	}
}

func (m *pairMoments) Code(c *state.Codec) {
	c.Values(m.xy)
	codeAll(c, m.groups)
	codeAll(c, m.null)
	codeAll(c, m.fourth)
}

// shuffles returns the p x q moments of each shuffle, scaled up for observations without partner.
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

// gather computes moments of two samples, with draws shuffles for the null. sx and sy are known
// moments of x and y or nil. r has the settings and cuts; nil: no groups.
func gather(ctx context.Context, x, y *centredSample, sx, sy *singleMoments, r *calculator, draws int) (*pairMoments, error) {
	groups := max(0, len(r.cuts)-1)
	newX, newY := sx == nil, sy == nil
	if newX {
		sx = newSingleMoments(x.p, groups, r.debiased)
	}
	if newY {
		sy = newSingleMoments(y.p, groups, r.debiased)
	}
	m := newPairMoments(sx, sy, groups, draws, r.debiased)
	scratch, draw := new(linalg.Scratch), r.generator()
	readerX, readerY := newReader(x, y, r.float64), newReader(y, x, r.float64)
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

// walk cuts n observations into chunks of at most size, each within a group from cuts[g] to
// cuts[g+1] - 1 (nil: one), and of two or more unless its group has one.
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

// walkBoth is walk with rows of x and y, valid during the call.
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

type reader struct {
	s      *centredSample
	rows64 []float64 // memory for a chunk
	rows32 []float32 // likewise in float32; nil: chunks are in float64
}

// chunkOf is the most observations of a chunk; Single: float32 is exact.
func newReader(s, other *centredSample, inFloat64 bool) reader {
	size := min(chunkOf(s.p), chunkOf(other.p), s.n) * s.p
	r := reader{s: s, rows64: make([]float64, size)}
	if !inFloat64 && s.source.Single() && other.source.Single() {
		r.rows32 = make([]float32, size)
	}
	return r
}

// read returns the chunk of the observations at positions from to to (exclusive).
func (r reader) read(from, to int) (chunk, error) {
	rows := r.rows64[:(to-from)*r.s.p]
	if err := r.s.read(from, to, rows); err != nil {
		return chunk{}, err
	}
	if r.rows32 == nil {
		return newChunk64(rows, r.s.p), nil
	}
	narrow := r.rows32[:len(rows)]
	for i, v := range rows {
		narrow[i] = float32(v)
	}
	return newChunk32(narrow, r.s.p), nil
}
