package correlation

import (
	"fmt"
	"math"
	"strings"

	"github.com/noether-ml/noether/scores"
)

// By is the kind of the points of a correlation: models or data sets.
type By string

// Deng et al. 2022: over models on one test set (section 5), and over test sets (section 6).
const (
	ByModel By = "model"
	ByData  By = "data"
)

// A Relation specifies a correlation: the score X, and the score Y that is predicted from X.
type Relation struct {
	X, Y scores.Selector // each matches score rows by measure, statistic and transformation
	By   By
	// AboveNull subtracts the null of X: a model that predicts a single class is trivially
	// invariant.
	AboveNull bool
	// Group returns the group of a model, for colouring; may be nil.
	Group func(model string) string
	// Units maps models and data sets to independent units; points of one unit count as one.
	Units map[string]string
	// Apart reports whether a point, a model or data set, is left out of the fit, to see how far it is
	// from the line of the others; may be nil.
	Apart func(label string) bool
}

// A Set holds the points of one correlation: all models on data set Name, or all data sets of it.
type Set struct {
	Name   string
	Points []Point
	// Unlabelled holds points with an X and no Y, whose Y can be predicted.
	Unlabelled []Point
	Apart      []Point // points for which Relation.Apart holds
}

// Sets collects the points of each correlation, in the order of the rows. With AboveNull, a row of
// X without a null is an error.
func (r Relation) Sets(rows []scores.Row) ([]Set, error) {
	xs, err := r.X.Select(rows)
	if err != nil {
		return nil, err
	}
	ys, err := r.Y.Select(rows)
	if err != nil {
		return nil, err
	}
	type subject struct{ model, data string }
	rowOf := map[subject]scores.Row{}
	for _, y := range ys {
		rowOf[subject{y.Model, y.Data}] = y
	}
	var sets []Set
	indexOf := map[string]int{}
	for _, x := range xs {
		name, label := x.Data, x.Model
		if r.By == ByData {
			name, label = label, name
		} else if r.By != ByModel {
			return nil, fmt.Errorf("unknown kind of points %q: want model or data", string(r.By))
		}
		i, ok := indexOf[name]
		if !ok {
			i = len(sets)
			indexOf[name] = i
			sets = append(sets, Set{Name: name})
		}
		p := Point{Label: label, X: x.Value, XInterval: intervalOf(&x)}
		if r.AboveNull {
			if math.IsNaN(x.Null) {
				return nil, fmt.Errorf("%s of model %s on %s has no null value to subtract", r.X, x.Model, x.Data)
			}
			p.X -= x.Null
			if p.XInterval != (Interval{}) {
				p.XInterval = Interval{p.XInterval.Low - x.Null, p.XInterval.High - x.Null}
			}
		}
		if r.Group != nil {
			p.Group = r.Group(x.Model)
		}
		p.Unit = r.Units[label]
		if y, ok := rowOf[subject{x.Model, x.Data}]; ok {
			p.Y, p.N, p.YInterval = y.Value, y.N, intervalOf(&y)
			if r.Apart != nil && r.Apart(label) {
				sets[i].Apart = append(sets[i].Apart, p)
			} else {
				sets[i].Points = append(sets[i].Points, p)
			}
		} else {
			sets[i].Unlabelled = append(sets[i].Unlabelled, p)
		}
	}
	return sets, nil
}

// intervalOf returns the interval of a row, zero unless it is finite and contains the value.
func intervalOf(r *scores.Row) Interval {
	if r.Low <= r.Value && r.Value <= r.High && !math.IsInf(r.High-r.Low, 0) {
		return Interval{r.Low, r.High}
	}
	return Interval{}
}

// measureName is the measure name of the rows that Relation.Rows returns.
const measureName = "correlation"

// Rows returns a fit as rows: pearson and spearman with intervals, slope, intercept, scale and
// leave-one-out-error. N counts units. Unlabelled points have rows of the statistic predicted. The
// variant is "X ~ Y", the transformation that of X. The set is the rows' data set or, if points are
// data sets, their model.
func (r Relation) Rows(set Set, fit *Fit) []scores.Row {
	nan := math.NaN()
	base := scores.Row{Depth: scores.NoDepth, Transform: r.X.Transform, Parameter: r.X.Parameter, Trial: scores.MeanOverTrials, Measure: measureName,
		Variant: r.variant(), Low: nan, High: nan, Null: nan, N: fit.Units, Warning: strings.Join(fit.Warnings, "; ")}
	withSubject := func(row scores.Row, setName, label string) scores.Row {
		row.Data, row.Model = setName, label
		if r.By == ByData {
			row.Model, row.Data = setName, label
		}
		return row
	}
	base = withSubject(base, set.Name, "")
	var rows []scores.Row
	add := func(row scores.Row, statistic string, v Value) {
		row.Statistic, row.Value, row.Low, row.High = statistic, v.Value, v.Low, v.High
		rows = append(rows, row)
	}
	add(base, "pearson", Value{fit.Pearson.Value, fit.Pearson.Low, fit.Pearson.High})
	add(base, "spearman", Value{fit.Spearman.Value, fit.Spearman.Low, fit.Spearman.High})
	add(base, "slope", Value{fit.Line.Slope, nan, nan})
	add(base, "intercept", Value{fit.Line.Intercept, nan, nan})
	add(base, "scale", Value{fit.Line.Scale, nan, nan})
	add(base, "leave-one-out-error", Value{fit.MeanAbsoluteError(), nan, nan})
	for _, p := range set.Unlabelled {
		add(withSubject(base, set.Name, p.Label), "predicted", fit.Predict(p.X))
	}
	return rows
}

func (r Relation) variant() string {
	x := r.X.String()
	if r.AboveNull {
		x += " above its null"
	}
	return x + " ~ " + r.Y.String()
}
