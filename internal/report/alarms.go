package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// An alarm says that the scores of a model on some data mean something else than they seem to.
type alarm struct {
	model, data string
	text        string // what is wrong, after the name of the model
}

// far is how far an accuracy may be below the one that is stated for the model.
const far = 0.1

// alarms returns the alarms of a run: warnings that change what scores mean, and accuracies far
// below the one that is stated for the model.
func alarms(rows []scores.Row, rec scores.Record) []alarm {
	stated := map[string]scores.StatedAccuracy{}
	for _, m := range rec.Models {
		if m.Stated != nil {
			stated[m.Name] = *m.Stated
		}
	}
	corrupted := map[string]bool{}
	for _, d := range rec.Data {
		corrupted[d.Name] = d.Corruption != ""
	}
	var out []alarm
	add := func(r *scores.Row, text string) {
		a := alarm{r.Model, r.Data, text}
		if !slices.ContainsFunc(out, func(o alarm) bool { return o.model == a.model && o.data == a.data }) { // the first of a model says enough
			out = append(out, a)
		}
	}
	for i := range rows {
		r := &rows[i]
		name := cleanName(r)
		if name == "" || corrupted[r.Data] {
			continue
		}
		value := fmt.Sprintf("%s is %s without a transformation", name, strings.Join(nonEmpty(Number(r.Value), Interval(r.Low, r.High)), " "))
		if s, ok := stated[r.Model]; ok && name == "accuracy" && r.High < s.Accuracy-far {
			add(r, fmt.Sprintf("%s, and %s by %s: check preprocess, and the mapping of classes to outputs", value, Number(s.Accuracy), s.By))
		}
		for _, w := range strings.Split(r.Warning, "; ") {
			if measure.ChangesMeaning(w) {
				add(r, value+": "+w)
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.OtherModel != "" || r.Warning == "" || cleanName(r) != "" {
			continue
		}
		for _, w := range strings.Split(r.Warning, "; ") {
			if measure.ChangesMeaning(w) {
				add(r, w)
			}
		}
	}
	return out
}

// cleanStatistics are the statistics that say how often a model is right without a transformation,
// by measure and name.
var cleanStatistics = map[[2]string]string{
	{"accuracy", "clean"}: "accuracy", {denseAccuracy, "clean-map"}: "mAP", {denseAccuracy, "clean-miou"}: "mean IoU",
}

// cleanName returns the name of what a row says of how often a model is right without a
// transformation, over all classes; "" for other rows.
func cleanName(r *scores.Row) string {
	if r.Factor != "" || r.OtherModel != "" || !finite(r.Value) {
		return ""
	}
	return cleanStatistics[[2]string{r.Measure, r.Statistic}]
}

// sentence returns the sentence of an alarm.
func (a alarm) sentence(several bool) Sentence {
	name := Shorten(a.model, maxNameWidth)
	if several && a.data != "" {
		name += " on " + Shorten(a.data, maxNameWidth)
	}
	return plainSentence("%s: %s. Its scores say little, and it is left out of what follows.", name, a.text)
}

// Alarms returns sentences on models whose scores mean something else than they seem to, at most
// maxNamed, and one on how many more there are. They belong above everything else of a report.
func Alarms(rows []scores.Row, rec scores.Record) []Sentence {
	all := alarms(rows, rec)
	several := len(scores.DistinctValues(rows, byData)) > 1
	var out []Sentence
	for _, a := range all[:min(maxNamed, len(all))] {
		out = append(out, a.sentence(several))
	}
	if more := len(all) - maxNamed; more > 0 {
		out = append(out, plainSentence("The same holds for %s.", Plural(more, "further model or data set")))
	}
	return out
}

// Sound returns the rows of models without an alarm, from which conclusions may be drawn.
func Sound(rows []scores.Row, rec scores.Record) []scores.Row {
	type subject struct{ model, data string }
	left := map[subject]bool{}
	for _, a := range alarms(rows, rec) {
		left[subject{a.model, a.data}] = true
	}
	if len(left) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r scores.Row) bool {
		return left[subject{r.Model, r.Data}] || left[subject{r.OtherModel, r.Data}]
	})
}

// cleanScores returns the rows of one of cleanStatistics of each model, by model and data.
func cleanScores(rows []scores.Row, name string) map[[2]string]scores.Row {
	out := map[[2]string]scores.Row{}
	for i := range rows {
		r := &rows[i]
		if known, seen := out[[2]string{r.Model, r.Data}]; cleanName(r) == name && (!seen || r.Trial < known.Trial) { // the mean over trials has the lowest
			out[[2]string{r.Model, r.Data}] = *r
		}
	}
	return out
}

// cleanAgreements returns the agreement of models with the first that others are compared with, on
// samples as they are, by model and data.
func cleanAgreements(rows []scores.Row) (first string, out map[[2]string]scores.Row) {
	out = map[[2]string]scores.Row{}
	for _, r := range rows {
		classes := r.Measure == "prediction-agreement" && r.Statistic == "disagreement"
		outputs := r.Measure == "dense-agreement" && r.Statistic == "agreement"
		compares := (classes || outputs) && r.Transform == "" && r.Factor == "" && r.Model != r.OtherModel
		if !compares || !finite(r.Value) || first != "" && r.Model != first {
			continue
		}
		first = r.Model
		if classes {
			r.Value, r.Low, r.High = 1-r.Value, 1-r.High, 1-r.Low
		}
		out[[2]string{r.OtherModel, r.Data}] = r
	}
	return first, out
}
