package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/noether-ml/noether/measure/resample"
)

// valuesUpTo returns the values of a transformation up to the policy's strength, and why they are
// not enough, or "".
func (j *judge) valuesUpTo(model, data, transform string) (tried []string, inside []between, why string) {
	var parameters []string
	for v := range j.values {
		if v.model == model && v.data == data && v.transform == transform {
			parameters = append(parameters, v.parameter)
		}
	}
	return j.upTo(transform, parameters, float64(j.Policy.Transforms[transform]))
}

// betweenMark divides the name of a between from those of its neighbours.
const betweenMark = ", between "

// A between is a value of a parameter that was not tried, between two that were.
type between struct {
	name      string  // such as "10, between 5 and 15"
	low, high string  // the neighbours that were tried
	weight    float64 // of high; that of low is 1 - weight
}

// mean returns the value between those at the neighbours, in proportion.
func (b between) mean(low, high float64) float64 { return (1-b.weight)*low + b.weight*high }

// claims returns those at the value between from those at the neighbours. So are the ends of their
// intervals: the mean of two values of a sample varies less than that at a value, which is not known.
func (b between) claims(low, high []Claim) []Claim {
	estimate := func(x, y resample.Estimate) resample.Estimate {
		return resample.Estimate{Mean: b.mean(x.Mean, y.Mean), Low: b.mean(x.Low, y.Low), High: b.mean(x.High, y.High)}
	}
	out := slices.Clone(low)
	for i := range out {
		c, other := &out[i], high[i]
		c.Parameter, c.N = b.name, min(c.N, other.N)
		c.Estimate, c.wide = estimate(c.Estimate, other.Estimate), estimate(c.wide, other.wide)
		c.State, c.Why = cmp.Or(c.State, other.State), cmp.Or(c.Why, other.Why)
	}
	return out
}

// upTo returns the values of a parameter whose strength is at most limit, in order, the limit itself
// where it lies between two values, and why the values do not reach it, or "".
func (j *judge) upTo(transform string, parameters []string, limit float64) (kept []string, inside []between, why string) {
	if len(parameters) == 0 {
		return nil, nil, "it was not measured on these data"
	}
	slices.SortFunc(parameters, func(a, b string) int {
		return cmp.Or(cmp.Compare(valueOf(a), valueOf(b)), strings.Compare(a, b))
	})
	parameters = slices.Compact(parameters)
	if math.IsInf(limit, 1) {
		return parameters, nil, ""
	}
	neutral, err := j.Neutral(transform)
	if err != nil {
		return nil, nil, "which strength its values have is not known: write all"
	}
	largest := map[bool]float64{} // on each side of the neutral value
	for _, p := range parameters {
		v, ok := ParameterValue(p)
		if !ok {
			return nil, nil, "it has no list of values, so its strength is not known: write all, or give it values in the study"
		}
		side := v > neutral
		largest[side] = max(largest[side], math.Abs(v-neutral))
		if math.Abs(v-neutral) <= limit*(1+1e-9) {
			kept = append(kept, p)
		}
	}
	for _, side := range []bool{true, false} {
		reached := slices.ContainsFunc(kept, func(p string) bool {
			v := valueOf(p)
			return math.Abs(math.Abs(v-neutral)-limit) <= 1e-9*max(1, limit) && (v > neutral) == side
		})
		at, tried := largest[side]
		if !tried || reached || limit == 0 {
			continue
		}
		wanted := neutral - limit
		if side {
			wanted = neutral + limit
		}
		if at < limit {
			return kept, inside, fmt.Sprintf("it was tried up to %v, and the policy asks for %v: add the value %v to the study", at, limit, wanted)
		}
		b, ok := neighbours(parameters, wanted, neutral)
		if !ok {
			return kept, inside, fmt.Sprintf("it was not tried at %v: add this value to the study", wanted)
		}
		inside = append(inside, b)
	}
	return kept, inside, ""
}

// ParameterValue returns the number that a claim's parameter is, also of a value between two that were
// tried ("7.5, between 5 and 10"); false if it is no number.
func ParameterValue(parameter string) (float64, bool) {
	text, _, _ := strings.Cut(parameter, betweenMark)
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil
}

// valueOf returns the number in a parameter, 0 if there is none.
func valueOf(parameter string) float64 {
	v, _ := ParameterValue(parameter)
	return v
}

// neighbours returns a value between two of the parameters, which are in order and on one side of
// the neutral value; false if it is between none.
func neighbours(parameters []string, value, neutral float64) (between, bool) {
	at := slices.IndexFunc(parameters, func(p string) bool { return valueOf(p) > value })
	if at <= 0 {
		return between{}, false
	}
	low, high := parameters[at-1], parameters[at]
	a, b := valueOf(low), valueOf(high)
	if a < neutral && b > neutral {
		return between{}, false
	}
	return between{fmt.Sprintf("%v%s%s and %s", value, betweenMark, low, high), low, high, (value - a) / (b - a)}, true
}
