package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Evidence is what a run knows.
type Evidence struct {
	Rows       []scores.Row
	Record     scores.Record
	Samples    []scores.SampleRow                                // of predictions
	Cells      func() ([]scores.Cell, error)                     // whose scores have replicates, with those of means over trials
	Groupings  map[string][]scores.Grouping                      // by data
	Neutral    func(transform string) (value float64, err error) // at which a transformation changes nothing
	Transforms []string                                          // names of the study
}

// A judge has a policy and the evidence, and what both say together.
type judge struct {
	*Policy
	Evidence
	models, data []string
	statistic    measure.StatisticDescriptor // of Score
	values       map[view]map[int]float64    // of Score by index of the sample, for each model, data, transformation and value
	total        map[view]int                // samples of the run, of which values may be kept of some
	whole        map[view]measure.Score      // of a Score that is no mean over samples; else nil
}

// A view is what values belong to; transform is "" for clean samples.
type view struct{ model, data, transform, parameter string }

func (j *judge) prepare() error {
	var models, data, columns []string
	for _, r := range j.Rows {
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
		if !slices.Contains(data, r.Data) {
			data = append(data, r.Data)
		}
	}
	for _, groupings := range j.Groupings {
		for _, g := range groupings {
			columns = append(columns, g.Column)
		}
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	if err := j.Check(Names{Models: models, Data: data, Transforms: j.Evidence.Transforms, Properties: columns}); err != nil {
		return err
	}
	if j.models = j.Models; j.models == nil {
		j.models = slices.DeleteFunc(models, func(m string) bool { return m == j.Reference })
	}
	if j.data = j.Policy.Data; j.data == nil {
		j.data = data
	}
	if j.Loss == nil && j.Least == nil {
		return nil
	}
	return j.readValues()
}

// readValues sets statistic and values.
func (j *judge) readValues() error {
	found := false
	for _, d := range j.Record.Measures {
		if d.Name == j.selector.Measure {
			j.statistic, found = d.Statistic(j.selector.Statistic)
		}
	}
	of, minus := scores.SampleTerms(j.selector.Measure, j.selector.Statistic)
	j.values, j.total = map[view]map[int]float64{}, map[view]int{}
	switch {
	case !found:
		return j.lacksScore()
	case j.Loss != nil && j.statistic.Range.Bounded() && *j.Loss > j.statistic.Range.High-j.statistic.Range.Low:
		return fmt.Errorf("loss is %v, which no model can exceed: %s is from %v to %v; a loss of 2 %% is 0.02", *j.Loss, j.Score, j.statistic.Range.Low, j.statistic.Range.High)
	case j.statistic.Direction == measure.Neutral:
		return fmt.Errorf("score: neither end of %s is better", j.Score)
	case !j.statistic.PerSample || minus != "":
		return j.readScores()
	}
	type sum struct {
		value float64
		n     int
	}
	sums := map[view]map[int]*sum{} // over trials
	add := func(v view, r scores.SampleRow) {
		if sums[v] == nil {
			sums[v] = map[int]*sum{}
		}
		if sums[v][r.Index] == nil {
			sums[v][r.Index] = &sum{}
		}
		sums[v][r.Index].value += r.Value
		sums[v][r.Index].n++
	}
	for _, r := range j.Samples {
		switch {
		case r.OtherModel != "" || r.Layer != "" || r.Measure != j.selector.Measure || math.IsNaN(r.Value):
		case r.Statistic == of && r.Transform != "":
			add(view{r.Model, r.Data, r.Transform, r.Parameter}, r)
		case r.Statistic == "correct-clean":
			add(view{r.Model, r.Data, "", ""}, r)
		}
	}
	for v, samples := range sums {
		j.values[v] = map[int]float64{}
		for i, s := range samples {
			j.values[v][i] = s.value / float64(s.n)
		}
	}
	for _, r := range j.Rows {
		if r.Measure == j.selector.Measure && r.Statistic == j.selector.Statistic && r.Factor == "" && r.Layer == "" && r.OtherModel == "" {
			j.total[view{r.Model, r.Data, r.Transform, r.Parameter}] = r.N
		}
	}
	if len(j.values) == 0 {
		return j.unmeasured("no values of " + j.Score + " by sample")
	}
	return nil
}

// unmeasured returns the error of a run that lacks what the score needs, with the reason if the run
// has skipped the measure.
func (j *judge) unmeasured(what string) error {
	at := slices.IndexFunc(j.Record.Skipped, func(s scores.Skip) bool { return s.Measure == j.selector.Measure })
	if at < 0 {
		return fmt.Errorf("the run has %s: measure %s in the study and run it again", what, j.selector.Measure)
	}
	hint := ""
	if why := j.Record.Skipped[at].Why; strings.Contains(why, "label") {
		hint = "; without labels, state score: effective-invariance.ei, or keep: ['prediction-agreement.disagreement <= 0.02'], which compares the predictions with the reference's"
	}
	return fmt.Errorf("the run has %s: %s was skipped, since %s%s", what, j.selector.Measure, j.Record.Skipped[at].Why, hint)
}
