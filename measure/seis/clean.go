package seis

import (
	"hash/maphash"
	"slices"
	"sync"
	"weak"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
)

// cleanProducts are the products of x with x of the segments that were multiplied last. A layer's clean activations are the
// same under every transformation, so the accumulators of a layer that are fed one after another share them.
type cleanProducts struct {
	mu       sync.Mutex
	room     int             // how many segments are kept: those of a batch
	segments []*cleanSegment // the oldest first
}

type cleanSegment struct {
	hash     uint64 // of the rows of x before they were centred
	n        int    // rows
	memory   linalg.Scratch
	products []float32 // d x d, upper triangle
}

// use calls f with the products of a block. They are valid during the call.
func (c *cleanProducts) use(b block, f func(products []float32)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.segments {
		if s.n == b.N() && s.hash == b.hash {
			f(s.products)
			return
		}
	}
	s := new(cleanSegment)
	if len(c.segments) >= max(c.room, 1) {
		s = c.segments[0]
		c.segments = slices.Delete(c.segments, 0, 1)
	}
	s.hash, s.n, s.products = b.hash, b.N(), b.Products(0, b.d, 0, b.d, &s.memory)
	c.segments = append(c.segments, s)
	f(s.products)
}

// makeRoom sees to it that the products of so many segments are kept.
func (c *cleanProducts) makeRoom(segments int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room = max(c.room, segments)
}

// A cleanKey names a layer. Layers of two models may have the same key: the hash tells their observations apart.
type cleanKey struct {
	layer       string
	channels, d int
	data        string
}

// shared holds the clean products of the layers that have accumulators.
type shared struct {
	mu     sync.Mutex
	layers map[cleanKey]weak.Pointer[cleanProducts]
}

// of returns the clean products of a layer, or nil where they do not fit a tile.
func (s *shared) of(site measure.Site, p featureMaps) *cleanProducts {
	key := cleanKey{site.Layer.Name, p.channels, p.positions(), site.Key.Data}
	if key.d > tile {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.layers[key].Value(); c != nil {
		return c
	}
	if s.layers == nil {
		s.layers = map[cleanKey]weak.Pointer[cleanProducts]{}
	}
	c := new(cleanProducts)
	s.layers[key] = weak.Make(c)
	return c
}

var hashSeed = maphash.MakeSeed()

// hashClean returns a hash of the x of observations of (x, y), 2 d values each.
func hashClean(rows []float32, d int) uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for ; len(rows) > 0; rows = rows[2*d:] {
		h.Write(bytesOf(rows[:d]))
	}
	return h.Sum64()
}
