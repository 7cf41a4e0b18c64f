package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A parityFinder returns a statistic of one of the models for the inputs of a comparison.
type parityFinder func(model, measureName, statistic string) (measure.Score, bool)

// addPredictions adds the comparisons of predictions from the cells of accuracy,
// effective-invariance and prediction-agreement, or of dense-accuracy, dense-equivariance and
// dense-agreement.
func (r *parityReport) addPredictions(cells []scores.Cell) {
	r.Predictions = []parityPrediction{}
	for _, c := range cells {
		find := func(model, measureName, statistic string) (measure.Score, bool) {
			for _, other := range cells {
				same := other.Transform == c.Transform && other.Parameter == c.Parameter
				if other.Model == model && other.Measure == measureName && (same || strings.HasPrefix(statistic, "clean")) {
					if s, ok := scoreIn(other, statistic); ok {
						return s, true
					}
				}
			}
			return measure.Score{}, false
		}
		switch c.Measure {
		case agreementMeasure:
			r.addPrediction(c, find)
		case outputAgreement:
			r.addOutputs(c, find)
		}
	}
}

func scoreIn(c scores.Cell, statistic string) (measure.Score, bool) {
	for _, l := range c.Layers {
		if i := slices.IndexFunc(l.Scores, func(s measure.Score) bool { return s.Statistic == statistic }); i >= 0 {
			return l.Scores[i], true
		}
	}
	return measure.Score{}, false
}

// A parityRows has the scores of one comparison of predictions.
type parityRows []measure.Score

// add adds a score under the name of a statistic of this command. One without a value has no row, so
// that a condition on it fails.
func (p *parityRows) add(name string, s measure.Score) *interval {
	if s.Statistic = name; !math.IsNaN(s.Value) {
		*p = append(*p, s)
	}
	return new(intervalFrom(s))
}

// compare adds a score of both models and its paired difference, under names that begin with name.
func (p *parityRows) compare(name string, a, b measure.Score) (original, other, difference *interval) {
	return p.add(name+"-original", a), p.add(name+"-other", b), p.add(name+"-difference", subtract(name+"-difference", a, b))
}

// addComparison adds a comparison of predictions with its scores.
func (r *parityReport) addComparison(p parityPrediction, rows parityRows) {
	r.Predictions = append(r.Predictions, p)
	cell := scores.Cell{Model: "original", OtherModel: "other", Data: "data", Measure: parity.MeasureName, Transform: p.Transform, Parameter: p.Parameter,
		Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: rows}}}
	r.rows = append(r.rows, cell.Rows("")...)
}

// addPrediction adds the comparison of one cell of prediction-agreement.
func (r *parityReport) addPrediction(c scores.Cell, find parityFinder) {
	p := parityPrediction{Transform: c.Transform, Parameter: c.Parameter}
	var rows parityRows
	if s, ok := scoreIn(c, "disagreement"); ok {
		p.N = s.N
		p.Agreement = rows.add("agreement", agreementOf(s))
		for _, w := range s.Warnings {
			r.warn(w)
		}
	}
	negative, ok := scoreIn(c, "negative-flips")
	positive, _ := scoreIn(c, "positive-flips")
	if ok {
		p.NegativeFlips, p.PositiveFlips = rows.add("negative-flips", negative), rows.add("positive-flips", positive)
	}
	statistic := "moved"
	if c.Transform == "" {
		statistic = "clean"
	}
	a, ok := find("original", "accuracy", statistic)
	b, _ := find("other", "accuracy", statistic)
	if ok {
		p.AccuracyOriginal, p.AccuracyOther = rows.add("accuracy-original", a), rows.add("accuracy-other", b)
		d := subtract("accuracy-difference", a, b)
		if negative.Value == 0 && positive.Value == 0 { // no sample changes: the bounds are those of the flips
			d.Low, d.High = -negative.High, positive.High
		}
		p.AccuracyDifference = rows.add("accuracy-difference", d)
		for _, w := range append(a.Warnings, b.Warnings...) {
			r.warn(w)
		}
	}
	if a, ok := find("original", "effective-invariance", "ei"); ok {
		b, _ := find("other", "effective-invariance", "ei")
		p.InvarianceOriginal, p.InvarianceOther, p.InvarianceDifference = rows.compare("effective-invariance", a, b)
	}
	r.addComparison(p, rows)
}

