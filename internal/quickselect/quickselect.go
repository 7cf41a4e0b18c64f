// Package quickselect finds order statistics without sorting.
package quickselect

import "slices"

// few values are sorted faster than parted.
const few = 32

// Nth returns the value that would be at index k if the values, which are no NaN, were sorted. It reorders them, with those before k no
// larger and those behind it no smaller (Hoare 1961).
func Nth[T float32 | float64](values []T, k int) T {
	for len(values) > few {
		pivot := middle(values[0], values[len(values)/2], values[len(values)-1])
		i, j := 0, len(values)-1
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			values = values[:j+1]
		case k >= i:
			values, k = values[i:], k-i
		default:
			return values[k]
		}
	}
	slices.Sort(values)
	return values[k]
}

// middle is the median of three values: few inputs make bad pivots of it, sorted ones not.
func middle[T float32 | float64](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }
