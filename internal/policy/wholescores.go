package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// This file judges scores that are no means over samples, such as the mean average precision of
// boxes, by their replicates.

// lacksScore returns the error of a run without Score; it names those of other outputs.
func (j *judge) lacksScore() error {
	var others []string
	for _, d := range j.Record.Measures {
		for _, s := range d.Statistics {
			if strings.HasPrefix(s.Name, "moved") && slices.ContainsFunc(j.Rows, func(r scores.Row) bool { return r.Measure == d.Name && r.Statistic == s.Name }) {
				others = append(others, d.Name+"."+s.Name)
			}
		}
	}
	if others == nil {
		return fmt.Errorf("the run has no score %s: measure it in the study", j.Score)
	}
	return fmt.Errorf("the run has no score %s: write score: %s in the policy, or measure it in the study", j.Score, strings.Join(others, ", or "))
}

// readScores sets whole, of which values are the views. It returns an error if the run has no such
// score, or if the policy asks for groups of samples.
func (j *judge) readScores() error {
	j.whole = map[view]measure.Score{}
	trial := map[view]int{}
	clean := "clean-" + strings.TrimPrefix(j.selector.Statistic, "moved-") // as of moved-map
	cells, err := j.Cells()
	if err != nil {
		return err
	}
	values := map[view]bool{} // by view without parameter: the transformation has values, so a score without one is a mean
	for _, c := range cells {
		if c.Measure != j.selector.Measure || c.OtherModel != "" {
			continue
		}
		for _, l := range c.Layers {
			for _, s := range l.Scores {
				if l.Name != "" || s.Factor != "" || s.Variant != "" || math.IsNaN(s.Value) {
					continue
				}
				v := view{c.Model, c.Data, c.Transform, c.ParameterOf(&s)}
				switch s.Statistic {
				case j.selector.Statistic:
				case clean:
					v.transform, v.parameter = "", ""
				default:
					continue
				}
				if known, seen := trial[v]; !seen || c.Trial < known { // the mean over trials has the lowest
					j.whole[v], trial[v] = s, c.Trial
				}
				if v.parameter != "" {
					values[view{v.model, v.data, v.transform, ""}] = true
				}
			}
		}
	}
	for v := range j.whole {
		if values[v] {
			delete(j.whole, v)
		} else {
			j.values[v] = nil
		}
	}
	switch {
	case len(j.whole) == 0:
		return j.unmeasured("no score " + j.Score)
	case len(j.Groups) > 0:
		return fmt.Errorf("groups: %s is no mean over samples, so it has no groups: state them for another score, or as data of their own", j.Score)
	}
	return nil
}

// ofWhole returns the claims on a score that is no mean over samples.
func (j *judge) ofWhole(v view, alpha float64) (out []Claim) {
	add := func(c Claim, n int) {
		c.Data, c.Transform, c.Parameter, c.N = v.data, v.transform, v.parameter, n
		c.widen(alpha)
		out = append(out, c)
	}
	own, better := j.whole[v], 1.
	if j.statistic.Direction == measure.Lower {
		better = -1
	}
	if j.Loss != nil {
		name := j.Score
		if v.transform == "" {
			name = j.selector.Measure + "." + own.Statistic
		}
		c := Claim{Text: LossOf + fmt.Sprintf("%s against %s <= %v", name, j.Reference, *j.Loss), Limit: *j.Loss, AtMost: true}
		reference, ok := j.whole[view{j.Reference, v.data, v.transform, v.parameter}]
		if !ok {
			reference.Value, reference.Low, reference.High = math.NaN(), math.NaN(), math.NaN()
		}
		const sameSamples = true // of one run
		d := scores.Subtract(own, reference, sameSamples)
		c.Estimate = resample.Estimate{Mean: better * d.Value, Low: d.Low, High: d.High}
		if better < 0 {
			c.Estimate.Low, c.Estimate.High = -d.High, -d.Low
		}
		n := min(own.N, reference.N)
		if c.Estimate.Low == c.Estimate.High {
			// No sample changes the score. It is at most the share of samples that do.
			_, most := resample.Wilson(0, n)
			c.Estimate.Low, c.Estimate.High = c.Estimate.Mean-most, c.Estimate.Mean+most
		}
		add(c, n)
	}
	if j.Least != nil && v.transform != "" {
		operator := ">="
		if better < 0 {
			operator = "<="
		}
		add(Claim{Text: fmt.Sprintf("%s %s %v", j.Score, operator, *j.Least), Limit: *j.Least, AtMost: better < 0, Estimate: resample.Estimate{Mean: own.Value, Low: own.Low, High: own.High}}, own.N)
	}
	return out
}
