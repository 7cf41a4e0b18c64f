package report

import (
	"math"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A relation is a cloud of points, models or data sets, of a score of the prediction against accuracy: the studies of Deng et
// al. 2022. Everything is derived by package correlation, with the defaults of `noether correlate`.
type relation struct {
	X      relationAxis    `json:"x"`
	By     correlation.By  `json:"by"` // what the points are
	Of     string          `json:"of"` // the data set of all models, or the model of all data sets
	Points []relationPoint `json:"points"`
	Fit    *relationFit    `json:"fit"` // nil where the points are too few, or have no line
}

type relationAxis struct {
	Measure   string `json:"measure"`
	Statistic string `json:"statistic"`
	Transform string `json:"transform"`
	Title     string `json:"title"`
}

type relationPoint struct {
	Label string  `json:"label"`
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	N     int     `json:"n"`
}

type relationFit struct {
	Pearson  numbers   `json:"pearson"` // value, low, high
	Spearman numbers   `json:"spearman"`
	Error    numbers   `json:"error"` // mean absolute leave-one-out error, in accuracy
	Line     []numbers `json:"line"`  // x, y, low, high; y as a proportion
}

const (
	leastPoints = 3  // of a relation worth an image
	mostFits    = 32 // lines with bands; the relations beyond have their points alone
	linePoints  = 25
)

// relations gathers what there is to relate: the first statistic of each measure of the prediction under each transformation,
// against the accuracy on clean data.
func relations(rows []scores.Row) []relation {
	var out []relation
	fits := 0
	for _, m := range Describe(rows) {
		if m.Name == "accuracy" || m.Name == "robust-accuracy" || ofLayers(rows, m.Name) {
			continue
		}
		s := m.headline()[0]
		for _, transform := range transformsOf(rows, m.Name) {
			x := relationAxis{m.Name, s.Name, printable(transform), s.Title}
			for _, by := range []correlation.By{correlation.ByModel, correlation.ByData} {
				out = append(out, relate(rows, x, scores.Selector{Measure: m.Name, Statistic: s.Name, Transform: transform}, by, &fits)...)
			}
		}
	}
	return out
}

// relate gathers the relations of one score. One that names no single score of each model and data set has none.
func relate(rows []scores.Row, x relationAxis, selector scores.Selector, by correlation.By, fits *int) []relation {
	r := correlation.Relation{X: selector, Y: scores.Selector{Measure: "accuracy", Statistic: "clean"}, By: by}
	sets, err := r.Sets(rows)
	if err != nil {
		return nil
	}
	var out []relation
	for _, set := range sets {
		points := finitePoints(set.Points)
		if len(points) < leastPoints {
			continue
		}
		found := relation{X: x, By: by, Of: printable(set.Name)}
		for _, p := range points {
			found.Points = append(found.Points, relationPoint{printable(p.Label), p.X, p.Y, p.N})
		}
		if *fits < mostFits {
			if found.Fit = fitOf(points); found.Fit != nil {
				*fits++
			}
		}
		out = append(out, found)
	}
	return out
}

func finitePoints(points []correlation.Point) []correlation.Point {
	var out []correlation.Point
	for _, p := range points {
		if !math.IsNaN(p.X-p.X) && p.Y >= 0 && p.Y <= 1 && p.N > 0 {
			out = append(out, p)
		}
	}
	return out
}

// fitOf is the line through points with its band, nil where there is none.
func fitOf(points []correlation.Point) *relationFit {
	fit, err := correlation.Analyse(points, correlation.Options{Logit: true, Seed: 1})
	if err != nil {
		return nil
	}
	low, high := points[0].X, points[0].X
	for _, p := range points {
		low, high = min(low, p.X), max(high, p.X)
	}
	out := &relationFit{Pearson: coefficient(fit.Pearson), Spearman: coefficient(fit.Spearman), Error: numbers{fit.MeanAbsoluteError()}}
	for i := range linePoints {
		x := low + (high-low)*float64(i)/(linePoints-1)
		y := fit.At(x)
		out.Line = append(out.Line, numbers{x, y.Value, y.Low, y.High})
	}
	return out
}

func coefficient(c correlation.Coefficient) numbers { return numbers{c.Value, c.Low, c.High} }

// ofLayers reports whether a measure has scores of layers.
func ofLayers(rows []scores.Row, measure string) bool {
	for i := range rows {
		if rows[i].Measure == measure && rows[i].Layer != "" {
			return true
		}
	}
	return false
}

// transformsOf are the transformations under which a measure was taken.
func transformsOf(rows []scores.Row, measure string) []string {
	var of []scores.Row
	for _, r := range rows {
		if r.Measure == measure {
			of = append(of, r)
		}
	}
	return distinct(of, byTransform)
}
