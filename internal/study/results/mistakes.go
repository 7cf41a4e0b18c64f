package results

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// A mistakeSubject is what one list of mistakes is about: a model on data under a transformation,
// or without one.
type mistakeSubject struct{ model, data, transform string }

// mistakes are what the per-sample predictions of a run say about single samples.
type mistakes struct {
	kept   bool             // the run keeps predictions
	all    []scores.Mistake // sorted
	groups []scores.MistakeGroup
}

// findMistakes compares the predictions that the run keeps with labels. Of the measures that keep
// predictions, accuracy comes before effective invariance.
func (r *Writer) findMistakes(ctx context.Context) (*mistakes, error) {
	cells := map[mistakeSubject]map[cellValue]*plan.Cell{}
	var order []mistakeSubject
	for _, c := range r.Plan.Cells {
		if name := c.Method.Name(); c.Failed || c.Model == nil || c.Identity().OtherModel != "" || name != "accuracy" && name != "effective-invariance" {
			continue
		}
		s := mistakeSubject{c.Model.Entry.Name, c.Data.Entry.Name, c.View.Name}
		if cells[s] == nil {
			cells[s] = map[cellValue]*plan.Cell{}
			order = append(order, s)
		}
		at := cellValue{c.Parameter(), c.View.Trial}
		if known := cells[s][at]; known == nil || known.Method.Name() != "accuracy" {
			cells[s][at] = c
		}
	}
	out := &mistakes{}
	wrong := map[mistakeSubject]bool{} // by model and data: those that are wrong without a transformation are listed
	for _, s := range order {
		groupings, err := r.groupings(ctx, s.data)
		if err != nil {
			return nil, err
		}
		label := scores.Grouping{Column: "label", Of: map[int]int{}}
		broken := map[int]float64{} // of samples that are right without the transformation
		first := len(out.all)
		values := slices.SortedFunc(maps.Keys(cells[s]), func(a, b cellValue) int {
			return cmp.Or(a.trial-b.trial, strings.Compare(a.parameter, b.parameter))
		})
		for _, at := range values {
			found, err := r.predictions(ctx, cells[s][at])
			if err != nil {
				return nil, err
			}
			out.kept = out.kept || len(found) > 0
			listed := mistakeSubject{model: s.model, data: s.data}
			for _, p := range found {
				p.Model, p.Data, p.Transform, p.Parameter, p.Trial = s.model, s.data, s.transform, at.parameter, at.trial
				p.Groups = groupsOf(p.Index, groupings)
				if p.right {
					i := slices.Index(label.Groups, p.Label)
					if i < 0 {
						i = len(label.Groups)
						label.Groups = append(label.Groups, p.Label)
					}
					label.Of[p.Index] = i
					if s.transform != "" {
						broken[p.Index] += 0
					}
				}
				switch {
				case p.Label != "" && !p.right && !wrong[listed]:
					m := p.Mistake
					m.Kind, m.Cost = scores.Wrong, m.CleanConfidence
					m.Transform, m.Parameter, m.Trial, m.Moved, m.MovedConfidence = "", "", 0, "", math.NaN()
					out.all = append(out.all, m)
				case s.transform == "" || p.Moved == p.Clean:
				case p.right:
					p.Kind, p.Cost = scores.Broken, p.MovedConfidence
					out.all = append(out.all, p.Mistake)
					broken[p.Index] += 1 / float64(len(values))
				case p.Label == "":
					p.Kind, p.Cost = scores.Changed, math.Sqrt(p.CleanConfidence*p.MovedConfidence)
					out.all = append(out.all, p.Mistake)
				}
			}
			wrong[listed] = wrong[listed] || len(found) > 0
		}
		var one []scores.Mistake
		for _, m := range out.all[first:] {
			if m.Kind == scores.Broken {
				one = append(one, m)
			}
		}
		if len(one) == 0 {
			continue
		}
		for _, g := range scores.GroupMistakes(broken, one, len(values), label, groupings) {
			g.Kind, g.Data, g.Model, g.Transform = scores.Broken, s.data, s.model, s.transform
			out.groups = append(out.groups, g)
		}
	}
	if err := r.addDenseMistakes(ctx, out); err != nil {
		return nil, err
	}
	scores.SortMistakes(out.all)
	return out, nil
}

// groupsOf returns the group of a sample by column.
func groupsOf(index int, groupings []scores.Grouping) map[string]string {
	out := map[string]string{}
	for _, g := range groupings {
		if i, ok := g.Of[index]; ok {
			out[g.Column] = g.Groups[i]
		}
	}
	return out
}

// A samplePrediction is a Mistake of unknown kind, or none.
type samplePrediction struct {
	scores.Mistake
	right bool // without the transformation
}

// predictions returns the predictions of a cell by sample.
func (r *Writer) predictions(ctx context.Context, c *plan.Cell) ([]samplePrediction, error) {
	values, err := r.Folder.cellSamples(c)
	if err != nil || values["predicted-clean"] == nil {
		return nil, err
	}
	samples, err := r.describeSamples(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	classes, labels := c.Classes(), c.Data.Source.Classes()
	class := func(value float64) string {
		if at := int(value); at >= 0 && at < len(classes) {
			return classes[at]
		}
		return fmt.Sprint(value)
	}
	var out []samplePrediction
	for _, index := range slices.Sorted(maps.Keys(values["predicted-clean"])) {
		s, known := samples[index]
		if !known {
			continue
		}
		p := samplePrediction{Mistake: scores.Mistake{Index: index, Path: cmp.Or(dataset.Path(c.Data.Source, index), s.Name),
			Clean: class(values["predicted-clean"][index]), CleanConfidence: values["confidence-clean"][index], MovedConfidence: math.NaN()}}
		if moved, ok := values["predicted-moved"][index]; ok {
			p.Moved, p.MovedConfidence = class(moved), values["confidence-moved"][index]
		}
		if s.Label != dataset.NoLabel && s.Label >= 0 && s.Label < len(labels) && slices.Contains(classes, labels[s.Label]) {
			p.Label = labels[s.Label]
			p.right = p.Label == p.Clean
		}
		out = append(out, p)
	}
	return out, nil
}

// write writes failures.csv and failure-groups.csv, or removes them if no predictions are kept.
func (m *mistakes) write(f Folder) error {
	for _, file := range []struct {
		name  string
		none  bool
		write func(io.Writer) error
	}{
		{"failures.csv", !m.kept, func(w io.Writer) error { return scores.WriteMistakes(w, m.all) }},
		{"failure-groups.csv", len(m.groups) == 0, func(w io.Writer) error { return scores.WriteMistakeGroups(w, m.groups) }},
	} {
		err := error(nil)
		if file.none {
			err = optional(filesys.Remove(f.Path(file.name)))
		} else {
			err = f.write(file.name, file.write)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
