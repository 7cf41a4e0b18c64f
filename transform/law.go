package transform

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// A Law says how a parameter gets its value: drawn uniformly between Low and High, or fixed where the two are equal.
// The zero Law is fixed at 0.
type Law struct {
	Low, High float64
}

// Fixed is the law of a parameter that is always v.
func Fixed(v float64) Law { return Law{v, v} }

// Uniform is the law of a parameter that is drawn evenly between low and high.
func Uniform(low, high float64) Law { return Law{low, high} }

// Fixed reports whether the law allows one value only.
func (l Law) Fixed() bool { return l.Low == l.High }

// Draw picks a value. A fixed law leaves r untouched, so r may then be nil.
func (l Law) Draw(r *rand.Rand) float64 {
	if l.Fixed() {
		return l.Low
	}
	u := r.Float64()
	return (1-u)*l.Low + u*l.High // does not overflow where High - Low would
}

// String writes the law as a study file does: 30, or [-15, 15].
func (l Law) String() string {
	if l.Fixed() {
		return number(l.Low)
	}
	return fmt.Sprintf("[%s, %s]", number(l.Low), number(l.High))
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (Law) arg() {}
