package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/measure/resample"
)

// A State says what is known of a claim, or of a model.
type State string

// The states.
const (
	Pass      State = "pass"
	Fail      State = "fail"
	Undecided State = "not enough data"
)

// A Claim is one requirement with its evidence.
type Claim struct {
	State State
	Text  string // such as "loss of accuracy.moved against float <= 0.02"
	Data  string
	// Transform, with the value Parameter of its parameter; "" without one.
	Transform, Parameter string
	Group                string // COLUMN=GROUP; "" for all samples
	resample.Estimate           // with its 95 % interval
	N                    int
	Limit                float64
	AtMost               bool   // the value must be at most Limit, else at least
	Needed               int    // samples that would decide an undecided claim; 0: no number is known
	Why                  string // why it is undecided, or what else is to be known; may be empty

	wide resample.Estimate // the interval of level 1 - 0.05 / claims
}

// Where returns what the claim is about.
func (c Claim) Where() string {
	parts := []string{c.Data}
	if c.Transform != "" {
		t := c.Transform
		if c.Parameter != "" {
			t += "=" + c.Parameter
		}
		parts = append(parts, t)
	} else {
		parts = append(parts, "clean")
	}
	if c.Group != "" {
		parts = append(parts, c.Group)
	}
	return strings.Join(parts, ", ")
}

// A Verdict is what a policy says of a model.
type Verdict struct {
	Model  string
	State  State
	Claims []Claim // those that fail first, then the undecided ones, of each the worst first
	// HoldsUpTo is the largest strength of each transformation up to which all claims hold.
	HoldsUpTo map[string]float64
}

// Judge returns the verdict on each model. It is an error if the run has no model, data,
// transformation or property of that name, or lacks the score.
func (p *Policy) Judge(e Evidence) ([]Verdict, error) {
	j := &judge{Policy: p, Evidence: e}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	var out []Verdict
	for _, model := range j.models {
		// The number of claims is known before their wide intervals are.
		n := len(j.claims(model, 0.05))
		if n == 0 {
			return nil, fmt.Errorf("the run has no scores of model %s that the policy is about", model)
		}
		v := Verdict{Model: model, State: Pass, Claims: j.claims(model, 0.05/float64(n))}
		for i := range v.Claims {
			c := &v.Claims[i]
			c.decide()
			switch {
			case c.State == Fail:
				v.State = Fail
			case c.State == Undecided && v.State == Pass:
				v.State = Undecided
			}
		}
		v.HoldsUpTo = j.holdsUpTo(v.Claims)
		rank := map[State]int{Fail: 0, Undecided: 1, Pass: 2}
		slices.SortStableFunc(v.Claims, func(a, b Claim) int {
			if a.State == b.State && a.State != Pass {
				return cmp.Compare(a.margin(), b.margin())
			}
			return rank[a.State] - rank[b.State]
		})
		out = append(out, v)
	}
	return out, nil
}

// margin returns by how many half-widths of its interval the value keeps the limit; without a value
// NaN, which comes first.
func (c *Claim) margin() float64 {
	distance := c.Mean - c.Limit
	if c.AtMost {
		distance = -distance
	}
	return distance / ((c.High - c.Low) / 2)
}

// widen sets the wide interval, of the level 1 - alpha, from that of the score, if it has one.
func (c *Claim) widen(alpha float64) {
	factor := distuv.UnitNormal.Quantile(1-alpha/2) / distuv.UnitNormal.Quantile(0.975)
	c.wide = resample.Estimate{Mean: c.Mean, Low: c.Mean - factor*(c.Mean-c.Low), High: c.Mean + factor*(c.High-c.Mean)}
	if math.IsNaN(c.Low) || math.IsNaN(c.High) {
		c.State, c.Why = Undecided, "the score has no interval"
	}
}

// decide sets the state of a claim whose estimates are known.
func (c *Claim) decide() {
	sign := 1. // the claim is that sign (value - limit) >= 0
	if c.AtMost {
		sign = -1
	}
	least := func(e resample.Estimate) float64 { return min(sign*(e.Low-c.Limit), sign*(e.High-c.Limit)) }
	most := func(e resample.Estimate) float64 { return max(sign*(e.Low-c.Limit), sign*(e.High-c.Limit)) }
	switch {
	case c.State != "":
		return
	case least(c.Estimate) >= 0:
		c.State = Pass
	case most(c.wide) < 0:
		c.State = Fail
	default:
		c.State = Undecided
		decides := c.Estimate
		if c.margin() < 0 {
			decides = c.wide // only this shows that the claim does not hold
		}
		c.Needed = needed(c.Estimate, decides, c.N, c.Limit)
		if c.Needed == 0 {
			c.Why = cmp.Or(c.Why, "the value is at the limit, and a million samples would not decide")
		}
	}
}

// needed returns how many samples give an interval, of the level of decides, without the limit with
// probability 80 %, if the value and the deviation stay, 0 if more than a million. e has the level
// 95 %.
func needed(e, decides resample.Estimate, n int, limit float64) int {
	z := distuv.UnitNormal.Quantile(0.975)
	distance := math.Abs(e.Mean - limit)
	half, wide := (e.High-e.Low)/2, (decides.High-decides.Low)/2
	if distance == 0 || math.IsNaN(half) {
		return 0
	}
	factor := (wide + half*distuv.UnitNormal.Quantile(0.8)/z) / distance
	most := float64(n) * factor * factor
	if most > 1e6 {
		return 0
	}
	return max(n+1, int(math.Ceil(most)))
}

// holdsUpTo returns, for each transformation of the policy whose claims have strengths, the largest
// one up to which all hold, those without a transformation included; 0 if there is none.
func (j *judge) holdsUpTo(claims []Claim) map[string]float64 {
	out := map[string]float64{}
	clean := !slices.ContainsFunc(claims, func(c Claim) bool { return c.Transform == "" && c.State != Pass })
	for transform := range j.Policy.Transforms {
		neutral, err := j.Neutral(transform)
		if err != nil {
			continue
		}
		holds := map[float64]bool{} // by strength
		for _, c := range claims {
			if v, ok := ParameterValue(c.Parameter); ok && c.Transform == transform {
				at := math.Abs(v - neutral)
				before, seen := holds[at]
				holds[at] = c.State == Pass && (before || !seen)
			}
		}
		if len(holds) > 0 {
			out[transform] = 0
		}
		for _, at := range slices.Sorted(maps.Keys(holds)) {
			if !holds[at] || !clean {
				break
			}
			out[transform] = at
		}
	}
	return out
}
