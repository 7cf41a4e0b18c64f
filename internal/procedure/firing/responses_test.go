package firing

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Responses holds the activations of some units, computed by Noether or by another program. P(x) is
// the distribution of the inputs.
type Responses struct {
	Inputs tensor.Tensor // n x units: responses to the inputs from P(x)
	Images tensor.Tensor // m x units: responses to the images on trajectories
	// Steps returns the trajectory of input i, itself included, as indices into Images, or nil if
	// one is missing. All have the same length.
	Steps func(i int) []int
}

// A Unit is the score of one unit. G and L are the global and the local firing rate: the fractions
// of the inputs, and of the images on the trajectories of Z (the references), at which it fires.
type Unit struct {
	Sign      int     // s: 1 or -1
	Threshold float64 // q: the unit fires where Sign h(x) >= q
	Global    float64 // G
	Local     float64 // L
	Score     float64 // S = L / G
	Strongest []int   // Z: indices of the inputs with the largest Sign h(x), from the largest
	Constant  bool    // the unit is constant on the inputs, so that it fires at all of them
}

// ScoreUnits returns the scores of units, using Rate, References (default 10) and whether Sparse is
// empty; if not, the sign is 1. Other shapes, NaN, infinity, too few inputs for the rate and the
// lack of a complete trajectory are errors, the last two measure.ErrTooFew.
func ScoreUnits(r Responses, s Settings) ([]Unit, error) {
	if r.Inputs.Rank() != 2 || r.Images.Rank() != 2 || r.Inputs.Shape[1] != r.Images.Shape[1] {
		return nil, fmt.Errorf("firing: responses have shapes %v (inputs) and %v (images): they must be inputs x units and images x units", r.Inputs.Shape, r.Images.Shape)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("firing: %w", err)
	}
	n, units := r.Inputs.Shape[0], r.Inputs.Shape[1]
	if n < s.minInputs() {
		return nil, fmt.Errorf("firing: %w: %d inputs, but a global rate of %v needs at least %d", measure.ErrTooFew, n, s.Rate, s.minInputs())
	}
	for _, t := range []tensor.Tensor{r.Inputs, r.Images} {
		if i := t.FirstNonFinite(); i >= 0 {
			return nil, fmt.Errorf("firing: response %d of unit %d is NaN or infinite", i/units, i%units)
		}
	}
	g := NewThresholdEstimator(ThresholdOptions{Units: units, Rank: rankOf(n, s.Rate), References: cmp.Or(s.References, 10), sparse: len(s.Sparse) > 0})
	in := make([]Input, n)
	for i := range in {
		in[i] = Input{Index: i, Reference: r.Steps(i) != nil}
	}
	if err := g.Update(r.Inputs, in); err != nil {
		return nil, err
	}
	if g.References() == 0 {
		return nil, fmt.Errorf("firing: %w: no input has a complete trajectory", measure.ErrTooFew)
	}
	out := make([]Unit, units)
	for u := range out {
		out[u] = r.score(g, u)
	}
	return out, nil
}

// score takes the sign with the better score.
func (r Responses) score(g *ThresholdEstimator, u int) Unit {
	var best Unit
	constant := true
	for side := range g.sides {
		sign := int(signs[side])
		q, global := g.Threshold(u, sign)
		strongest := g.Strongest(u, sign)
		local := r.local(u, signs[side], q, strongest)
		constant = constant && global == 1
		if s := Score(local, global); side == 0 || s > best.Score {
			best = Unit{Sign: sign, Threshold: float64(q), Global: global, Local: local, Score: s, Strongest: strongest}
		}
	}
	best.Constant = constant
	return best
}

// local returns L, the fraction of images on the references' trajectories at which unit u fires.
func (r Responses) local(u int, sign, q float32, references []int) float64 {
	fires, all := 0, 0
	for _, z := range references {
		for _, p := range r.Steps(z) {
			all++
			if sign*r.Images.At(p).Data[u] >= q {
				fires++
			}
		}
	}
	return float64(fires) / float64(all)
}

// Threshold returns the ceil(rate n)-th largest of n values, at least one, and the fraction that is
// at least as large, which exceeds rate if values tie. It sorts a copy.
func Threshold(values []float32, rate float64) (q float32, global float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	q = sorted[n-rankOf(n, rate)]
	return q, firingRate(values, q)
}

// firingRate returns the fraction of values that are at least q.
func firingRate(values []float32, q float32) float64 {
	count := 0
	for _, v := range values {
		if v >= q {
			count++
		}
	}
	return float64(count) / float64(len(values))
}
