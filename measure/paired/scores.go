package paired

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Scores returns the scores over all samples (part 0), then those over classes with samples (1 +
// index). Without samples it returns measure.ErrTooFew.
func (a *accumulator) Scores() ([]measure.Score, error) {
	if a.values.n(0) == 0 {
		if a.leftOut > 0 {
			return a.undefined(), nil
		}
		return nil, measure.ErrTooFew
	}
	null, err := a.completeNull()
	if err != nil {
		return nil, err
	}
	warnings := slices.Concat(a.constantPrediction(), a.leftOutWarning())
	unlabelled := false
	var scores []measure.Score
	for part := range a.values.parts {
		if a.values.n(part) == 0 {
			continue
		}
		for c, column := range a.spec.Columns {
			if column.Statistic == "" || column.Transformed && !a.transformed {
				continue
			}
			s := a.score(&null, part, c)
			if column.Labelled && math.IsNaN(s.Value) {
				unlabelled = true
				continue
			}
			s.Warnings = append(s.Warnings, warnings...)
			if part == 0 && column.Guessed {
				s.Warnings = append(s.Warnings, a.implausible(s)...)
			}
			scores = append(scores, s)
		}
		for _, d := range a.spec.Derived {
			if s, ok := a.derive(d, part, &null); ok {
				scores = append(scores, s)
			}
		}
	}
	if unlabelled {
		scores[0].Warnings = append(scores[0].Warnings, "some or all samples have no label: statistics that need labels are left out")
	}
	return scores, nil
}

// maxOverconfidence is how far the mean confidence of predictions may be above the interval of
// their accuracy without a warning. Networks on data like those of their training are at most 0.15
// above.
const maxOverconfidence = 0.2

// implausible returns a warning on an accuracy that is no better than a guess, or far below the
// mean confidence of the predictions.
func (a *accumulator) implausible(accuracy measure.Score) []string {
	classes := len(a.site.Classes)
	if accuracy.Low <= 1/float64(classes) {
		return []string{fmt.Sprintf(measure.GuessWarning+" among %d classes: check preprocess, and the mapping of classes to outputs", classes)}
	}
	column := slices.IndexFunc(a.spec.Columns, func(c Column) bool { return c.Sample == "confidence-clean" })
	if column < 0 {
		return nil
	}
	if confidence := a.values.mean(0, column); confidence-accuracy.High > maxOverconfidence {
		return []string{fmt.Sprintf(measure.OverconfidentWarning+" (%.2f on average): check preprocess, and the mapping of classes to outputs, unless the data are unlike those of the training", confidence)}
	}
	return nil
}

// derive returns false if a label is missing, or if the statistic is optional and undefined.
func (a *accumulator) derive(d Derived, part int, null *table) (measure.Score, bool) {
	means, n := a.values.means(-1, part), a.values.n(part)
	for c, column := range a.spec.Columns {
		if d.Labelled && column.Labelled && math.IsNaN(means[c]) {
			return measure.Score{}, false
		}
	}
	s := measure.Plain(d.Statistic, d.Of(means), n)
	described, _ := a.spec.Descriptor.Statistic(d.Statistic)
	s.Min, s.Max, s.Factor = described.Range.Low, described.Range.High, a.factor(part)
	if d.Factor != "" {
		s.Factor = d.Factor
	}
	if math.IsNaN(s.Value) {
		s.Warnings = append(s.Warnings, d.Undefined)
		return s, !d.Optional
	}
	switch {
	case d.Null != nil:
		s.Null = d.Null(means)
	case d.Shuffled && a.dropped:
		s.Warnings = append(s.Warnings, noNull)
	case d.Shuffled:
		s.Null = d.Of(null.means(-1, part))
	}
	for g := range a.values.groups {
		if left := a.values.count[part*a.values.groups+g]; left > 0 && left < n {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: d.Of(a.values.means(g, part)), Left: left})
		}
	}
	if low, high := resample.Jackknife(s.Value, n, s.Replicates); !math.IsNaN(low) {
		if high-low < 1e-9 && d.Extreme != nil { // no group changes the value
			low, high = d.Extreme(means, n)
		}
		s.Low, s.High = max(low, s.Min), min(high, s.Max)
		if d.Warnings != nil {
			s.Warnings = append(s.Warnings, d.Warnings(means, n)...)
		}
	}
	return s, true
}

