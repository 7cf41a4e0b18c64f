package seis

import (
	"math/rand/v2"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// segmentRows is the number of observations that a segment should have: enough for matrix products
// to be fast, and to take much longer than adding them to the moments.
const segmentRows = 1024

// minSegment is the smallest number of samples in a segment of a full block. With two samples, each
// would be the other's partner for the null.
const minSegment = 4

// segments cuts the blocks of a layout into segments of consecutive samples, which are multiplied
// at once. Where a segment begins and ends depends on the layout and the number of channels alone.
type segments struct {
	layout measure.Layout
	size   int // samples of a segment; the last of a block takes the rest too, so it has up to 2 size - 1
}

func newSegments(l measure.Layout, channels int) segments {
	size := (segmentRows + channels - 1) / channels
	return segments{l, min(max(size, minSegment), l.Block)}
}

// of returns the segment that holds the sample at a place, from its first place to the one after
// its last.
func (c segments) of(place int) (from, to int) {
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

// longest returns the largest number of samples in a segment: of a full block, or of the last.
func (c segments) longest() int {
	last := c.layout.N - (c.layout.Blocks()-1)*c.layout.Block
	return max(c.longestOf(c.layout.Block), c.longestOf(last))
}

// longestOf returns the number of samples in the last segment of a block of so many.
func (c segments) longestOf(block int) int { return block - (max(1, block/c.size)-1)*c.size }

// partners pairs the observations of a segment, its samples' channels one after the other, with
// those of other samples and other channels, for the null, or returns nil for a single sample. The
// random numbers depend on the key of the study and on the segment. If the number of samples is a
// multiple of four and that of channels even, the pairs form cycles of four, which cost less. That
// is random enough, since the samples are in random order already.
func partners(key measure.Key, from, samples, channels int) *shuffledPairs {
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

// unrelated returns a random permutation of observations, which are ordered by sample and then by
// channel. It pairs none with an observation of its sample or, with several channels, of its
// channel. As in matching, the channels of a sample are paired with several samples.
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
		if related(i, p[i]) { // few observations, with no exchange that helps
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

// matching pairs n observations, of an even number of channels one after the other, with others of
// another channel, at random: a permutation that is its own inverse. It does not keep to samples,
// since two samples that were paired in all channels would correlate by what their channels have in
// common.
func matching(g *rand.Rand, n, channels int) []int {
	order, out := g.Perm(n), make([]int, n)
	alike := func(i, j int) bool { return order[i]%channels == order[j]%channels }
	for i := 0; i < n; i += 2 {
		for k := 0; alike(i, i+1); k++ { // ends: at most half of the observations are of one channel, so some pair has none of it
			if !alike(i, k) && !alike(i, k^1) {
				order[i+1], order[k] = order[k], order[i+1]
			}
		}
	}
	for i := 0; i < n; i += 2 {
		out[order[i]], out[order[i+1]] = order[i+1], order[i]
	}
	return out
}
