package dataset

import "github.com/noether-ml/noether/internal/seed"

// A grouping lists the samples of a source by place, in the order of the source.
type grouping [][]int

// placesOf returns the places of a source, in the order of their first samples. It returns nil if
// the source has no trajectories.
func placesOf(src Source) grouping {
	if Amounts(src) == nil {
		return nil
	}
	// A union-find structure: first[i] is a sample of the same place, with a smaller or the same
	// index.
	first := Indices(src.Len())
	root := func(i int) int {
		for first[i] != i {
			first[i] = first[first[i]]
			i = first[i]
		}
		return i
	}
	linked := false
	for i := range first {
		for _, p := range Trajectory(src, i) {
			a, b := root(i), root(p)
			first[max(a, b)] = min(a, b)
			linked = true
		}
	}
	if !linked {
		return nil
	}
	var out grouping
	at := map[int]int{}
	for i := range first {
		r := root(i)
		if _, ok := at[r]; !ok {
			at[r] = len(out)
			out = append(out, nil)
		}
		out[at[r]] = append(out[at[r]], i)
	}
	return out
}

// Places returns the indices of the samples of each place of a source. It returns nil if the source
// has no trajectories.
func Places(src Source) [][]int { return placesOf(src) }

// shuffled returns the places in a random order, which the seed base and the name stream determine.
func (g grouping) shuffled(base uint64, stream string) grouping {
	out := make(grouping, len(g))
	for to, from := range seed.Rand(base, stream).Perm(len(g)) {
		out[to] = g[from]
	}
	return out
}

// samples returns the samples of all places, one place after the other.
func (g grouping) samples() []int {
	var out []int
	for _, place := range g {
		out = append(out, place...)
	}
	return out
}

// limit returns as many of the first places as have at most n samples together, but at least one
// place.
func (g grouping) limit(n int) grouping {
	total := 0
	for i, place := range g {
		if total += len(place); total > n {
			return g[:max(1, i)]
		}
	}
	return g
}

// between returns the places whose middle sample lies between the numbers from and to, if the
// samples of all places are numbered one place after the other.
func (g grouping) between(from, to int) grouping {
	var out grouping
	start := 0
	for _, place := range g {
		if twice := 2*start + len(place); 2*from <= twice && twice < 2*to {
			out = append(out, place)
		}
		start += len(place)
	}
	return out
}
