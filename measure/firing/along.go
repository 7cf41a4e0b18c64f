package firing

import (
	"fmt"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Responses are the values of some units on images, from wherever they come.
type Responses struct {
	Inputs tensor.Tensor     // n x units: on P(x)
	Images tensor.Tensor     // m x units: on the images of trajectories
	Steps  func(i int) []int // the images that input i becomes, itself among them; nil where one is missing. All have as many
}

// A Unit is what Along finds of one.
type Unit struct {
	Sign      int     // s: 1 or -1
	Threshold float64 // q: it fires where Sign h(x) >= q
	Global    float64 // G
	Local     float64 // L
	Score     float64 // S = L / G
	Strongest []int   // Z: the inputs that drive it most, the strongest first
	Constant  bool    // on the inputs: it fires always, whatever the threshold
}

// Along scores units by their responses. Of the settings it minds Rate, References (10 where not given) and whether anything is
// declared Sparse. The measure that studies name does the same without holding the responses.
func Along(r Responses, s Settings) ([]Unit, error) {
	if r.Inputs.Rank() != 2 || r.Images.Rank() != 2 || r.Inputs.Shape[1] != r.Images.Shape[1] {
		return nil, fmt.Errorf("firing: responses of shape %v to inputs and %v to images; they are inputs x units and images x units", r.Inputs.Shape, r.Images.Shape)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("firing: %w", err)
	}
	n, units := r.Inputs.Shape[0], r.Inputs.Shape[1]
	if n < s.minimum() {
		return nil, fmt.Errorf("firing: %w: %d inputs, and a global rate of %v takes %d", measure.ErrTooFew, n, s.Rate, s.minimum())
	}
	for _, t := range []tensor.Tensor{r.Inputs, r.Images} {
		if i := t.Finite(); i >= 0 {
			return nil, fmt.Errorf("firing: response %d of unit %d is NaN or infinite", i/units, i%units)
		}
	}
	g := NewGlobal(GlobalOptions{Units: units, Rank: Rank(n, s.Rate), References: orTen(s.References), Sparse: len(s.Sparse) > 0})
	in := make([]Input, n)
	for i := range in {
		in[i] = Input{Index: i, Reference: r.Steps(i) != nil}
	}
	if err := g.Update(r.Inputs, in); err != nil {
		return nil, err
	}
	if g.References() == 0 {
		return nil, fmt.Errorf("firing: %w: no input has a complete trajectory around it", measure.ErrTooFew)
	}
	out := make([]Unit, units)
	for u := range out {
		out[u] = r.better(g, u)
	}
	return out, nil
}

func orTen(n int) int {
	if n == 0 {
		return 10
	}
	return n
}

// better is unit u with the sign of the better score.
func (r Responses) better(g *Global, u int) Unit {
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

// local is L: the share of the images around the references at which unit u fires.
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
