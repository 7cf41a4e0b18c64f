package seis

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// partRows is the desired number of observations of a part, for fast matrix products.
const partRows = 1024

// minJoined is the smallest number of observations of a part that is joined with others. Layers of
// fewer channels take little time, and their parts are whole blocks.
const minJoined = partRows / 2

// minPart is the least number of samples in a part of a full block: with two, each would always
// pair with the other for the null.
const minPart = 4

// parts divides a layout into parts and joins them to segments. A part is a block or a piece of one
// with about partRows observations, in which the null's pairs are drawn. A segment, multiplied at
// once, is parts of a block or whole blocks. Both depend only on layout, channels and groups.
type parts struct {
	layout measure.Layout
	groups int // of samples, for the interval (see groups); 0: none. A segment is of one group
	size   int // samples of a part; the last of a block has the remainder too: up to 2 size - 1
	joined int // largest number of parts of a segment
}

// newParts returns the parts of a layout; groups is 0 without an interval.
//
// Parts of minJoined observations or more are joined to segments of partRows, twice as many with
// groups. Larger segments are added less often to moments beyond the cache, but take memory. With
// groups, rounded to float32 anyway, longer float32 products hardly change the intervals.
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

func (p parts) perBlock() int { return max(1, p.layout.Block/p.size) }

// index returns the part of a place; a shorter last block may have fewer parts than perBlock.
func (p parts) index(place int) int {
	block := place / p.layout.Block
	from := block * p.layout.Block
	length := min(p.layout.Block, p.layout.N-from)
	return block*p.perBlock() + min((place-from)/p.size, max(1, length/p.size)-1)
}

func (p parts) start(index int) int {
	if index > p.index(p.layout.N-1) {
		return p.layout.N
	}
	return index/p.perBlock()*p.layout.Block + index%p.perBlock()*p.size
}

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

func (p parts) count(from, to int) int { return p.index(to-1) - p.index(from) + 1 }

func (p parts) longest() int {
	longest := p.longestOf(p.layout.Block)
	if rest := p.layout.N % p.layout.Block; rest > 0 && p.perBlock() > 1 {
		// The last block may be shorter than the others and thereby have a longer part.
		longest = max(longest, p.longestOf(rest))
	}
	return min(longest, p.layout.N)
}

// longestOf is longest for segments that begin in a block of so many samples.
func (p parts) longestOf(block int) int {
	if p.perBlock() == 1 {
		return p.joined * block
	}
	parts := max(1, block/p.size)
	last := block - (parts-1)*p.size // samples of the last part, which has the remainder
	return last + (min(p.joined, parts)-1)*p.size
}

// newShuffledPairs draws a part's pairs for the null, by key and from, its first place. Each
// observation is paired with one of another sample and, if there are several, another channel.
// Observations are ordered by sample, then by channel. One sample has none. With a multiple of four
// samples and even channels, pairs form cycles of four, which cost less; samples are in random
// order already.
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

// unrelated permutes observations, ordered by sample, then by channel. None is paired within its
// sample or, if there are several, its channel. A sample's channels have partners of several
// samples: see matching.
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

// matching permutes n observations in pairs of different channels. n is a multiple of channels,
// which is even. Two samples paired in all channels would correlate by what their channels have in
// common, so a sample's partners belong to several.
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
