// Package quickselect finds the k-th smallest value of a slice without sorting all of it.
package quickselect

import "slices"

// sortBelow is the length up to which sorting is faster than partitioning.
const sortBelow = 32

// Nth returns the value that would be at index k, from 0, if the values were sorted. None may be
// NaN, and k must be an index of values. Nth uses the algorithm Find of Hoare (1961), which
// reorders the values: those before index k are then no larger, and those after it no smaller.
func Nth[T float32 | float64](values []T, k int) T {
	for len(values) > sortBelow {
		pivot := median(values[0], values[len(values)/2], values[len(values)-1])
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

// median returns the median of three values.
func median[T float32 | float64](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }
