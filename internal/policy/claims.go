package policy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// claims returns the claims on a model; the wide intervals have the level 1 - alpha.
func (j *judge) claims(model string, alpha float64) []Claim {
	var out []Claim
	for _, data := range j.data {
		out = append(out, j.alarms(model, data)...)
		clean := view{model: model, data: data}
		if _, known := j.whole[clean]; j.Loss != nil && j.Reference != "" && (known || j.selector.Measure == "accuracy") {
			out = append(out, j.ofValue(clean, alpha)...)
		}
		for _, transform := range slices.Sorted(maps.Keys(j.Policy.Transforms)) {
			if j.Loss == nil && j.Least == nil {
				break
			}
			tried, inside, why := j.valuesUpTo(model, data, transform)
			at := func(parameter string) []Claim { return j.ofValue(view{model, data, transform, parameter}, alpha) }
			for _, parameter := range tried {
				out = append(out, at(parameter)...)
			}
			for _, b := range inside {
				out = append(out, b.claims(at(b.low), at(b.high))...)
			}
			if why != "" {
				out = append(out, j.untried(data, transform, why))
			}
		}
		for _, t := range j.tolerances {
			out = append(out, j.keeps(model, data, t, alpha)...)
		}
	}
	return out
}

// alarms returns a claim that is not decided for the model, or the reference, whose scores on some data
// have a warning that changes what they mean, such as that of a forgotten normalisation.
func (j *judge) alarms(model, data string) (out []Claim) {
	if slices.ContainsFunc(j.Record.Data, func(d scores.DataRecord) bool { return d.Name == data && d.Corruption != "" }) {
		return nil // such an accuracy is no alarm there
	}
	for _, of := range []string{model, j.Reference} {
		for _, r := range j.Rows {
			if of == "" || r.Model != of || r.Data != data || r.OtherModel != "" {
				continue
			}
			warnings := strings.Split(r.Warning, "; ")
			if at := slices.IndexFunc(warnings, measure.ChangesMeaning); at >= 0 {
				c := j.untried(data, "", warnings[at])
				c.Text = "the scores of " + of + " mean what they seem to"
				out = append(out, c)
				break
			}
		}
	}
	return out
}

func (j *judge) untried(data, transform, why string) Claim {
	nan := math.NaN()
	return Claim{State: Undecided, Text: j.Score, Data: data, Transform: transform, Estimate: resample.Estimate{Mean: nan, Low: nan, High: nan}, Limit: nan, Why: why}
}

// ofValue returns the claims on the score in a view: of all samples and of each group.
func (j *judge) ofValue(v view, alpha float64) []Claim {
	if j.whole != nil {
		return j.ofWhole(v, alpha)
	}
	var out []Claim
	better := 1.
	if j.statistic.Direction == measure.Lower {
		better = -1
	}
	own := j.values[v]
	if j.Loss != nil {
		reference := view{cmp.Or(j.Reference, v.model), v.data, v.transform, v.parameter}
		against := "against " + j.Reference
		if j.Reference == "" {
			reference = view{v.model, v.data, "", ""}
			against = "against clean"
		}
		differences := map[int]float64{}
		for i, x := range j.values[reference] {
			if y, ok := own[i]; ok {
				differences[i] = better * (x - y)
			}
		}
		within := measure.MinusOneToOne
		if !j.statistic.Range.Bounded() || j.statistic.Range.High-j.statistic.Range.Low != 1 {
			within = measure.AnyNumber
		}
		name := j.Score
		if v.transform == "" {
			name = "accuracy.clean"
		}
		base := Claim{Text: LossOf + fmt.Sprintf("%s %s <= %v", name, against, *j.Loss), Limit: *j.Loss, AtMost: true}
		out = append(out, j.divide(base, v, differences, within, alpha)...)
	}
	if j.Least != nil && v.transform != "" {
		operator := ">="
		if better < 0 {
			operator = "<="
		}
		base := Claim{Text: fmt.Sprintf("%s %s %v", j.Score, operator, *j.Least), Limit: *j.Least, AtMost: better < 0}
		out = append(out, j.divide(base, v, own, j.statistic.Range, alpha)...)
	}
	return out
}

// divide makes a claim on values of all samples, and of each group.
func (j *judge) divide(base Claim, v view, values map[int]float64, within measure.Range, alpha float64) []Claim {
	base.Data, base.Transform, base.Parameter = v.data, v.transform, v.parameter
	claim := func(group string, of []float64) Claim {
		c := base
		c.Group, c.N = group, len(of)
		c.Estimate, c.wide = resample.Mean(of, within, 0.05), resample.Mean(of, within, alpha)
		if len(of) == 0 {
			c.State, c.Why = Undecided, "no values of these samples are kept of both models"
		} else if total := j.total[v]; group == "" && len(of) < total {
			c.Why = fmt.Sprintf("values are kept of %d of %d samples: set samples: true in the study", len(of), total)
		}
		return c
	}
	var all []float64
	for _, i := range slices.Sorted(maps.Keys(values)) {
		all = append(all, values[i])
	}
	out := []Claim{claim("", all)}
	for _, g := range j.Groupings[v.data] {
		if !slices.Contains(j.Groups, g.Column) {
			continue
		}
		for i, of := range g.Divide(values) {
			out = append(out, claim(g.Column+"="+g.Groups[i], of))
		}
	}
	return out
}
