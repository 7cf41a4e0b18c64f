package dataset

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
)

// A subset is a selection of the samples of a source. A sample keeps its index in the source.
type subset struct {
	wrapped
	indices   []int
	positions func() map[int]int // maps indices of the source to positions in indices
}

// Subset returns the samples of a source at the given indices, in that order. An index outside the
// source is an error.
func Subset(src Source, indices []int) (Source, error) {
	for _, p := range indices {
		if p < 0 || p >= src.Len() {
			return nil, fmt.Errorf("there is no sample %d among %d", p, src.Len())
		}
	}
	return newSubset(src, slices.Clone(indices)), nil
}

func newSubset(src Source, indices []int) Source {
	d := newDigest("subset")
	d.add(src.Fingerprint(), indices)
	return subset{wrapped{src, d.String()}, indices, inverse(indices)}
}

func (s subset) Len() int { return len(s.indices) }

func (s subset) At(ctx context.Context, i int, f Frame) (Sample, error) {
	if err := checkAccess(ctx, "subset", i, len(s.indices)); err != nil {
		return Sample{}, err
	}
	return s.Source.At(ctx, s.indices[i], f)
}

// describe returns sample i without its values: its labels and other properties.
func (s subset) describe(ctx context.Context, i int) (Sample, error) {
	return Describe(ctx, s.Source, s.indices[i])
}

// Limit returns the first n samples of a source, or the source itself if it has no more. Of a
// source with trajectories it returns whole places (see Places): the first that have n samples or
// fewer together, but at least one place.
func Limit(src Source, n int) Source {
	if n >= src.Len() {
		return src
	}
	if g := placesOf(src); g != nil && n > 0 {
		indices := g.limit(n).samples()
		slices.Sort(indices)
		return newSubset(src, indices)
	}
	return newSubset(src, Indices(max(0, n)))
}

// Shuffle returns the samples of a source in a random order, for which base is the seed. Of a
// source with trajectories it shuffles the places (see Places); the samples of a place stay in
// their order.
func Shuffle(src Source, base uint64) Source {
	if g := placesOf(src); g != nil {
		return newSubset(src, g.shuffled(base, "dataset: shuffle").samples())
	}
	return newSubset(src, seed.Rand(base, "dataset: shuffle").Perm(src.Len()))
}

// SplitOptions are the options of Split and RandomSubset.
type SplitOptions struct {
	Seed       uint64
	Stratified bool // keep the proportions of the classes, up to rounding
}

// Split returns the part of a source between two fractions in [0, 1]. Samples are put into a random
// order that the seed determines. Those from round(from n) to round(to n), of n samples, are
// selected, in the order of the source. Disjoint intervals have no sample in common, and adjacent
// intervals leave none out: part i of k is the interval i/k to (i+1)/k. Of a source with
// trajectories, the places (see Places) are put into a random order, and a place belongs to the
// part that contains its middle sample.
//
// A stratified order distributes the classes evenly. So the number of samples of a class in a part
// differs by one or two from the exact share of the class; with many classes of one or two samples
// each, by up to the number of classes. It needs the labels: Split then calls Describe for every
// sample, which may have to read it.
func Split(ctx context.Context, src Source, from, to float64, o SplitOptions) (Source, error) {
	if !(0 <= from && from < to && to <= 1) {
		return nil, fmt.Errorf("splitting: part from %v to %v: it needs 0 <= from < to <= 1", from, to)
	}
	n := float64(src.Len())
	return splitRange(ctx, src, int(math.Round(from*n)), int(math.Round(to*n)), o)
}

// RandomSubset returns n random samples, which the seed determines, in the order of the source. Of
// a source with trajectories it returns whole places, as Split does, so their number of samples can
// differ from n. It returns the source itself if that has no more than n.
func RandomSubset(ctx context.Context, src Source, n int, o SplitOptions) (Source, error) {
	if n >= src.Len() {
		return src, nil
	}
	return splitRange(ctx, src, 0, max(0, n), o)
}

// splitRange returns the samples from to to-1 of the random order, in the order of the source.
func splitRange(ctx context.Context, src Source, from, to int, o SplitOptions) (Source, error) {
	if g := placesOf(src); g != nil {
		indices := g.shuffled(o.Seed, "dataset: split").between(from, to).samples()
		slices.Sort(indices)
		return newSubset(src, indices), nil
	}
	order := seed.Rand(o.Seed, "dataset: split").Perm(src.Len())
	if o.Stratified {
		labels, err := sampleLabels(ctx, src)
		if err != nil {
			return nil, fmt.Errorf("stratifying: %w", err)
		}
		interleaveClasses(order, labels)
	}
	indices := slices.Clone(order[from:to])
	slices.Sort(indices)
	return newSubset(src, indices), nil
}

// interleaveClasses reorders samples so that any interval has nearly the proportions of the
// classes: the j-th of the m samples of a class goes to the position (j + 1/2) / m between
// 0, the start, and 1, the end.
func interleaveClasses(order, labels []int) {
	sizes, seen := map[int]float64{}, map[int]float64{}
	for _, l := range labels {
		sizes[l]++
	}
	position := make([]float64, len(labels))
	for _, i := range order {
		l := labels[i]
		position[i] = (seen[l] + 0.5) / sizes[l]
		seen[l]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(position[a], position[b]) })
}

// sampleLabels returns the label of every sample.
func sampleLabels(ctx context.Context, src Source) ([]int, error) {
	labels := make([]int, src.Len())
	for i := range labels {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := Describe(ctx, src, i)
		if err != nil {
			return nil, err
		}
		labels[i] = s.Label
	}
	return labels, nil
}

// Indices returns 0, 1, ..., n-1.
func Indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
