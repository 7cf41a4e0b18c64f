package correlation

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/scores"
)

// By says what the points of a correlation are.
type By string

// The two views of Deng et al. 2022: over models on one test set (section 5), and over test sets for one model (section 6).
const (
	ByModel By = "model"
	ByData  By = "data"
)

// A Relation is what correlates: the score X and what it is to tell, Y.
type Relation struct {
	X, Y scores.Selector
	By   By
	// AboveNull takes from X what chance alone gives: a model whose predictions have all become one class agrees with
	// itself whatever the input, and its null says so.
	AboveNull bool
	// Group returns what a point is coloured by; may be nil.
	Group func(model string) string
}

// A Set holds the points of one correlation: all models on the data set Name, or all data sets of the model Name.
type Set struct {
	Name   string
	Points []Point
	// Unlabelled are subjects with an X and no Y: what a prediction is wanted for.
	Unlabelled []Point
}

// Sets gathers points from the rows of one or several runs, in the order of the rows.
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
	known := map[subject]scores.Row{}
	for _, y := range ys {
		known[subject{y.Model, y.Data}] = y
	}
	var sets []Set
	at := map[string]int{}
	for _, x := range xs {
		name, label := x.Data, x.Model
		if r.By == ByData {
			name, label = label, name
		} else if r.By != ByModel {
			return nil, fmt.Errorf("points are by model or by data, not by %q", string(r.By))
		}
		i, ok := at[name]
		if !ok {
			i = len(sets)
			at[name] = i
			sets = append(sets, Set{Name: name})
		}
		p := Point{Label: label, X: x.Value}
		if r.AboveNull {
			if math.IsNaN(x.Null) {
				return nil, fmt.Errorf("%s of model %s on %s has no null", r.X, x.Model, x.Data)
			}
			p.X -= x.Null
		}
		if r.Group != nil {
			p.Group = r.Group(x.Model)
		}
		if y, ok := known[subject{x.Model, x.Data}]; ok {
			p.Y, p.N = y.Value, y.N
			sets[i].Points = append(sets[i].Points, p)
		} else {
			sets[i].Unlabelled = append(sets[i].Unlabelled, p)
		}
	}
	return sets, nil
}
