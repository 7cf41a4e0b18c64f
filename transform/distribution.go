package transform

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// A Distribution is uniform on [Low, High], or fixed where the two are equal; zero: at 0.
type Distribution struct {
	Low, High float64
}

// Fixed returns the distribution of a parameter that is always v.
func Fixed(v float64) Distribution { return Distribution{v, v} }

// Uniform returns the uniform distribution on [low, high].
func Uniform(low, high float64) Distribution { return Distribution{low, high} }

// Fixed reports whether the distribution has one value only.
func (d Distribution) Fixed() bool { return d.Low == d.High }

// Draw returns a drawn value; a fixed distribution does not use r, which may be nil.
func (d Distribution) Draw(r *rand.Rand) float64 {
	if d.Fixed() {
		return d.Low
	}
	u := r.Float64()
	return (1-u)*d.Low + u*d.High // High - Low could overflow
}

// String returns the distribution as study files write it: 30, or [-15, 15].
func (d Distribution) String() string {
	if d.Fixed() {
		return number(d.Low)
	}
	return fmt.Sprintf("[%s, %s]", number(d.Low), number(d.High))
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (Distribution) arg() {}
