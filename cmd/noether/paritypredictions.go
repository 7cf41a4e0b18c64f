package main

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// addPredictions adds the comparisons of predictions from the cells of accuracy,
// effective-invariance and prediction-agreement.
func (r *parityReport) addPredictions(cells []scores.Cell) {
	r.Predictions = []parityPrediction{}
	for _, c := range cells {
		if c.Measure != agreementMeasure {
			continue
		}
		find := func(model, measureName, statistic string) (measure.Score, bool) {
			for _, other := range cells {
				same := other.Transform == c.Transform && other.Parameter == c.Parameter
				if other.Model == model && other.Measure == measureName && (same || statistic == "clean") {
					if s, ok := scoreIn(other, statistic); ok {
						return s, true
					}
				}
			}
			return measure.Score{}, false
		}
		r.addPrediction(c, find)
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

// addPrediction adds the comparison of one cell of prediction-agreement. find returns a statistic
// of one of the models for the same inputs.
func (r *parityReport) addPrediction(c scores.Cell, find func(model, measureName, statistic string) (measure.Score, bool)) {
	p := parityPrediction{Transform: c.Transform, Parameter: c.Parameter}
	var rows []measure.Score
	add := func(name string, s measure.Score) *interval {
		s.Statistic = name
		rows = append(rows, s)
		return new(intervalFrom(s))
	}
	if s, ok := scoreIn(c, "disagreement"); ok {
		p.N = s.N
		p.Agreement = add("agreement", agreementOf(s))
		for _, w := range s.Warnings {
			r.warn(w)
		}
	}
	negative, ok := scoreIn(c, "negative-flips")
	positive, _ := scoreIn(c, "positive-flips")
	if ok {
		p.NegativeFlips, p.PositiveFlips = add("negative-flips", negative), add("positive-flips", positive)
	}
	statistic := "moved"
	if c.Transform == "" {
		statistic = "clean"
	}
	a, ok := find("original", "accuracy", statistic)
	b, _ := find("other", "accuracy", statistic)
	if ok {
		p.AccuracyOriginal, p.AccuracyOther = add("accuracy-original", a), add("accuracy-other", b)
		d := subtract("accuracy-difference", a, b)
		if negative.Value == 0 && positive.Value == 0 { // no sample changes: the bounds are those of the flips
			d.Low, d.High = -negative.High, positive.High
		}
		p.AccuracyDifference = add("accuracy-difference", d)
		for _, w := range append(a.Warnings, b.Warnings...) {
			r.warn(w)
		}
	}
	if a, ok := find("original", "effective-invariance", "ei"); ok {
		b, _ := find("other", "effective-invariance", "ei")
		p.InvarianceOriginal, p.InvarianceOther = add("effective-invariance-original", a), add("effective-invariance-other", b)
		p.InvarianceDifference = add("effective-invariance-difference", subtract("effective-invariance-difference", a, b))
	}
	r.Predictions = append(r.Predictions, p)
	cell := scores.Cell{Model: "original", OtherModel: "other", Data: "data", Measure: parity.MeasureName, Transform: c.Transform, Parameter: c.Parameter,
		Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: rows}}}
	r.rows = append(r.rows, cell.Rows("")...)
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
		fmt.Fprintln(w, "predictions: the models give no class scores to compare")
		return
	}
	p := r.Predictions[0]
	differ := int(math.Round((1 - float64(p.Agreement.Value)) * float64(p.N)))
	text := fmt.Sprintf("predictions agree for %s of samples: %d of %d differ", plainNumber(p.Agreement), differ, p.N)
	if p.NegativeFlips != nil {
		text += fmt.Sprintf("; %s turn wrong, %s turn right", fourDigits(float64(p.NegativeFlips.Value)), fourDigits(float64(p.PositiveFlips.Value)))
	}
	printFolded(w, width, "%s", text)
	if p.AccuracyOriginal != nil {
		printFolded(w, width, "accuracy %s → %s, difference %s", plainNumber(p.AccuracyOriginal), plainNumber(p.AccuracyOther), difference(p.AccuracyDifference))
	}
	if len(r.Predictions) == 1 {
		return
	}
	t := textTable{header: []string{"under", "agreement", "", "accuracy", "", "difference", "", "invariance", "", "difference", ""}}
	for _, p := range r.Predictions[1:] {
		name := p.Transform
		if p.Parameter != "" {
			name += "=" + p.Parameter
		}
		row := []string{name}
		for _, v := range []*interval{p.Agreement, p.AccuracyOriginal, p.AccuracyOther, p.AccuracyDifference, p.InvarianceOriginal, p.InvarianceOther, p.InvarianceDifference} {
			row = append(row, cellOf(v)...)
		}
		row[7], row[13] = signedValue(p.AccuracyDifference), signedValue(p.InvarianceDifference)
		t.rows = append(t.rows, []string{row[0], row[1], row[2], row[3], "→ " + row[5], row[7], row[8], row[9], "→ " + row[11], row[13], row[14]})
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