func (a *accumulator) factor(part int) string {
	if part == 0 {
		return ""
	}
	return "class=" + a.site.Classes[part-1]
}

func (a *accumulator) leftOutWarning() []string {
	if a.leftOut == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d samples are left out: %s", a.leftOut, a.leftOut+a.values.n(0), a.spec.LeftOut)}
}

// undefined returns scores of NaN for no samples.
func (a *accumulator) undefined() (scores []measure.Score) {
	for _, column := range a.spec.Columns {
		if column.Statistic != "" {
			s := measure.Plain(column.Statistic, math.NaN(), 0)
			s.Warnings = a.leftOutWarning()
			scores = append(scores, s)
		}
	}
	return scores
}

// maxClassFraction is the fraction of the predictions above which a single class causes a warning.
const maxClassFraction = 0.9

// constantPrediction warns if nearly all predictions are one class: such are the same under any
// transformation.
func (a *accumulator) constantPrediction() []string {
	if len(a.classes) == 0 || a.values.n(0) < 2 || a.spec.Needs.OtherModel {
		return nil
	}
	top := slices.Max(a.classes)
	fraction := float64(top) / float64(a.values.n(0))
	if fraction <= maxClassFraction {
		return nil
	}
	return []string{fmt.Sprintf(measure.ConstantWarning+": class %q for %.0f %% of the samples, so invariance shows little", a.site.Classes[slices.Index(a.classes, top)], 100*fraction)}
}

// completeNull adds the last shuffled pair of blocks that are open because their last samples could
// not be read.
func (a *accumulator) completeNull() (table, error) {
	null := a.null.clone()
	for _, block := range slices.Sorted(maps.Keys(a.open)) {
		if err := a.closeBlock(&null, block, a.open[block]); err != nil {
			return null, err
		}
	}
	return null, nil
}

// noNull is the warning of scores whose null would not fit into the memory bound.
const noNull = "no null: it would exceed the memory bound"

func (a *accumulator) score(null *table, part, column int) measure.Score {
	c, n := a.spec.Columns[column], a.values.n(part)
	s := measure.Plain(c.Statistic, a.values.mean(part, column), n)
	s.Factor = a.factor(part)
	d, _ := a.spec.Descriptor.Statistic(c.Statistic)
	s.Min, s.Max = d.Range.Low, d.Range.High
	s.Replicates = a.values.replicates(part, column)
	if c.Proportion {
		s.Low, s.High = resample.Wilson(s.Value, n)
	} else if low, high := resample.Jackknife(s.Value, n, s.Replicates); !math.IsNaN(low) {
		s.Low, s.High = max(low, s.Min), min(high, s.Max)
	}
	if c.Difference && s.Value == 0 && s.Low == s.High {
		// Probably no sample changes. The mean is at most the fraction of samples that change.
		_, s.High = resample.Wilson(0, n)
		s.Low = -s.High
	}
	switch {
	case c.Null != nil:
		s.Null = c.Null(a.values.means(-1, part))
	case d.Null == "":
	case a.dropped:
		s.Warnings = append(s.Warnings, noNull)
	default:
		s.Null = null.mean(part, column)
	}
	return s
}

// Samples returns the stored values of each sample, in the order of indices, then the projection,
// as far as the site asks for them.
func (a *accumulator) Samples() []measure.SampleScore {
	order := indices(len(a.index))
	slices.SortFunc(order, func(i, j int) int { return a.index[i] - a.index[j] })
	var out []measure.SampleScore
	for _, i := range order {
		row := a.kept[i*a.spec.storedColumns():]
		for _, c := range a.spec.Columns {
			if c.Sample == "" {
				continue
			}
			if a.transformed || !c.Transformed {
				out = append(out, measure.SampleScore{Index: a.index[i], Statistic: c.Sample, Value: row[0]})
			}
			row = row[1:]
		}
	}
	if a.projection != nil {
		out = append(out, a.projection.samples()...)
	}
	return out
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
