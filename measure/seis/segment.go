package seis

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// segmentRows is the number of observations that a segment should have. With so many, matrix
// products are fast, and adding a product to the second moments takes little time in comparison. An
// observation is one channel of one sample: its values at all positions, clean and transformed.
const segmentRows = 1024

// minSegment is the smallest number of samples in a segment of a full block. With only two samples,
// each would always be paired with the other for the null, the scores of shuffled pairs.
const minSegment = 4

// segments divides a layout into segments of consecutive samples, whose observations are multiplied
// at once. A layout is the random order in which samples are read, and a block up to 32 consecutive
// samples in it. A segment is a part of a block, or a block, or two blocks of one group. The bounds
// of segments depend only on the layout, the number of channels and that of groups.
type segments struct {
	layout measure.Layout
	groups int // of samples, for the interval (see groups); 0: none
	size   int // samples of a part of a block; the last part has the remainder too: up to 2 size - 1
	blocks int // largest number of blocks of a segment; with 2, segments are whole blocks
}

// newSegments returns the segments of a layout, for samples of a number of channels. groups is the
// number of groups of samples for the interval, or 0.
//
// Two blocks are joined if that makes segments of segmentRows observations. More would make the
// sums of layers of fewer channels less accurate: products are added in float32 within a segment.
func newSegments(l measure.Layout, channels, groups int) segments {
	size := (segmentRows + channels - 1) / channels
	c := segments{layout: l, groups: groups, size: min(max(size, minSegment), l.Block), blocks: 1}
	if n := channels * l.Block; n < segmentRows && 2*n >= segmentRows {
		c.blocks = 2
	}
	return c
}

// bounds returns the half-open range of places of the segment that contains a place (the position
// of a sample in the layout's order).
func (c segments) bounds(place int) (from, to int) {
	if c.blocks > 1 {
		return c.blockBounds(place)
	}
	block := place / c.layout.Block * c.layout.Block
	end := min(block+c.layout.Block, c.layout.N)
	parts := max(1, (end-block)/c.size)
	part := min((place-block)/c.size, parts-1)
	from, to = block+part*c.size, block+(part+1)*c.size
	if part == parts-1 {
		to = end
	}
	return from, to
}

// blockBounds is bounds for segments of whole blocks.
func (c segments) blockBounds(place int) (from, to int) {
	block := place / c.layout.Block
	first := block - block%c.blocks
	end := min(first+c.blocks, c.layout.Blocks())
	if c.groups > 0 {
		group := func(block int) int { return groupOf(block*c.layout.Block, c.groups, c.layout) }
		for group(first) < group(block) {
			first++
		}
		for group(end-1) > group(block) {
			end--
		}
	}
	return first * c.layout.Block, min(end*c.layout.Block, c.layout.N)
}

// longest returns the largest number of samples in a segment.
func (c segments) longest() int {
	if c.blocks > 1 {
		return min(c.blocks*c.layout.Block, c.layout.N)
	}
	// The last block may be shorter than the others and thereby have a longer segment.
	last := c.layout.N - (c.layout.Blocks()-1)*c.layout.Block
	return max(c.longestOf(c.layout.Block), c.longestOf(last))
}

// longestOf returns the number of samples in the last segment of a block of the given number of
// samples.
func (c segments) longestOf(block int) int { return block - (max(1, block/c.size)-1)*c.size }

// newShuffledPairs draws the pairs of a segment, or of a block of a segment of several, for the
// null; from is the place of its first sample. Each observation is paired with one of another
// sample and, with several channels, another channel. Observations are ordered by sample, then by
// channel. For a single sample the result is nil. The random numbers depend on key and from. If the
// number of samples is a multiple of four and that of channels even, the pairs form cycles of four,
// which cost less (see cyclesOfFour). These are random enough, since the samples are in random
// order already. Else the field order has the partner of each observation.
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
