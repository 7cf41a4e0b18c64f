package train

import "math"

// A Schedule returns the factor of the learning rate in step t (from 1) of total.
type Schedule func(t, total int) float64

// Constant returns 1.
func Constant(int, int) float64 { return 1 }

// Cosine returns cosine annealing towards 0 (Loshchilov and Hutter 2017, without restarts) after a
// linear warm-up over the first warmup steps. The factor would be 0 one step after the last.
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

// MultiStep returns a schedule that multiplies the rate by factor at each of the given fractions of
// all steps.
func MultiStep(factor float64, fractions ...float64) Schedule {
	return func(t, total int) float64 {
		rate := 1.0
		for _, f := range fractions {
			if float64(t-1) >= f*float64(total) {
				rate *= factor
			}
		}
		return rate
	}
}
