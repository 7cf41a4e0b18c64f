package similarity

import (
	"context"
	"math/rand/v2"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// A side holds the second moments of one representation: of all observations, and of each group of a jackknife.
type side struct {
	all    *linalg.Scatter[float64]
	groups []*linalg.Scatter[float32]
	// norms and groupNorms are what debiased CKA of the side with itself needs beside; nil where nobody wants it.
	norms      *quartic
	groupNorms []*quartic
}

func newSide(p, groups int, debiased bool) *side {
	s := &side{all: linalg.NewScatter[float64](p)}
	for range groups {
		s.groups = append(s.groups, linalg.NewScatter[float32](p))
	}
	if debiased {
		s.norms = newQuartic(p, p)
		for range groups {
			s.groupNorms = append(s.groupNorms, newQuartic(p, p))
		}
	}
	return s
}

// A chunk is some observations of one representation: centred on their own mean, in float32 or in float64.
type chunk struct {
	p      int
	narrow []float32
	wide   []float64
	block  linalg.Block
}

// narrowChunk takes over rows, which are overwritten.
func narrowChunk(rows []float32, p int) chunk {
	return chunk{p: p, narrow: rows, block: linalg.Centre(rows, p)}
}

func wideChunk(rows []float64, p int) chunk {
	return chunk{p: p, wide: rows, block: linalg.CentreWide(rows, p)}
}

// add adds a chunk, whose observations all belong to one group.
func (s *side) add(c chunk, group int, scratch *linalg.Scratch) {
	if s.norms != nil {
		s.norms.prepare(scatterMoments(s.all), c, c)
	}
	var part *linalg.Scatter[float32]
	if len(s.groups) > 0 {
		part = s.groups[group]
		if s.norms != nil {
			s.groupNorms[group].prepare(scatterMoments(part), c, c)
		}
	}
	s.all.Add(c.block, part, scratch)
	if s.norms != nil {
		s.norms.take(c, c, s.all.Mean, s.all.Mean)
		if part != nil {
			s.groupNorms[group].take(c, c, part.Mean, part.Mean)
		}
	}
}

// constant reports whether nothing varies.
func (s *side) constant() bool { return trace(s.all) == 0 }

func trace[T float32 | float64](s *linalg.Scatter[T]) float64 {
	var sum float64
	for _, v := range s.Variances() {
		sum += float64(v)
	}
	return sum
}

// A pair holds the second moments between two representations of the same observations.
type pair struct {
	x, y       *side
	xy         *linalg.Joint[float64]
	groups     []*linalg.Joint[float32]
	null       []*linalg.Joint[float64] // xy of shuffled pairs, one for each draw
	norms      *quartic
	groupNorms []*quartic
}

func newPair(x, y *side, groups, draws int, debiased bool) *pair {
	p, q := x.all.P, y.all.P
	out := &pair{x: x, y: y, xy: linalg.NewJoint[float64](p, q)}
	for range groups {
		out.groups = append(out.groups, linalg.NewJoint[float32](p, q))
	}
	for range draws {
		out.null = append(out.null, linalg.NewJoint[float64](p, q))
	}
	if debiased {
		out.norms = newQuartic(p, q)
		for range groups {
			out.groupNorms = append(out.groupNorms, newQuartic(p, q))
		}
	}
	return out
}

// add adds chunks of the same observations, all of one group. draw is the generator that shuffles them for the null.
func (m *pair) add(x, y chunk, group int, draw *rand.Rand, scratch *linalg.Scratch) {
	if m.norms != nil {
		m.norms.prepare(jointMoments(m.xy), x, y)
	}
	var part *linalg.Joint[float32]
	if len(m.groups) > 0 {
		part = m.groups[group]
		if m.norms != nil {
			m.groupNorms[group].prepare(jointMoments(part), x, y)
		}
	}
	m.xy.Add(x.block, y.block, part, scratch)
	if m.norms != nil {
		m.norms.take(x, y, m.xy.MeanX, m.xy.MeanY)
		if part != nil {
			m.groupNorms[group].take(x, y, part.MeanX, part.MeanY)
		}
	}
	if n := x.block.N(); n > 1 {
		for _, null := range m.null {
			null.Add(x.block, y.block.Permuted(resample.Cycle(draw, n)), nil, scratch)
		}
	}
}

// shuffles are the moments between x and y of pairs that do not belong together, one for each draw. An observation that had no other
// to be paired with is stood for by the others.
func (m *pair) shuffles() [][]float64 {
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

// needs says what moments are to be gathered for.
type needs struct {
	cuts     []int // places at which groups of the jackknife begin, and the end; nil: no groups
	wide     bool  // products in float64
	debiased bool
	draws    int // shuffles for the null
	draw     *rand.Rand
}

func (o needs) groups() int { return max(0, len(o.cuts)-1) }

// gather computes the moments of two samples of the same observations. A side that has been gathered before, in the same
// groups, is given and used again; else it is nil.
func gather(ctx context.Context, x, y *sample, sx, sy *side, o needs) (*pair, error) {
	fresh := [2]bool{sx == nil, sy == nil}
	if fresh[0] {
		sx = newSide(x.p, o.groups(), o.debiased)
	}
	if fresh[1] {
		sy = newSide(y.p, o.groups(), o.debiased)
	}
	m := newPair(sx, sy, o.groups(), o.draws, o.debiased)
	scratch := new(linalg.Scratch)
	readers := [2]reader{newReader(x, y, o), newReader(y, x, o)}
	err := walk(ctx, x.n, min(chunkOf(x.p), chunkOf(y.p)), o.cuts, func(from, to, group int) error {
		var cx, cy chunk
		err := both(func() (err error) {
			cx, err = readers[0].read(from, to)
			return err
		}, func() (err error) {
			cy, err = readers[1].read(from, to)
			return err
		})
		if err != nil {
			return err
		}
		if fresh[0] {
			sx.add(cx, group, scratch)
		}
		if fresh[1] {
			sy.add(cy, group, scratch)
		}
		m.add(cx, cy, group, o.draw, scratch)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// walk cuts n places into chunks of at most size, each within one group, and of two places at least where the group has
// as many.
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

// A reader turns places of a sample into chunks.
type reader struct {
	s      *sample
	wide   []float64
	narrow []float32 // nil: chunks in float64
}

// newReader returns a reader of s for products with the other sample.
func newReader(s, other *sample, o needs) reader {
	size := min(chunkOf(s.p), chunkOf(other.p), s.n) * s.p
	r := reader{s: s, wide: make([]float64, size)}
	if !o.wide && s.single() && other.single() {
		r.narrow = make([]float32, size)
	}
	return r
}

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

// merge adds the moments of other observations.
func (s *side) merge(o *side) {
	if s.norms != nil {
		s.norms.merge(scatterMoments(s.all), o.norms, scatterMoments(o.all))
	}
	s.all.Merge(o.all)
	for g, part := range s.groups {
		if s.norms != nil {
			s.groupNorms[g].merge(scatterMoments(part), o.groupNorms[g], scatterMoments(o.groups[g]))
		}
		part.Merge(o.groups[g])
	}
}

// merge adds the moments between other observations.
func (m *pair) merge(o *pair) {
	if m.norms != nil {
		m.norms.merge(jointMoments(m.xy), o.norms, jointMoments(o.xy))
	}
	m.xy.Merge(o.xy)
	for g, part := range m.groups {
		if m.norms != nil {
			m.groupNorms[g].merge(jointMoments(part), o.groupNorms[g], jointMoments(o.groups[g]))
		}
		part.Merge(o.groups[g])
	}
	for i, null := range m.null {
		null.Merge(o.null[i])
	}
}
