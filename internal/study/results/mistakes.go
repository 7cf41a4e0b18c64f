package results

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/noether-ml/noether/tensor"
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
			g.Data, g.Model, g.Transform = s.data, s.model, s.transform
			out.groups = append(out.groups, g)
		}
	}
	if err := r.addDenseMistakes(ctx, out); err != nil {
		return nil, err
	}
	scores.SortMistakes(out.all)
	return out, nil
}

// leastKept is the share of a sample's boxes or positions that must keep their class, and boxes their
// place, under a transformation: below it, the sample is a mistake of a detector or segmenter.
const leastKept = 0.5

// addDenseMistakes adds the samples of which detectors find other boxes, and segmenters other classes,
// under a transformation: of boxes matched times the pairs that keep their class, else the agreement of
// pixels.
func (r *Writer) addDenseMistakes(ctx context.Context, out *mistakes) error {
	for _, c := range r.Plan.Cells {
		if c.Failed || c.Model == nil || c.Method.Name() != "dense-equivariance" {
			continue
		}
		values, err := r.Folder.cellSamples(c)
		if err != nil {
			return err
		}
		statistic := "matched"
		if values[statistic] == nil {
			statistic = "pixel-agreement"
		}
		kept := values[statistic]
		if kept == nil {
			continue
		}
		out.kept = true
		samples, err := r.describeSamples(ctx, c.Data)
		if err != nil {
			return err
		}
		groupings, err := r.groupings(ctx, c.Data.Entry.Name)
		if err != nil {
			return err
		}
		for _, index := range slices.Sorted(maps.Keys(kept)) {
			v, what := kept[index], fmt.Sprintf("%s %.2f", statistic, kept[index])
			if flips := values["class-flips"][index]; statistic == "matched" && flips > 0 {
				v *= 1 - flips
				what += fmt.Sprintf(", class-flips %.2f", flips)
			}
			s, known := samples[index]
			if !known || !(v < leastKept) {
				continue
			}
			m := scores.Mistake{Kind: scores.Changed, Cost: 1 - v, Model: c.Model.Entry.Name, Data: c.Data.Entry.Name, Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial,
				Index: index, Path: cmp.Or(dataset.Path(c.Data.Source, index), s.Name), Moved: what, CleanConfidence: math.NaN(), MovedConfidence: math.NaN(), Groups: groupsOf(index, groupings)}
			out.all = append(out.all, m)
		}
	}
	return nil
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

const (
	mistakeSheetFolder = "pictures/failures"
	maxMistakeSheets   = 12 // in a run folder
	sheetMistakes      = 12 // images on a sheet
	groupSheets        = 4  // sheets of a model, data set and transformation
)

// writeMistakeSheets writes contact sheets of the samples that are right without a transformation
// and wrong with it: for each model, data set and transformation the most costly ones of the groups
// that are wrong more often than the rest, and of the most frequent pairs of classes.
func (r *Writer) writeMistakeSheets(ctx context.Context) error {
	if r.Plan.Study.Images == 0 || r.mistakes == nil {
		return nil
	}
	written := map[string]bool{}
	drawn := map[mistakeSubject]int{}
	n := 0
	for _, pairs := range []bool{false, true} {
		for _, g := range r.mistakes.groups {
			s := mistakeSubject{g.Model, g.Data, g.Transform}
			if pairs != (g.Column == scores.ClassPair) || !pairs && !(g.Gap.Low > 0) || drawn[s] == groupSheets || n == maxMistakeSheets {
				continue
			}
			name := fmt.Sprintf("%02d", n+1)
			wrote, err := r.writeMistakeSheet(ctx, mistakeSheetFolder+"/"+name, g)
			if err != nil {
				return err
			}
			if wrote {
				written[name+".png"], written[name+".json"] = true, true
				drawn[s]++
				n++
			}
		}
	}
	return r.removeFormer(mistakeSheetFolder, written)
}

// writeMistakeSheet returns false if there is nothing to draw.
func (r *Writer) writeMistakeSheet(ctx context.Context, name string, g scores.MistakeGroup) (bool, error) {
	var lines [][]tensor.Tensor
	drawn := map[int]bool{}
	total := map[int]bool{}
	for _, m := range r.mistakes.all {
		if m.Kind != scores.Broken || m.Data != g.Data || m.Model != g.Model || m.Transform != g.Transform || !inGroup(m, g) {
			continue
		}
		total[m.Index] = true
		if m.Trial != 0 || drawn[m.Index] || len(lines) == sheetMistakes {
			continue
		}
		at := slices.IndexFunc(r.Plan.Cells, func(c *plan.Cell) bool {
			return !c.Failed && c.Model != nil && c.Model.Entry.Name == m.Model && c.Data.Entry.Name == m.Data && c.View.Name == m.Transform &&
				c.View.On == "input" && c.Parameter() == m.Parameter && c.View.Trial == 0
		})
		if at < 0 {
			continue
		}
		c := r.Plan.Cells[at]
		samples, err := r.describeSamples(ctx, c.Data)
		if err != nil {
			return false, err
		}
		sample, err := c.Data.Source.At(ctx, samples[m.Index].SourceIndex, c.Model.Net.Frame())
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil || !IsImage(sample) {
			continue // as in writeSheet
		}
		transformed, err := r.transformedSample(c, sample)
		if err != nil {
			continue
		}
		drawn[m.Index] = true
		lines = append(lines, []tensor.Tensor{sample.Input, transformed})
	}
	if len(lines) == 0 {
		return false, nil
	}
	title := fmt.Sprintf("Failures of %s under %s: %s %s", g.Model, g.Transform, g.Column, g.Group)
	caption := fmt.Sprintf("%d of the %d samples that are right without %s and wrong with it, those with the most confident wrong prediction first: "+
		"each as it is, and at the value of %s where that prediction is most confident. %s", len(lines), len(total), g.Transform, g.Transform, g.Describe())
	text := map[string]any{"title": title, "caption": caption, "model": g.Model, "measure": "accuracy"}
	if err := r.writePicture(name+".json", func(w io.Writer) error { return json.NewEncoder(w).Encode(text) }); err != nil {
		return false, err
	}
	err := r.writePicture(name+".png", func(w io.Writer) error { return sheetEncoder.Encode(w, contactSheet(inColumns(lines, 3))) })
	return err == nil, err
}

func inGroup(m scores.Mistake, g scores.MistakeGroup) bool {
	switch g.Column {
	case scores.ClassPair:
		return m.Label+" > "+m.Moved == g.Group
	case "label":
		return m.Label == g.Group
	}
	return m.Groups[g.Column] == g.Group
}

// inColumns puts several lines of images side by side.
func inColumns(lines [][]tensor.Tensor, columns int) [][]tensor.Tensor {
	var out [][]tensor.Tensor
	for some := range slices.Chunk(lines, columns) {
		out = append(out, slices.Concat(some...))
	}
	return out
}
