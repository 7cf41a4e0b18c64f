package results

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// agreementRows returns what stands in place of the accuracy of models on data without labels: the
// disagreement of each classifier with the first, on samples as they are, from the predictions that
// the run keeps. Pairs that the study compares itself are left out.
func (r *Writer) agreementRows(cells []scores.Cell) ([]scores.Row, error) {
	name := prediction.ModelAgreementDescriptor().Name
	type pair struct{ model, other, data string }
	compared := map[pair]bool{}
	for _, c := range cells {
		if c.Measure == name && c.Transform == "" {
			compared[pair{c.Model, c.OtherModel, c.Data}] = true
		}
	}
	var out []scores.Row
	for _, d := range r.Plan.Data {
		if d.Source.Classes() != nil {
			continue
		}
		first, found, err := r.firstPredictions(d)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			differ, n, ok := first.differ(p)
			if !ok || compared[pair{first.model, p.model, d.Entry.Name}] || compared[pair{p.model, first.model, d.Entry.Name}] {
				continue
			}
			share := float64(differ) / float64(n)
			low, high := resample.Wilson(share, n)
			out = append(out, scores.Row{Study: r.Plan.Study.Name, Model: first.model, OtherModel: p.model, Data: d.Entry.Name, Depth: scores.NoDepth,
				Measure: name, Statistic: "disagreement", Value: share, Low: low, High: high, Null: math.NaN(), N: n})
		}
	}
	r.agreed = len(out) > 0
	return out, nil
}

// cleanPredictions are the classes that a model predicts for samples as they are, by index.
type cleanPredictions struct {
	model   string
	classes []string
	of      map[int]float64
}

// firstPredictions returns the predictions of the first classifier of the study on a data set, and
// those of the others.
func (r *Writer) firstPredictions(d *plan.Data) (first cleanPredictions, others []cleanPredictions, err error) {
	var all []cleanPredictions
	for _, c := range r.Plan.Cells {
		id := c.Identity()
		known := slices.ContainsFunc(all, func(p cleanPredictions) bool { return p.model == id.Model })
		if c.Failed || known || id.Data != d.Entry.Name || id.OtherModel != "" || id.Measure != "effective-invariance" && id.Measure != "accuracy" {
			continue
		}
		values, err := r.Folder.cellSamples(c)
		if err != nil {
			return first, nil, err
		}
		if of := values["predicted-clean"]; of != nil {
			all = append(all, cleanPredictions{id.Model, c.Classes(), of})
		}
	}
	if len(all) == 0 {
		return first, nil, nil
	}
	return all[0], all[1:], nil
}

// differ returns for how many of the n samples that both have the predictions differ; false if
// there are none, or if the models have other classes.
func (p cleanPredictions) differ(q cleanPredictions) (differ, n int, ok bool) {
	if len(p.classes) != len(q.classes) {
		return 0, 0, false
	}
	byIndex := spec.AreIndices(p.classes) || spec.AreIndices(q.classes)
	for i, a := range p.of {
		b, both := q.of[i]
		if !both {
			continue
		}
		n++
		if byIndex && a != b || !byIndex && p.classes[int(a)] != q.classes[int(b)] {
			differ++
		}
	}
	return differ, n, n > 0
}
