package train

import "math"

// A Schedule is what the learning rate is multiplied by in step t (from 1) of total.
type Schedule func(t, total int) float64

// Constant leaves the rate as it is.
func Constant(int, int) float64 { return 1 }

// Cosine lets the rate fall along half a cosine to 0 at the end (Loshchilov and Hutter 2017, without restarts), after it rose
// linearly over the first so many steps.
func Cosine(warmup int) Schedule {
	return func(t, total int) float64 {
		if t <= warmup {
			return float64(t) / float64(warmup)
		}
		if total <= warmup {
			return 1
		}
		return (1 + math.Cos(math.Pi*float64(t-1-warmup)/float64(total-warmup))) / 2
	}
}

// Steps multiplies the rate by a factor at each of some fractions of the way.
func Steps(factor float64, at ...float64) Schedule {
	return func(t, total int) float64 {
		rate := 1.0
		for _, f := range at {
			if float64(t-1) >= f*float64(total) {
				rate *= factor
			}
		}
		return rate
	}
}
