package study

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/prediction"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// CompareRuns returns the scores of prediction-agreement between models of two run folders, from
// the per-sample values of accuracy or effective-invariance. Each pair names a model of the first
// run and one of the second; in the rows their names end in " (A)" and " (B)". Samples are paired
// by index, for data of the same fingerprint; those of transformed samples only if the runs have
// the same seed. The statistics js, l2 and expected-disagreement are left out, since they need all
// probabilities or the number of classes. It is an error if a sample has different labels in the
// two runs.
func CompareRuns(dirs [2]string, models [][2]string) ([]scores.Row, error) {
	var records [2]scores.Record
	var runs [2]map[inputView]map[int]classified
	var study string
	for i, dir := range dirs {
		var err error
		if records[i], err = scores.ReadRecord(filepath.Join(dir, "run.json")); err != nil {
			return nil, fmt.Errorf("%s is not a run folder: %w", dir, err)
		}
		if runs[i], err = readPredictions(dir); err != nil {
			return nil, err
		}
		study = records[i].Study
	}
	sameInputs := scores.SameSamples(records[0], records[1])
	sameData := func(name string) bool { // like sameInputs, but the seeds may differ
		a, b := records[0], records[1]
		b.Seed = a.Seed
		return scores.SameSamples(a, b)(name)
	}
	var out []scores.Row
	for _, pair := range models {
		for _, view := range sortedViews(runs[0], pair[0]) {
			other := view
			other.model = pair[1]
			a, b := runs[0][view], runs[1][other]
			if b == nil || !sameData(view.data) || view.transform != "" && !sameInputs(view.data) {
				continue
			}
			agreement, err := comparePredictions(a, b, measure.Key{Seed: records[0].Seed, Data: view.data})
			if err != nil {
				return nil, fmt.Errorf("model %s and model %s on %s: %w", pair[0], pair[1], view.data, err)
			}
			cell := scores.Cell{Model: pair[0] + " (A)", OtherModel: pair[1] + " (B)", Data: view.data, Transform: view.transform,
				Parameter: view.parameter, Trial: view.trial, Measure: prediction.ModelAgreementDescriptor().Name,
				Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: agreement}}}
			out = append(out, cell.Rows(study)...)
		}
	}
	return out, nil
}

// An inputView identifies a set of predictions; the transform of clean samples is "".
type inputView struct {
	model, data, transform, parameter string
	trial                             int // number of the repetition of all random draws
}

// A negative label is unknown.
type classified struct{ predicted, label int }

// readPredictions returns the predictions in samples.parquet by sample index, or nil without the
// file.
func readPredictions(dir string) (map[inputView]map[int]classified, error) {
	out := map[inputView]map[int]classified{}
	err := parquetfile.ReadFile(filepath.Join(dir, "samples.parquet"), parquetfile.ReadSamples, func(r scores.SampleRow) {
		view := inputView{r.Model, r.Data, r.Transform, r.Parameter, r.Trial}
		switch {
		case r.OtherModel != "" || r.Layer != "" || math.IsNaN(r.Value):
			return
		case r.Statistic == "predicted-clean":
			view = inputView{model: r.Model, data: r.Data}
		case r.Statistic != "predicted-moved": // the class predicted for the transformed sample
			return
		}
		if out[view] == nil {
			out[view] = map[int]classified{}
		}
		out[view][r.Index] = classified{int(r.Value), r.Label}
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return out, err
}

// sortedViews returns the views of a model by data set, the clean one of each first.
func sortedViews(run map[inputView]map[int]classified, model string) []inputView {
	var out []inputView
	for v := range run {
		if v.model == model {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b inputView) int {
		return cmp.Or(cmp.Compare(a.data, b.data), cmp.Compare(a.transform, b.transform), cmp.Compare(a.parameter, b.parameter), a.trial-b.trial)
	})
	return out
}

// comparePredictions compares the samples that have a prediction of both models; a and b are by
// index.
func comparePredictions(a, b map[int]classified, key measure.Key) ([]measure.Score, error) {
	var indices []int
	classes := 2
	for i, p := range a {
		q, ok := b[i]
		if !ok {
			continue
		}
		if p.label != q.label {
			return nil, fmt.Errorf("sample %d has label %d in the first run and %d in the second: the classes of the models have another order", i, p.label, q.label)
		}
		indices = append(indices, i)
		classes = max(classes, p.predicted+1, q.predicted+1, p.label+1)
	}
	if len(indices) == 0 {
		return nil, nil
	}
	slices.Sort(indices)
	layout := measure.NewLayout(len(indices))
	names := make([]string, classes)
	acc, err := prediction.ModelAgreement(prediction.ModelSettings{}).New(measure.Site{Layout: layout, Classes: names, Key: key})
	if err != nil {
		return nil, err
	}
	// The order and the jackknife groups are drawn as in a run on these samples, so that the intervals
	// are those of such a run.
	order := seed.Rand(key.Seed, "order", key.Data).Perm(len(indices))
	for from := 0; from < len(order); from += layout.Block { // a batch is one block
		batch := measure.Batch{}
		n := min(layout.Block, len(order)-from)
		// Place is a sample's position in the order, Index that in the data set.
		batch.Clean, batch.Transformed = tensor.New(n, classes), tensor.New(n, classes)
		for i := range n {
			at := indices[order[from+i]]
			batch.Place, batch.Index, batch.Label = append(batch.Place, from+i), append(batch.Index, at), append(batch.Label, a[at].label)
			setCertain(batch.Clean.At(i).Data, a[at].predicted)
			setCertain(batch.Transformed.At(i).Data, b[at].predicted)
		}
		if err := acc.Update(&batch); err != nil {
			return nil, err
		}
	}
	found, err := acc.Scores()
	return slices.DeleteFunc(found, func(s measure.Score) bool {
		return slices.Contains([]string{"js", "l2", "expected-disagreement"}, s.Statistic)
	}), err
}

// setCertain writes log-probabilities: 0 for the class, -Inf for the others.
func setCertain(logs []float32, class int) {
	for k := range logs {
		logs[k] = float32(math.Inf(-1))
	}
	logs[class] = 0
}
