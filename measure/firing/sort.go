package firing

import (
	"math"
	"slices"
)

// maxShort is the largest number of values that are sorted by counting.
const maxShort = 64

// sorted sorts values in place. None is NaN, and the first of them are mostly in order. Few values
// are sorted by comparing all pairs and counting, without branches: each branch would be
// mispredicted half of the time.
func sorted(v []float32) {
	ordered := min(1, len(v))
	for ordered < len(v) && v[ordered-1] <= v[ordered] {
		ordered++
	}
	switch rest := len(v) - ordered; {
	case rest == 0:
	case rest <= 2:
		insert(v, ordered)
	case len(v) > maxShort:
		slices.Sort(v)
	default:
		mergeRest(v, ordered)
	}
}

// insert sorts values, the first of which (ordered) are in order, by insertion.
func insert(v []float32, ordered int) {
	for i := ordered; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && x < v[j-1]; j-- {
			v[j] = v[j-1]
		}
		v[j] = x
	}
}

// mergeRest sorts the values after the first ordered ones, and merges the two parts from both ends.
func mergeRest(v []float32, ordered int) {
	var all [maxShort + 4]float32 // each of the two between bounds
	lowest, highest := float32(math.Inf(-1)), float32(math.Inf(1))
	n := len(v)
	first, second := 1, ordered+3
	all[0], all[ordered+1], all[ordered+2], all[n+3] = lowest, highest, lowest, highest
	copy(all[first:], v[:ordered])
	spread(all[second:n+3], v[ordered:])
	a, b := first, second
	c, d := ordered, n+2
	for low, high := 0, n-1; low <= high; low, high = low+1, high-1 {
		x, y := all[c], all[d]
		v[high] = max(x, y)
		later := less(x, y)
		d -= later
		c -= 1 - later
		x, y = all[a], all[b]
		v[low] = min(x, y)
		sooner := less(y, x)
		b += sooner
		a += 1 - sooner
	}
}

// spread writes values in order, each at the number of smaller values.
func spread(to, values []float32) {
	var places [maxShort]int
	for i, x := range values {
		place := i
		for j, y := range values[:i] {
			sooner := less(x, y)
			places[j] += sooner
			place -= sooner
		}
		places[i] = place
	}
	for i, x := range values {
		to[places[i]] = x
	}
}

// less returns 1 if a < b, else 0.
func less(a, b float32) int {
	if a < b {
		return 1
	}
	return 0
}
