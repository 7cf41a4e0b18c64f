package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/measure"
	outputs "github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/measure/dense"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// This file compares boxes and class maps: dense-agreement, with labels dense-accuracy, and under
// transformations dense-equivariance.

var outputAgreement, outputAccuracy, outputEquivariance = dense.Agreement().Name(), dense.Accuracy().Name(), dense.Descriptor().Name

// addOutputs adds the comparison of one cell of dense-agreement.
func (r *parityReport) addOutputs(c scores.Cell, find parityFinder) {
	p := parityPrediction{Transform: c.Transform, Parameter: c.Parameter, Outputs: string(outputs.BoxList), Accuracy: "map"}
	var rows parityRows
	for _, l := range c.Layers {
		for _, s := range l.Scores {
			v := rows.add(s.Statistic, s)
			if s.Factor != "" {
				continue
			}
			for _, text := range s.Warnings {
				if !strings.HasPrefix(text, "model ") { // else it is about the output of a model, not about the statistic
					text = s.Statistic + ": " + text
				}
				r.warn(text)
			}
			switch s.Statistic {
			case "agreement":
				p.Agreement, p.N = v, s.N
			case "miou":
				p.MIoU, p.Outputs, p.Accuracy = v, string(outputs.ClassMap), "miou"
			case "iou":
				p.IoU = v
			case "class-flips":
				p.ClassFlips = v
			case "confidence-change":
				p.ConfidenceChange = v
			}
		}
	}
	follows := "matched"
	if p.Outputs == string(outputs.ClassMap) {
		follows = "pixel-agreement"
	}
	if a, ok := find("original", outputEquivariance, follows); ok {
		if b, ok := find("other", outputEquivariance, follows); ok {
			p.EquivarianceOriginal, p.EquivarianceOther, p.EquivarianceDifference = rows.compare("equivariance", a, b)
		}
	}
	view := "moved-"
	if c.Transform == "" {
		view = "clean-"
	}
	a, ok := find("original", outputAccuracy, view+p.Accuracy)
	b, both := find("other", outputAccuracy, view+p.Accuracy)
	if !ok || !both {
		p.Accuracy = ""
		r.addComparison(p, rows)
		return
	}
	name := p.Accuracy
	d := subtract(name+"-difference", a, b)
	if d.Value == 0 && d.Low == d.High { // no value without a group differs: the bounds are those of the share of samples that may
		_, most := resample.Wilson(0, a.N)
		d.Low, d.High = -most, most
	}
	p.AccuracyOriginal, p.AccuracyOther, p.AccuracyDifference = rows.add(name+"-original", a), rows.add(name+"-other", b), rows.add(name+"-difference", d)
	for _, text := range slices.Concat(a.Warnings, b.Warnings) {
		which := ""
		if !slices.Contains(b.Warnings, text) {
			which = " of the original model"
		} else if !slices.Contains(a.Warnings, text) {
			which = " of the other model"
		}
		if r.warned(text) {
			continue
		}
		if !measure.ChangesMeaning(text) {
			text = fmt.Sprintf("%s%s: %s", accuracyTitle(p.Accuracy), which, text)
		}
		r.warn(text)
	}
	r.addComparison(p, rows)
}

// mostSamples is the number of samples that are listed among those that differ most.
const mostSamples = 10

// addWorst adds the samples on which boxes or class maps differ most.
func (r *parityReport) addWorst(p *study.Plan) {
	for _, c := range p.Cells {
		id := c.Identity()
		at := slices.IndexFunc(r.Predictions, func(p parityPrediction) bool { return p.Transform == id.Transform && p.Parameter == id.Parameter })
		if id.Measure != outputAgreement || at < 0 {
			continue
		}
		var differ []paritySample
		for _, s := range c.Tasks[0].Scored.Samples {
			if s.Statistic == "agreement" && s.Value < 1 { // NaN: neither has boxes
				differ = append(differ, paritySample{s.Index, cmp.Or(dataset.Path(c.Data.Source, s.Index), fmt.Sprintf("sample %d", s.Index)), number(s.Value)})
			}
		}
		slices.SortStableFunc(differ, func(a, b paritySample) int { return cmp.Compare(a.Agreement, b.Agreement) })
		r.Predictions[at].Differ, r.Predictions[at].Worst = len(differ), differ[:min(mostSamples, len(differ))]
	}
}

// addSkips says what is not compared, and why.
func (r *parityReport) addSkips(skips []scores.Skip) {
	compared := len(r.Predictions) > 0
	ofOutputs := compared && r.Predictions[0].Outputs != ""
	title := "accuracy"
	if ofOutputs {
		title = map[bool]string{true: "mAP", false: accuracyTitle("miou")}[r.Predictions[0].Outputs == string(outputs.BoxList)]
	}
	for _, s := range skips {
		noScores := strings.HasSuffix(s.Why, "has no class scores")
		switch {
		case !compared && (s.Measure == outputAgreement && r.NotCompared == "" || s.Measure == agreementMeasure && !noScores):
			r.NotCompared = s.Why
		case ofOutputs && s.Measure == outputAccuracy, compared && !ofOutputs && s.Measure == "accuracy":
			r.warn(fmt.Sprintf("%s: %s", title, s.Why))
		}
	}
}

func accuracyTitle(statistic string) string {
	switch statistic {
	case "map":
		return "mAP"
	case "miou":
		return "mean IoU with the labels"
	}
	return "accuracy"
}

// printOutputs prints how far boxes or class maps agree on clean samples, and where they do not.
func (r *parityReport) printOutputs(w io.Writer, width int, p parityPrediction) {
	switch {
	case math.IsNaN(float64(p.Agreement.Value)):
		printFolded(w, width, "predictions are not compared: no box has a score of at least 0.5")
	case p.Outputs == string(outputs.BoxList):
		text := fmt.Sprintf("boxes agree: F1 %s, of boxes of the same class with an IoU of at least 0.5 and a score of at least 0.5; %d of %d samples differ", plainNumber(p.Agreement), p.Differ, p.N)
		if p.IoU != nil {
			text += fmt.Sprintf("; pairs have a mean IoU of %s, %s of them another class; their scores change by %s", fourDigits(float64(p.IoU.Value)), fourDigits(float64(p.ClassFlips.Value)), signed(float64(p.ConfidenceChange.Value)))
		}
		printFolded(w, width, "%s", text)
	default:
		printFolded(w, width, "class maps agree for %s of positions, with a mean IoU of %s; %d of %d samples differ", plainNumber(p.Agreement), plainNumber(p.MIoU), p.Differ, p.N)
	}
	if len(p.Worst) > 0 {
		var worst []string
		for _, s := range p.Worst[:min(3, len(p.Worst))] {
			worst = append(worst, fmt.Sprintf("%s (%s)", s.Name, fourDigits(float64(s.Agreement))))
		}
		printFolded(w, width, "they differ most on %s", strings.Join(worst, ", "))
	}
	if p.AccuracyOriginal != nil {
		printFolded(w, width, "%s %s → %s, difference %s", accuracyTitle(p.Accuracy), plainNumber(p.AccuracyOriginal), plainNumber(p.AccuracyOther), difference(p.AccuracyDifference))
	}
}
