package correlation

import (
	"fmt"
	"math"
	"testing"

	"github.com/noether-ml/noether/scores"
)

// TestSets collects the points (effective invariance, accuracy) of correlations. Model m of five
// has the effective invariance 10 m + d on data set d of three, and an accuracy on the first two
// data sets only; its point on the third is unlabelled. By says whether the points of a set are
// models or data sets. Points of the same unit, such as checkpoints of one training, count as one;
// AboveNull subtracts the null, what chance alone gives. A selector names a measure, a statistic
// and a transformation.
func TestSets(t *testing.T) {
	t.Parallel()
	var rows []scores.Row
	for m := range 5 {
		for d := range 3 {
			model, data := fmt.Sprint("m", m), fmt.Sprint("d", d)
			rows = append(rows, scores.Row{Model: model, Data: data, Transform: "gray", Measure: "effective-invariance", Statistic: "ei", Value: float64(10*m + d)})
			if d < 2 {
				rows = append(rows, scores.Row{Model: model, Data: data, Measure: "accuracy", Statistic: "clean", Value: .1 * float64(m+d), N: 100})
			}
		}
	}
	x, _ := scores.ParseSelector("effective-invariance.ei@gray")
	y, _ := scores.ParseSelector("accuracy.clean")
	sets, err := Relation{X: x, Y: y, By: ByModel, Group: func(m string) string { return "g" + m }}.Sets(rows)
	if err != nil {
		t.Fatal(err)
	}
	if p := sets[1].Points[3]; p.Unit != "" {
		t.Errorf("the unit of %+v is not empty", p)
	}
	if s, err := (Relation{X: x, Y: y, By: ByModel, Units: map[string]string{"m3": "training run 1"}}).Sets(rows); err != nil || s[1].Points[3].Unit != "training run 1" || s[1].Points[2].Unit != "" {
		t.Errorf("the points are %+v, want a unit (the training run) for m3 alone; error %v", s, err)
	}
	if len(sets) != 3 || sets[1].Name != "d1" || len(sets[1].Points) != 5 || len(sets[2].Points) != 0 || len(sets[2].Unlabelled) != 5 {
		t.Fatalf("by model: %+v; want 3 sets, d1 with 5 points, d2 with 5 unlabelled", sets)
	}
	if p, want := sets[1].Points[3], (Point{Label: "m3", Group: "gm3", X: 31, Y: .4, N: 100}); p != want {
		t.Errorf("the point of m3 is %+v; want %+v", p, want)
	}
	sets, err = Relation{X: x, Y: y, By: ByData}.Sets(rows)
	if err != nil || len(sets) != 5 || len(sets[2].Points) != 2 || len(sets[2].Unlabelled) != 1 || sets[2].Unlabelled[0].Label != "d2" {
		t.Fatalf("by data: %+v, %v; want 5 sets of 2 points and the unlabelled d2", sets, err)
	}
	for i := range rows {
		rows[i].Null = 0.5
	}
	if sets, err = (Relation{X: x, Y: y, By: ByModel, AboveNull: true}).Sets(rows); err != nil || sets[1].Points[3].X != 30.5 {
		t.Errorf("above the null: %+v, %v; want X = 31 - 0.5 for m3", sets, err)
	}
	rows[0].Null = math.NaN()
	if _, err := (Relation{X: x, Y: y, By: ByModel, AboveNull: true}).Sets(rows); err == nil {
		t.Error("AboveNull with a NaN null was accepted")
	}
	if _, err := (Relation{X: x, Y: y, By: "x"}).Sets(rows); err == nil {
		t.Error("By: x was accepted")
	}
}
