package dense

import (
	"fmt"
	"math"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// effectiveSamples returns the effective number of samples with labels of a class: for w_i labelled
// pixels or boxes of sample i, (sum w_i)^2 / sum w_i^2 (Kish 1965, Survey Sampling). It is the
// number of these samples if they have equally many, and fewer else.
func (a *accuracyAccumulator) effectiveSamples(view, class int) float64 {
	v := a.views[view]
	labels := 0
	for g := range a.site.Layout.Groups {
		if v.precision != nil {
			labels += v.precision.positives[class*len(areaRanges)*v.precision.groups+g]
		} else {
			labels += v.regions[(g*a.site.Output.ClassLimit()+class)*3+2]
		}
	}
	if labels == 0 {
		return 0
	}
	return float64(labels) * float64(labels) / v.squares[class]
}

// rareSpread returns what classes of few samples add to the half-width of an interval, and its
// degrees of freedom. The jackknife over all samples refers to Student's t of as many degrees as
// there are groups, less one. The variance that it finds for a class of m effective samples has
// only m - 1. So for each class with fewer degrees the half-width of what it adds to the score
// (ofClass, without each group) is referred to these. It is at most that of the mean of m values
// whose deviation is half of their range, the largest that there is (Popoviciu 1935); and this is
// it if m is below 2. If a class of any number of samples has the same value in all of them, its
// half-width is Wilson's.
func (a *accuracyAccumulator) rareSpread(values classValues, ofClass [][]measure.Replicate, sign viewSigns) (spread, freedom float64) {
	var halves, freedoms []float64
	groups := float64(a.site.Layout.Groups - 1)
	var labelled viewSigns
	for view := range values {
		for _, v := range values[view] {
			if !math.IsNaN(v) {
				labelled[view]++
			}
		}
	}
	parts := values.parts(sign)
	for k, replicates := range ofClass {
		m, span, same := math.Inf(1), 0., 0. // effective samples; range of what the class adds; Wilson's half-width
		for view, s := range sign {
			if v := values[view][k]; s != 0 && !math.IsNaN(v) {
				m, span = min(m, a.effectiveSamples(view, k)), span+1/labelled[view]
				low, high := resample.Wilson(v, int(m))
				same = math.Hypot(same, max(high-v, v-low)/labelled[view])
			}
		}
		if math.IsInf(m, 1) {
			continue
		}
		low, high := resample.Jackknife(parts[k], a.n, replicates)
		of := (high - low) / 2
		half, degrees := normalQuantile*span/2/math.Sqrt(m), max(1, math.Floor(m-1))
		switch {
		case m < 2:
		case of < 1e-9*span:
			half = same
		case m-1 >= groups:
			continue
		default:
			half = min(half, resample.Refer(of, groups, degrees))
		}
		halves, freedoms = append(halves, math.Sqrt(max(0, half*half-of*of))), append(freedoms, degrees)
	}
	return resample.Combine(halves, freedoms)
}

// normalQuantile is the 97.5 % quantile of the normal distribution.
const normalQuantile = 1.959963984540054

// fewSamples is the effective number of samples with labels of a class below which a score names
// the class in a warning.
const fewSamples = 5

// rareWarnings returns warnings for classes of few samples and of none, by the labels of x.
func (a *accuracyAccumulator) rareWarnings() (warnings []string) {
	var rare []string
	labelled := 0
	for k := range a.site.Output.ClassLimit() {
		m := a.effectiveSamples(cleanView, k)
		if m > 0 {
			labelled++
		}
		if m > 0 && m < fewSamples {
			rare = append(rare, a.site.Output.ClassName(k))
		}
	}
	if len(rare) > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of %d classes are in the labels of fewer than %d samples, which widens the interval: %s", len(rare), labelled, fewSamples, list(rare)))
	}
	if classes := a.knownClasses(); labelled < classes {
		warnings = append(warnings, fmt.Sprintf("the mean is over the %d classes that the labels have, of %d: the interval says nothing of the others", labelled, classes))
	}
	return warnings
}

// knownClasses returns the number of classes that the data and the model share.
func (a *accuracyAccumulator) knownClasses() int {
	if a.site.Truth.Classes == nil {
		return a.site.Output.ClassLimit()
	}
	shared := map[int]bool{}
	for _, k := range a.site.Truth.Classes {
		if k >= 0 {
			shared[k] = true
		}
	}
	return len(shared)
}

// list returns at most three names.
func list(names []string) string {
	if len(names) > 3 {
		return strings.Join(names[:3], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
