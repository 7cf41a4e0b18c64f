package dense

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

func (a *accuracyAccumulator) Scores() ([]measure.Score, error) {
	if a.n == 0 {
		return nil, measure.ErrTooFew
	}
	statistic := "miou"
	if a.views[0].precision != nil {
		statistic = "map"
		for _, v := range a.views {
			v.precision.sort()
		}
	}
	var out []measure.Score
	for _, f := range a.factors() {
		values := []classValues{a.classValues(f, none)}
		if f.name == "" && a.n == a.site.Layout.N { // else scores have no interval
			for g := range a.site.Layout.Groups {
				values = append(values, a.classValues(f, g).or(values[0]))
			}
		}
		for _, s := range []struct {
			name string
			sign viewSigns
		}{{"clean-" + statistic, viewSigns{1, 0}}, {"moved-" + statistic, viewSigns{0, 1}}, {statistic + "-drop", viewSigns{1, -1}}} {
			if s.sign[movedView] != 0 && !a.moved {
				continue
			}
			score := a.score(s.name, values, s.sign)
			if score.Factor = f.name; f.name == "" || !math.IsNaN(score.Value) {
				out = append(out, score)
			}
		}
	}
	return out, nil
}

// A factor selects what a score covers: classes, and for boxes thresholds of IoU and ranges of
// area.
type factor struct {
	name      string // Factor of the score; "" for the factor that selects all
	class     int    // -1: all
	threshold int    // index of a threshold of IoU; -1: all
	area      int    // index in areaRanges; 0: all
}

// The first one selects all.
func (a *accuracyAccumulator) factors() []factor {
	out := []factor{{class: -1, threshold: -1}}
	if a.views[0].precision != nil {
		out = append(out, factor{"iou=0.50", -1, 0, 0}, factor{"iou=0.75", -1, 5, 0}) // thresholds 0 and 5 of iouThreshold
		for i, size := range sizes {
			out = append(out, factor{"size=" + size, -1, -1, i + 1})
		}
	}
	for k := range a.site.Output.ClassLimit() {
		out = append(out, factor{"class=" + a.site.Output.ClassName(k), k, -1, 0})
	}
	return out
}

// viewSigns are the factors of the clean and of the moved view in a score: 1, 0 or -1.
type viewSigns [2]float64

// classValues hold the IoU or average precision of each class in both views. NaN: the class has no
// labels.
type classValues [2][]float64

// none is the number of no jackknife group.
const none = -1

// classValues returns the values of the classes of a factor without the samples of one jackknife
// group.
func (a *accuracyAccumulator) classValues(f factor, without int) (of classValues) {
	for view := range of {
		of[view] = make([]float64, a.site.Output.ClassLimit())
		for k := range of[view] {
			switch {
			case f.class >= 0 && f.class != k || view == movedView && !a.moved:
				of[view][k] = math.NaN()
			case a.views[view].precision != nil:
				of[view][k] = a.views[view].precision.mean(k, f.threshold, f.area, without)
			default:
				of[view][k] = a.iou(view, k, without)
			}
		}
	}
	return of
}

// or returns values with those of all samples for the classes of which one group has all labels.
func (v classValues) or(ofAll classValues) classValues {
	for view := range v {
		for k, value := range v[view] {
			if math.IsNaN(value) {
				v[view][k] = ofAll[view][k]
			}
		}
	}
	return v
}

// parts returns what each class adds to the mean over the labelled classes of a view, or to the
// difference of the means of both. It returns nil if a view has no labels.
func (v classValues) parts(sign viewSigns) []float64 {
	out := make([]float64, len(v[cleanView]))
	for view, sign := range sign {
		n := 0
		for _, value := range v[view] {
			if !math.IsNaN(value) {
				n++
			}
		}
		if sign != 0 && n == 0 {
			return nil
		}
		for k, value := range v[view] {
			if sign != 0 && !math.IsNaN(value) {
				out[k] += sign * value / float64(n)
			}
		}
	}
	return out
}

// score returns a score with the values of all samples and, for an interval, those without each
// group. The interval is that of the jackknife, whose replicates keep the set of classes, widened
// for classes of few samples (rareSpread).
func (a *accuracyAccumulator) score(name string, values []classValues, sign viewSigns) measure.Score {
	parts := values[0].parts(sign)
	s := measure.Plain(name, floats.Sum(parts), a.n)
	s.Min, s.Max = min(sign[movedView], 0), 1
	if parts == nil {
		s.Value = math.NaN()
		s.Warnings = append(s.Warnings, "no sample has a label that the model's classes include")
		return s
	}
	if sign == (viewSigns{1, 0}) && len(values) > 1 {
		s.Warnings = a.implausible(s.Value)
	}
	left := make([]int, a.site.Layout.Groups)
	for place := range a.site.Layout.N {
		left[a.site.Layout.Group(place)]++
	}
	ofClass := make([][]measure.Replicate, len(parts))
	for g, without := range values[1:] {
		replicate := without.parts(sign)
		s.Replicates = append(s.Replicates, measure.Replicate{Value: floats.Sum(replicate), Left: left[g]})
		for k, v := range replicate {
			ofClass[k] = append(ofClass[k], measure.Replicate{Value: v, Left: left[g]})
		}
	}
	low, high := resample.Jackknife(s.Value, a.n, s.Replicates)
	if math.IsNaN(low) {
		return s
	}
	s.Spread, s.Freedom = a.rareSpread(values[0], ofClass, sign)
	half := math.Hypot((high-low)/2, s.Spread)
	s.Low, s.High = max(s.Value-half, s.Min), min(s.Value+half, s.Max)
	s.Warnings = append(s.Warnings, a.rareWarnings()...)
	return s
}

// iou returns the IoU of a class.
func (a *accuracyAccumulator) iou(view, class, without int) float64 {
	var both, found, labelled int
	for g := range a.site.Layout.Groups {
		if g != without {
			at := (g*a.site.Output.ClassLimit() + class) * 3
			r := a.views[view].regions[at : at+3]
			both, found, labelled = both+r[0], found+r[1], labelled+r[2]
		}
	}
	if labelled == 0 {
		return math.NaN()
	}
	return float64(both) / float64(found+labelled-both)
}

// leastPrecision is the mean average precision below which hardly any box is right.
const leastPrecision = 0.02

// implausible returns a warning on a mean IoU that is no better than that of one class everywhere,
// and on a mean average precision near 0.
func (a *accuracyAccumulator) implausible(value float64) []string {
	const check = ": check preprocess, output, and the mapping of classes to those of the data"
	v := a.views[cleanView]
	if v.precision != nil {
		if value < leastPrecision {
			return []string{fmt.Sprintf(measure.GuessWarning+", with a mean average precision below %g"+check, leastPrecision)}
		}
		return nil
	}
	most, all, classes := 0, 0, 0
	for k := range a.site.Output.ClassLimit() {
		labelled := 0
		for g := range a.site.Layout.Groups {
			labelled += v.regions[(g*a.site.Output.ClassLimit()+k)*3+2]
		}
		if labelled > 0 {
			classes++
		}
		most, all = max(most, labelled), all+labelled
	}
	if guess := float64(most) / float64(all) / float64(classes); classes > 1 && value <= guess {
		return []string{fmt.Sprintf(measure.GuessWarning+": one class everywhere has a mean IoU of %.2g"+check, guess)}
	}
	return nil
}
