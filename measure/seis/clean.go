package seis

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
)

// A cleanView caches what a layer's accumulators compute from clean activations x. An observation
// is one channel of one sample, of d positions. Results are found by a hash of their input, and
// kept only for several accumulators.
type cleanView struct {
	accumulators atomic.Int32 // number of accumulators that were created with this view

	mu          sync.Mutex      // guards maxSegments and segments
	maxSegments int             // number of segments that are kept: as many as a batch may complete
	segments    []*cleanSegment // the oldest first

	scoring sync.Mutex   // guards scored
	scored  *cleanScores // results of the accumulator whose scores were computed last; nil: none yet
}

// A cleanSegment holds the products of x with x of a segment, some consecutive samples.
type cleanSegment struct {
	hash     uint64 // of the rows of x before they were centred
	n        int    // number of observations
	memory   linalg.Scratch
	products []float32 // d x d, upper triangle
}

func (c *cleanView) shared() bool { return c.accumulators.Load() > 1 }

// withProducts calls f with x's products of a block of at most tile variables, valid during the
// call.
func (c *cleanView) withProducts(b block, f func(products []float32)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.segments {
		if s.n == b.N() && s.hash == b.hash {
			f(s.products)
			return
		}
	}
	s := new(cleanSegment)
	if len(c.segments) >= max(c.maxSegments, 1) {
		s = c.segments[0]
		c.segments = slices.Delete(c.segments, 0, 1)
	}
	s.hash, s.n, s.products = b.hash, b.N(), b.Products(0, b.d, 0, b.d, &s.memory)
	c.segments = append(c.segments, s)
	f(s.products)
}

// reserve raises the number of segments whose products are kept.
func (c *cleanView) reserve(segments int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxSegments = max(c.maxSegments, segments)
}

// Layers of two models may have the same cleanKey; the hashes of their observations differ.
type cleanKey struct {
	layer       string // its name
	channels, d int    // d: number of positions, after pooling
	data        string // name of the data set
}

type cleanViews struct {
	mu     sync.Mutex // guards layers
	layers map[cleanKey]weak.Pointer[cleanView]
}

// view returns the clean view of a layer, creating it for its first accumulator.
func (s *cleanViews) view(site measure.Site, p featureMaps) *cleanView {
	key := cleanKey{site.Layer.Name, p.channels, p.positions(), site.Key.Data}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.layers[key].Value()
	if c == nil {
		if s.layers == nil {
			s.layers = map[cleanKey]weak.Pointer[cleanView]{}
		}
		c = new(cleanView)
		s.layers[key] = weak.Make(c)
	}
	c.accumulators.Add(1)
	return c
}

var hashSeed = maphash.MakeSeed()

// hashClean returns a hash of the x of observations of (x, y), which have d values each.
func hashClean(rows []float32, d int) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for ; len(rows) > 0; rows = rows[2*d:] {
		h.Write(bytesOf(rows[:d]))
	}
	return h.Sum64()
}

// cleanScores holds what Scores computes from x alone: the subspace and each group's scatter in it.
type cleanScores struct {
	hash   uint64               // of the moments of x of all observations
	space  subspace             // of all observations
	mu     sync.Mutex           // guards groups
	groups map[uint64][]float32 // by the hash of a group's moments; nil if no other accumulator has this view
}

// scores returns what depends on x alone: all is the scatter of (x, y), fraction the variance to
// hold; margin keeps the subspace's margin.
func (c *cleanView) scores(all *linalg.Scatter[float64], fraction float64, margin bool) (*cleanScores, error) {
	d := all.P / 2
	if !c.shared() {
		space, err := cleanSpace(all.Square(0, d), d, fraction, margin)
		return &cleanScores{space: space}, err
	}
	c.scoring.Lock()
	defer c.scoring.Unlock()
	square := all.Square(0, d)
	hash := hashOf(bytesOf(square), bytesOf(all.Mean[:d]), bytesOf([]float64{float64(all.N)}))
	if c.scored != nil && c.scored.hash == hash {
		return c.scored, nil
	}
	space, err := cleanSpace(square, d, fraction, margin)
	if err != nil {
		return nil, err
	}
	c.scored = &cleanScores{hash: hash, space: space, groups: map[uint64][]float32{}}
	return c.scored, nil
}

// cleanSpace does what leading does, and removes the margin of the subspace unless margin is set.
func cleanSpace(scatter []float64, d int, fraction float64, margin bool) (subspace, error) {
	space, err := leading(scatter, d, fraction)
	if err == nil && !margin {
		space = space.withoutMargin()
	}
	return space, err
}

// group returns the scatter of a group's x in the subspace, a packed upper triangle, computed if
// not cached.
func (c *cleanScores) group(part *linalg.Scatter[float32], compute func() []float32) []float32 {
	if c.groups == nil {
		return compute()
	}
	d := part.P / 2
	rows := [][]byte{bytesOf(part.Mean[:d])}
	for i := range d {
		rows = append(rows, bytesOf(part.Row(i, i)[:d-i]))
	}
	key := hashOf(rows...)
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.groups[key]
	if !ok {
		known = compute()
		c.groups[key] = known
	}
	return known
}

func hashOf(parts ...[]byte) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum64()
}
