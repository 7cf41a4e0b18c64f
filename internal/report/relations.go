package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/scores/correlation"
)

// A Relation is the relation of a score of predictions to accuracy, over models or over data sets,
// as in Deng et al. 2022. Package correlation computes it with the defaults of `noether correlate`.
type Relation struct {
	Measure   string
	Statistic string
	Transform string
	Title     string              // title of the statistic
	By        correlation.By      // what the points are
	Of        string              // the data set shared by all models, or the model shared by all data sets
	Points    []correlation.Point // X is the score, Y the accuracy
	Fit       *correlation.Fit    // nil if no line can be fitted
}

const (
	minPoints = 3  // fewest points of a relation
	maxFits   = 32 // maximum number of relations with a fitted line; the others have points only
)

// Relations returns the relations between the first headline statistic of each measure of
// predictions, other than accuracy and robust-accuracy, under each transformation and the accuracy
// on untransformed data.
func Relations(rows []scores.Row, record *scores.Record) []Relation {
	var out []Relation
	fits := 0
	models, data := record.Units()
	for _, m := range Describe(rows, record.Measures) {
		if m.Name == "accuracy" || m.Name == "robust-accuracy" ||
			slices.ContainsFunc(rows, func(r scores.Row) bool { return r.Measure == m.Name && r.Layer != "" }) {
			continue
		}
		s := Headline(m)[0]
		for _, transform := range transformsOf(rows, m.Name) {
			for _, by := range []correlation.By{correlation.ByModel, correlation.ByData} {
				of := Relation{Measure: m.Name, Statistic: s.Name, Transform: transform, Title: s.Title, By: by}
				out = append(out, of.relate(rows, map[correlation.By]map[string]string{correlation.ByModel: models, correlation.ByData: data}[by], &fits)...)
			}
		}
	}
	return out
}

// relate returns the relations of one score, one for each shared data set or model. There are none
// if several rows of a model on a data set match the score. units names the independent unit of
// each point, and fits counts the lines fitted so far.
func (r Relation) relate(rows []scores.Row, units map[string]string, fits *int) []Relation {
	related := correlation.Relation{X: scores.Selector{Measure: r.Measure, Statistic: r.Statistic, Transform: r.Transform},
		Y: scores.Selector{Measure: "accuracy", Statistic: "clean"}, By: r.By, Units: units}
	sets, err := related.Sets(rows)
	if err != nil {
		return nil
	}
	var out []Relation
	for _, set := range sets {
		points := finitePoints(set.Points)
		if len(points) < minPoints {
			continue
		}
		found := r
		found.Of, found.Points = set.Name, points
		if *fits < maxFits {
			if fit, err := correlation.Analyse(points, correlation.Options{Logit: true, Seed: 1}); err == nil {
				found.Fit = fit
				*fits++
			}
		}
		out = append(out, found)
	}
	return out
}

// finitePoints returns the points with a finite score and a known accuracy.
func finitePoints(points []correlation.Point) []correlation.Point {
	var out []correlation.Point
	for _, p := range points {
		if finite(p.X) && p.Y >= 0 && p.Y <= 1 && p.N > 0 {
			out = append(out, p)
		}
	}
	return out
}

// transformsOf returns the transformations that a measure has scores for.
func transformsOf(rows []scores.Row, name string) []string {
	var matching []scores.Row
	for _, r := range rows {
		if r.Measure == name {
			matching = append(matching, r)
		}
	}
	return scores.DistinctValues(matching, byTransform)
}

// Name returns the title of the score with its transformation.
func (r Relation) Name() string { return strings.Join(nonEmpty(r.Title, r.Transform), ", ") }

// Scatter describes the chart of the relation.
func (r Relation) Scatter() Scatter {
	title := capitalise(strings.Join(nonEmpty(r.Title, r.Transform), " under ")) + " against accuracy, "
	if r.By == correlation.ByModel {
		title += "models on " + r.Of
	} else {
		title += "data sets for " + r.Of
	}
	return NewScatter(r.Points, r.Fit, title, r.Title, "accuracy", true)
}

// Sentence explains how to read the points and how well the score predicts accuracy.
func (r Relation) Sentence() string {
	points := "model"
	if r.By == correlation.ByData {
		points = "data set"
	}
	read := fmt.Sprintf("A point for each %s; right: %s is higher, up: more accurate.", points, r.Title)
	switch {
	case r.Fit == nil && len(r.Points) < 4:
		return read + " A line needs at least four points."
	case r.Fit == nil:
		return read + " No line is drawn through these points."
	}
	// The limits 0.6 and 0.9 only choose the words.
	tells := "says little of accuracy here"
	switch rho := math.Abs(r.Fit.Spearman.Value); {
	case rho >= 0.9:
		tells = "nearly orders them by accuracy"
	case rho >= 0.6:
		tells = "goes with accuracy, with exceptions"
	}
	of := func(c correlation.Coefficient) string {
		return strings.Join(nonEmpty(Number(c.Value), Interval(c.Low, c.High)), " ")
	}
	text := fmt.Sprintf("%s Over %s the score %s: Spearman %s, Pearson %s on the logit scale.", read, Plural(len(r.Points), "point"), tells,
		of(r.Fit.Spearman), of(r.Fit.Pearson))
	if e := r.Fit.MeanAbsoluteError(); finite(e) {
		text += fmt.Sprintf(" A line through all others misses a point by %.1f percentage points of accuracy on average.", 100*e)
	}
	return text
}
