package policy

import (
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// keeps returns the claims of a tolerance, from the intervals of the scores: at each value of a
// transformation of the policy up to its strength, else at every value.
func (j *judge) keeps(model, data string, t scores.Tolerance, alpha float64) []Claim {
	byTransform := map[string]map[string]scores.Row{}
	for _, r := range j.Rows {
		s := t.Selector
		of := r.Model == model || r.OtherModel == model && (j.Reference == "" || r.Model == j.Reference)
		if !of || r.Data != data || r.Measure != s.Measure || r.Statistic != s.Statistic || r.Factor != "" || r.Variant != "" ||
			s.Layer != "" && r.Layer != s.Layer || s.Transform != "" && r.Transform != s.Transform {
			continue
		}
		if s.Transform == "" && len(j.Policy.Transforms) > 0 {
			if _, named := j.Policy.Transforms[r.Transform]; !named {
				continue
			}
		}
		if byTransform[r.Transform] == nil {
			byTransform[r.Transform] = map[string]scores.Row{}
		}
		key := r.Parameter + "\x00" + r.Layer + "\x00" + r.OtherModel
		if known, ok := byTransform[r.Transform][key]; !ok || r.Trial == scores.MeanOverTrials && known.Trial != scores.MeanOverTrials {
			byTransform[r.Transform][key] = r
		}
	}
	var out []Claim
	for _, transform := range slices.Sorted(maps.Keys(byTransform)) {
		rows := byTransform[transform]
		limit := math.Inf(1)
		if s, named := j.Policy.Transforms[transform]; named {
			limit = float64(s)
		}
		var parameters []string
		for _, r := range rows {
			if r.Parameter != "" || len(rows) == 1 || !slices.ContainsFunc(slices.Collect(maps.Values(rows)), func(o scores.Row) bool { return o.Layer == r.Layer && o.Parameter != "" }) {
				parameters = append(parameters, r.Parameter)
			}
		}
		kept, inside, why := j.upTo(transform, parameters, limit)
		for _, b := range inside {
			for _, low := range slices.Collect(maps.Values(rows)) {
				key := "\x00" + low.Layer + "\x00" + low.OtherModel
				high, ok := rows[b.high+key]
				if !ok || low.Parameter != b.low {
					continue
				}
				low.Parameter, low.N = b.name, min(low.N, high.N)
				low.Value, low.Low, low.High = b.mean(low.Value, high.Value), b.mean(low.Low, high.Low), b.mean(low.High, high.High)
				rows[b.name+key] = low
			}
			kept = append(kept, b.name)
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			r := rows[key]
			if !slices.Contains(kept, r.Parameter) {
				continue
			}
			c := Claim{Text: t.String(), Data: data, Transform: transform, Parameter: r.Parameter, Estimate: resample.Estimate{Mean: r.Value, Low: r.Low, High: r.High},
				N: r.N, Limit: t.Limit, AtMost: t.AtMost}
			if r.Layer != "" && t.Selector.Layer == "" {
				c.Group = r.Layer
			}
			c.widen(alpha)
			out = append(out, c)
		}
		if why != "" {
			c := j.untried(data, transform, why)
			c.Text = t.String()
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		c := j.untried(data, t.Selector.Transform, "the run has no such score")
		c.Text = t.String()
		out = append(out, c)
	}
	return out
}