// agreementOf returns the agreement of a disagreement.
func agreementOf(s measure.Score) measure.Score {
	s.Value, s.Low, s.High, s.Null, s.Replicates = 1-s.Value, 1-s.High, 1-s.Low, 1-s.Null, nil
	return s
}

// subtract returns b - a with the interval of the paired difference.
func subtract(statistic string, a, b measure.Score) measure.Score {
	d := scores.Subtract(a, b, true)
	return measure.Score{Statistic: statistic, Value: d.Value, Low: d.Low, High: d.High, Null: math.NaN(), N: a.N}
}

// printPredictions prints the clean predictions in lines, and a table of those under
// transformations.
func (r *parityReport) printPredictions(w io.Writer, width int) {
	if len(r.Predictions) == 0 {
		printFolded(w, width, "predictions are not compared: %s", r.NotCompared)
		return
	}
	p := r.Predictions[0]
	if p.Outputs != "" {
		r.printOutputs(w, width, p)
	} else {
		printClasses(w, width, p)
	}
	if len(r.Predictions) > 1 {
		r.printTransformed(w, width)
	}
}

// printClasses prints how far the predicted classes agree.
func printClasses(w io.Writer, width int, p parityPrediction) {
	differ := int(math.Round((1 - float64(p.Agreement.Value)) * float64(p.N)))
	text := fmt.Sprintf("predictions agree for %s of samples: %d of %d differ", plainNumber(p.Agreement), differ, p.N)
	if p.NegativeFlips != nil {
		text += fmt.Sprintf("; %s turn wrong, %s turn right", fourDigits(float64(p.NegativeFlips.Value)), fourDigits(float64(p.PositiveFlips.Value)))
	}
	printFolded(w, width, "%s", text)
	if p.AccuracyOriginal != nil {
		printFolded(w, width, "accuracy %s → %s, difference %s", plainNumber(p.AccuracyOriginal), plainNumber(p.AccuracyOther), difference(p.AccuracyDifference))
	}
}

// printTransformed prints a table of the comparisons under transformations.
func (r *parityReport) printTransformed(w io.Writer, width int) {
	t := textTable{header: []string{"under", "agreement", ""}}
	for _, p := range r.Predictions[1:] {
		name := p.Transform
		if p.Parameter != "" {
			name += "=" + p.Parameter
		}
		t.rows = append(t.rows, append([]string{name}, cellOf(p.Agreement)...))
	}
	for _, c := range []struct {
		title string
		of    func(p parityPrediction) (original, other, difference *interval)
	}{
		{accuracyTitle(r.Predictions[0].Accuracy), func(p parityPrediction) (_, _, _ *interval) {
			return p.AccuracyOriginal, p.AccuracyOther, p.AccuracyDifference
		}},
		{"invariance", func(p parityPrediction) (_, _, _ *interval) {
			return p.InvarianceOriginal, p.InvarianceOther, p.InvarianceDifference
		}},
		{"equivariance", func(p parityPrediction) (_, _, _ *interval) {
			return p.EquivarianceOriginal, p.EquivarianceOther, p.EquivarianceDifference
		}},
	} {
		if _, _, difference := c.of(r.Predictions[1]); difference == nil {
			continue
		}
		t.header = append(t.header, c.title, "", "difference", "")
		for i, p := range r.Predictions[1:] {
			original, other, difference := c.of(p)
			t.rows[i] = append(t.rows[i], cellOf(original)[0], "→ "+cellOf(other)[0], signedValue(difference), cellOf(difference)[1])
		}
	}
	fmt.Fprintln(w)
	fmt.Fprint(w, t.write(width))
	fmt.Fprintln(w)
}

func signedValue(v *interval) string {
	if v == nil {
		return ""
	}
	return signed(float64(v.Value))
}

// cellOf returns the value and the interval of a score, as two texts.
func cellOf(v *interval) []string {
	if v == nil {
		return []string{"", ""}
	}
	return []string{fourDigits(float64(v.Value)), v.bounds()}
}
