// Package steady tells how far rounding alone moves the gradients of a model.
//
// The gradient of a network with kinks, such as those of relus and of max-pools, jumps where a unit passes its kink. Where the input of a
// relu is within rounding of 0, one engine has the unit on and another off, and their gradients differ by all that flows through it, though
// neither is wrong. So gradients are computed at an input x and again at nudged ones,
//
//	x_i (1 + k 2^-23), k drawn from -1, 0 and 1 for each number,
//
// which make the engine round anew in every layer. If no unit is near its kink they move by rounding, some 1e-6 of their largest value. If one is,
// they move by what it carries; and among them are some where it is on the side where another engine has it.
package steady

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// Tolerance is how far float32 gradients without kinks are off at most, relative to their largest value.
const Tolerance = 1e-4

// A Gradient computes gradients at inputs.
type Gradient func(ctx context.Context, inputs []tensor.Tensor) ([]tensor.Tensor, error)

// A Report is how one gradient moves. All but Largest is relative to the largest magnitude.
type Report struct {
	Largest float64   `json:"largest"` // magnitude at the inputs as they are
	Moves   []float64 `json:"moves"`   // the largest change of an element, for each nudge, ascending
	Moved   float64   `json:"moved"`   // share of the elements that some nudge moves by more than Tolerance
	// Off is the largest difference from the gradient that is expected, and Nearest the same where it is least: at the inputs as they
	// are or at a nudge. Both are nil where none is expected.
	Off     *float64 `json:"off,omitempty"`
	Nearest *float64 `json:"nearest,omitempty"`
}

// Try computes gradients at the inputs as they are and at n nudges of those for which float says so. expected has a gradient that another
// program has computed, or none (the zero tensor), for each of them.
func Try(ctx context.Context, f Gradient, inputs []tensor.Tensor, float []bool, expected []tensor.Tensor, n int, base uint64) ([]Report, error) {
	clean, err := f(ctx, inputs)
	if err != nil {
		return nil, err
	}
	tries := make([]*try, len(clean))
	for i, g := range clean {
		if tries[i], err = begin(g, expected[i]); err != nil {
			return nil, err
		}
	}
	for k := range n {
		moved, err := f(ctx, nudged(inputs, float, seed.Rand(base, "nudge", k)))
		if err != nil {
			return nil, err
		}
		for i, t := range tries {
			t.add(moved[i].Data)
		}
	}
	reports := make([]Report, len(tries))
	for i, t := range tries {
		reports[i] = t.report()
	}
	return reports, nil
}

// nudged is the inputs with each number moved by a rounding, or not.
func nudged(inputs []tensor.Tensor, float []bool, r *rand.Rand) []tensor.Tensor {
	out := slices.Clone(inputs)
	for i, x := range inputs {
		if !float[i] {
			continue
		}
		out[i] = tensor.New(x.Shape...)
		for e, v := range x.Data {
			out[i].Data[e] = float32(float64(v) * (1 + float64(r.IntN(3)-1)*0x1p-23))
		}
	}
	return out
}

// A try gathers what becomes of one gradient.
type try struct {
	clean, expected []float32
	moved           []bool // elements
	Report
}

func begin(clean, expected tensor.Tensor) (*try, error) {
	t := &try{clean: clean.Data, moved: make([]bool, len(clean.Data))}
	t.Largest = largest(clean.Data)
	if t.Largest-t.Largest != 0 {
		return nil, fmt.Errorf("the gradient holds NaN or infinity")
	}
	if expected.Shape == nil {
		return t, nil
	}
	if !slices.Equal(expected.Shape, clean.Shape) && max(expected.Len(), clean.Len()) > 1 {
		return nil, fmt.Errorf("the gradient has shape %v, and what is expected %v", clean.Shape, expected.Shape)
	}
	if size := largest(expected.Data); size-size != 0 {
		return nil, fmt.Errorf("what is expected holds NaN or infinity")
	}
	t.expected = expected.Data
	off := distance(t.clean, t.expected)
	nearest := off
	t.Off, t.Nearest = &off, &nearest
	return t, nil
}

// add takes in the gradient at a nudge.
func (t *try) add(g []float32) {
	t.Moves = append(t.Moves, distance(g, t.clean))
	for i, v := range g {
		if !(math.Abs(float64(v)-float64(t.clean[i])) <= Tolerance*t.Largest) {
			t.moved[i] = true
		}
	}
	if t.expected != nil {
		*t.Nearest = min(*t.Nearest, distance(g, t.expected))
	}
}

func (t *try) report() Report {
	slices.Sort(t.Moves)
	moved := 0
	for _, is := range t.moved {
		if is {
			moved++
		}
	}
	t.Moved = float64(moved) / float64(max(1, len(t.moved)))
	return t.Report
}

// Median and Most are of the moves.
func (r Report) Median() float64 { return r.Moves[len(r.Moves)/2] }

func (r Report) Most() float64 { return r.Moves[len(r.Moves)-1] }

// Verdict says what a difference from the gradient that was expected is, in words, and whether it is an error.
func (r Report) Verdict() (text string, wrong bool) {
	switch {
	case r.Off == nil && r.Most() <= Tolerance:
		return "steady: no unit is within rounding of a kink", false
	case r.Off == nil:
		return "units are within rounding of their kinks: engines will differ by as much", false
	case *r.Off <= Tolerance:
		return "as expected", false
	case *r.Nearest <= Tolerance:
		return "kinks alone: rounded otherwise it is as expected", false
	case *r.Off <= 3*r.Most():
		return "as far off as rounding moves it", false
	}
	return "further off than rounding explains", true
}

// distance is the largest difference by the largest magnitude of want; infinite where one is NaN.
func distance(got, want []float32) float64 {
	var worst float64
	for i, v := range want {
		d := math.Abs(float64(got[i]) - float64(v))
		if d != d {
			return math.Inf(1)
		}
		worst = max(worst, d)
	}
	if worst == 0 {
		return 0
	}
	return worst / largest(want)
}

// largest is the largest magnitude, NaN where a value is.
func largest(v []float32) float64 {
	var m float64
	for _, x := range v {
		m = max(m, math.Abs(float64(x)))
	}
	return m
}
