package seis

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// partRows is the number of observations that a part of a block should have. With so many, matrix
// products are fast. An observation is one channel of one sample: its values at all positions, clean
// and transformed.
const partRows = 1024

// minJoined is the smallest number of observations of a part that is joined with others. Layers of
// fewer channels take little time, and their parts are whole blocks, which shards do not divide.
const minJoined = partRows / 2

// minPart is the smallest number of samples in a part of a full block. With only two samples, each
// would always be paired with the other for the null, the scores of shuffled pairs.
const minPart = 4

// parts divides a layout into parts, and joins successive parts to segments. A part is a block, or
// a part of a block with about partRows observations; the pairs of the null are drawn within it. A
// segment is one or several parts of a block, or one or several blocks, whose observations are
// multiplied at once. The parts and segments depend only on the layout, the number of channels and
// that of groups.
type parts struct {
	layout measure.Layout
	groups int // of samples, for the interval (see groups); 0: none. A segment is of one group
	size   int // samples of a part; the last of a block has the remainder too: up to 2 size - 1
	joined int // largest number of parts of a segment
}

// newParts returns the parts of a layout, for samples of a number of channels. groups is the number
// of groups of samples for the interval, or 0.
//
// Parts of at least minJoined observations are joined until a segment has partRows observations, or
// with groups twice as many. The more a segment has, the fewer times its products are added to
// moments that do not fit in the cache, but the more memory it takes. With groups, whose moments are
// rounded to float32, products in float32 of more observations change the intervals little.
func newParts(l measure.Layout, channels, groups int) parts {
	size := (partRows + channels - 1) / channels
	p := parts{layout: l, groups: groups, size: min(max(size, minPart), l.Block), joined: 1}
	rows := partRows
	if groups > 0 {
		rows *= 2
	}
	if n := channels * p.size; n >= minJoined {
		p.joined = (rows + n - 1) / n
	}
	return p
}

// perBlock returns the number of parts of a full block.
func (p parts) perBlock() int { return max(1, p.layout.Block/p.size) }

// index returns the index of the part that contains a place. The last block, if it is shorter, may
// have fewer parts than perBlock.
func (p parts) index(place int) int {
	block := place / p.layout.Block
	from := block * p.layout.Block
	length := min(p.layout.Block, p.layout.N-from)
	return block*p.perBlock() + min((place-from)/p.size, max(1, length/p.size)-1)
}

// start returns the first place of a part: N for the index after the last part.
func (p parts) start(index int) int {
	if index > p.index(p.layout.N-1) {
		return p.layout.N
	}
	return index/p.perBlock()*p.layout.Block + index%p.perBlock()*p.size
}

// segment returns the half-open range of places of the segment that contains a place.
func (p parts) segment(place int) (from, to int) {
	// The places that may be joined: those of a block, if it has several parts, of a group, or all.
	first, end := 0, p.layout.N
	switch {
	case p.perBlock() > 1:
		first = place / p.layout.Block * p.layout.Block
		end = min(first+p.layout.Block, end)
	case p.groups > 0:
		first, end = placesOf(groupOf(place, p.groups, p.layout), p.groups, p.layout)
	}
	index := p.index(place)
	index -= (index - p.index(first)) % p.joined
	return p.start(index), p.start(min(index+p.joined, p.index(end-1)+1))
}

// count returns the number of parts of a segment, a half-open range of places.
func (p parts) count(from, to int) int { return p.index(to-1) - p.index(from) + 1 }

// longest returns the largest number of samples in a segment.
func (p parts) longest() int {
	longest := p.longestOf(p.layout.Block)
	if rest := p.layout.N % p.layout.Block; rest > 0 && p.perBlock() > 1 {
		// The last block may be shorter than the others and thereby have a longer part.
		longest = max(longest, p.longestOf(rest))
	}
	return min(longest, p.layout.N)
}

// longestOf returns the largest number of samples in a segment that begins in a block of the given
// number of samples.
func (p parts) longestOf(block int) int {
	if p.perBlock() == 1 {
		return p.joined * block
	}
	parts := max(1, block/p.size)
	last := block - (parts-1)*p.size // samples of the last part, which has the remainder
	return last + (min(p.joined, parts)-1)*p.size
}

// newShuffledPairs draws the pairs of a part for the null; from is the place of its first sample.
// Each observation is paired with one of another sample and, with several channels, another
// channel. Observations are ordered by sample, then by channel. For a single sample the result is
// nil. The random numbers depend on key and from. If the number of samples is a multiple of four
// and that of channels even, the pairs form cycles of four, which cost less (see cyclesOfFour).
// These are random enough, since the samples are in random order already. Else the field order has
// the partner of each observation.
func newShuffledPairs(key measure.Key, from, samples, channels int) *shuffledPairs {
	if samples < 2 {
		return nil
	}
	g := seed.Rand(key.Seed, "seis null", key.Data, key.Transform, key.Trial, from)
	if samples%4 == 0 && channels%2 == 0 {
		p := cyclesOfFour(matching(g, samples/4*channels, channels))
		return &p
	}
	return &shuffledPairs{order: unrelated(g, samples, channels)}
}

// unrelated returns a random permutation of observations, which are ordered by sample, then by
// channel. No observation is paired with one of the same sample or, with several channels, of the
// same channel. The partners of a sample's channels belong to several samples, for the reason given
// at matching.
func unrelated(g *rand.Rand, samples, channels int) []int {
	n := samples * channels
	p := g.Perm(n)
	related := func(i, j int) bool {
		return i/channels == j/channels || channels > 1 && i%channels == j%channels
	}
	for i := range p {
		for start, k := g.IntN(n), 0; k < n && related(i, p[i]); k++ {
			if j := (start + k) % n; !related(i, p[j]) && !related(j, p[i]) {
				p[i], p[j] = p[j], p[i]
			}
		}
		if related(i, p[i]) { // with few observations it may be that no exchange helps
			return cycles(g, samples, channels)
		}
	}
	return p
}

// cycles is like unrelated, but pairs all channels of a sample with the same other sample.
func cycles(g *rand.Rand, samples, channels int) (order []int) {
	other, channel := resample.Cycle(g, samples), resample.Cycle(g, channels)
	for s := range samples {
		for c := range channels {
			order = append(order, other[s]*channels+channel[c])
		}
	}
	return order
}

// matching returns a random permutation of n observations that is its own inverse: it forms pairs.
// Each observation is paired with one of another channel. n is a multiple of channels, which is
// even. The partners of a sample's channels belong to several samples: if two samples were paired
// in all channels, they would correlate by what their channels have in common.
func matching(g *rand.Rand, n, channels int) []int {
	order, out := g.Perm(n), make([]int, n)
	sameChannel := func(i, j int) bool { return order[i]%channels == order[j]%channels }
	// order[i] and order[i+1] are a pair, for even i; k^1 is the other index of the pair of k.
	for i := 0; i < n; i += 2 {
		// This ends: at most half of the observations are of one channel, so some pair has none of it.
		for k := 0; sameChannel(i, i+1); k++ {
			if !sameChannel(i, k) && !sameChannel(i, k^1) {
				order[i+1], order[k] = order[k], order[i+1]
			}
		}
	}
	for i := 0; i < n; i += 2 {
		out[order[i]], out[order[i+1]] = order[i+1], order[i]
	}
	return out
}
