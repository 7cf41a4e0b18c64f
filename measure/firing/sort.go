package firing

import (
	"math"
	"slices"
)

// mostShort is how many values are sorted without branches, at most.
const mostShort = 64

// sorted sorts values, none of them NaN, of which the first are mostly in order already. Whichever of two is larger is as good as random here, so
// that a branch on it would be foreseen half of the time: few values are compared with each other all, and counted.
func sorted(v []float32) {
	ordered := min(1, len(v))
	for ordered < len(v) && v[ordered-1] <= v[ordered] {
		ordered++
	}
	switch rest := len(v) - ordered; {
	case rest == 0:
	case rest <= 2:
		insert(v, ordered)
	case len(v) > mostShort:
		slices.Sort(v)
	default:
		mergeRest(v, ordered)
	}
}

// insert sorts values of which so many are in order.
func insert(v []float32, ordered int) {
	for i := ordered; i < len(v); i++ {
		x, j := v[i], i
		for ; j > 0 && x < v[j-1]; j-- {
			v[j] = v[j-1]
		}
		v[j] = x
	}
}

// mergeRest sorts values of which so many are in order: it sorts the rest, and merges the two from both ends at once.
func mergeRest(v []float32, ordered int) {
	var all [mostShort + 4]float32 // each of the two between bounds
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

// spread puts values where they belong by the count of those that are less.
func spread(to, values []float32) {
	var places [mostShort]int
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

// less is 1 where a < b, else 0.
func less(a, b float32) int {
	if a < b {
		return 1
	}
	return 0
}
