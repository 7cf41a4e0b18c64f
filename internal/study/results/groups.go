package results

import (
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// groupings returns the groups of the samples of a data set whose values the run keeps, by the
// properties of the study's key by and, of at most FirstSamples samples that it reads for these, by
// plan.MeasuredProperties.
func (r *Writer) groupings(ctx context.Context, data string) ([]scores.Grouping, error) {
	if known, ok := r.grouped[data]; ok {
		return known, nil
	}
	d := r.Plan.Data[slices.IndexFunc(r.Plan.Data, func(d *plan.Data) bool { return d.Entry.Name == data })]
	samples, err := r.describeSamples(ctx, d)
	if err != nil {
		return nil, err
	}
	out, err := d.Groupings(ctx, samples, r.Plan.Study.By)
	if err != nil {
		return nil, err
	}
	first := maps.Clone(samples)
	if len(first) > plan.FirstSamples {
		place := map[int]int{} // in the random order, by index in the source
		for i, index := range d.Order.First(d.Order.Len()) {
			place[index] = i
		}
		maps.DeleteFunc(first, func(_ int, s plan.Described) bool { return place[s.SourceIndex] >= plan.FirstSamples })
	}
	var images []string
	for _, property := range plan.MeasuredProperties {
		if !slices.Contains(r.Plan.Study.By, property) {
			images = append(images, property)
		}
	}
	properties, err := d.Groupings(ctx, first, images)
	out = append(out, properties...)
	if err == nil {
		r.grouped[data] = out
	}
	return out, err
}

// A cellSubject is what the cells of a measure for the values of a transformation and for all
// trials have in common.
type cellSubject struct{ model, other, data, transform, measure string }

func subjectOf(c scores.Cell) cellSubject {
	return cellSubject{c.Model, c.OtherModel, c.Data, c.Transform, c.Measure}
}

// groupRows returns the scores for each group of the study's key by, of all scores of cells (also
// means over values and trials) that are means of per-sample values which the run keeps.
func (r *Writer) groupRows(ctx context.Context, cells []scores.Cell) ([]scores.Row, error) {
	if len(r.Plan.Study.By) == 0 {
		return nil, nil
	}
	measured := map[cellSubject][]*plan.Cell{}
	for _, c := range r.Plan.Cells {
		if !c.Failed && c.Model != nil {
			s := subjectOf(c.Identity())
			measured[s] = append(measured[s], c)
		}
	}
	results := map[cellSubject][]scores.Cell{}
	var order []cellSubject
	for _, c := range cells {
		s := subjectOf(c)
		if results[s] == nil {
			order = append(order, s)
		}
		results[s] = append(results[s], c)
	}
	var out []scores.Row
	for _, s := range order {
		if len(measured[s]) == 0 {
			continue
		}
		first := measured[s][0]
		groupings, err := r.groupings(ctx, first.Data.Entry.Name)
		if err != nil {
			return nil, err
		}
		values, err := r.readValues(measured[s])
		if err != nil || len(values) == 0 {
			return out, err
		}
		descriptor := first.Method.Descriptor()
		for _, c := range results[s] {
			for _, l := range c.Layers {
				for _, score := range l.Scores {
					statistic, known := descriptor.Statistic(score.Statistic)
					if !known || !statistic.PerSample && score.Statistic != "drop" || score.Factor != "" || score.Variant != "" || score.Parameter != "" {
						continue
					}
					if descriptor.Name == "accuracy" && score.Statistic == "clean" {
						statistic.Direction = measure.Higher // of invariance neither is
					}
					terms := values.of(c, l.Name, score.Statistic)
					if !isMeanOf(score, terms) {
						continue
					}
					c.Layers = []scores.Layer{{Name: l.Name, Depth: l.Depth, Other: l.Other, Scores: []measure.Score{score}}}
					row := scores.Rows(r.Plan.Study.Name, []scores.Cell{c})[0]
					for _, g := range groupings {
						if slices.Contains(r.Plan.Study.By, g.Column) {
							out = append(out, scores.GroupRows(row, terms, statistic, g)...)
						}
					}
				}
			}
		}
	}
	return out, nil
}

// isMeanOf reports whether a score is the mean of per-sample values. Some, such as mean IoU, are
// not, although samples have values.
func isMeanOf(s measure.Score, terms map[int]float64) bool {
	var sum float64
	for _, v := range terms {
		sum += v
	}
	mean := sum / float64(len(terms))
	return len(terms) == s.N && math.Abs(mean-s.Value) <= 1e-5*max(1, math.Abs(s.Value))
}

// subjectValues are the per-sample values of the cells of a subject, by statistic, by what
// identifies one of the cells, and by index of the sample.
type subjectValues map[[2]string]map[cellValue]map[int]float64 // by layer and statistic

type cellValue struct {
	parameter string
	trial     int
}

func (r *Writer) readValues(cells []*plan.Cell) (subjectValues, error) {
	out := subjectValues{}
	for _, c := range cells {
		tasks, err := r.Folder.readSampleFiles(c.Key)
		if err != nil {
			return nil, err
		}
		at := cellValue{c.View.Parameter, c.View.Trial}
		for task, all := range tasks {
			for _, v := range all {
				key := [2]string{task, v.Statistic}
				if out[key] == nil {
					out[key] = map[cellValue]map[int]float64{}
				}
				if out[key][at] == nil {
					out[key][at] = map[int]float64{}
				}
				out[key][at][v.Index] = v.Value
			}
		}
	}
	return out, nil
}

// of returns the values of a statistic by sample, in a cell or, for a cell of means over values or
// trials, their means. Samples without one of the values are left out.
func (v subjectValues) of(c scores.Cell, layer, statistic string) map[int]float64 {
	of, minus := scores.SampleTerms(c.Measure, statistic)
	sum, count, cells := map[int]float64{}, map[int]int{}, 0
	byCell := v[[2]string{layer, of}]
	order := slices.SortedFunc(maps.Keys(byCell), func(a, b cellValue) int { // sums depend on it, by rounding
		return cmp.Or(strings.Compare(a.parameter, b.parameter), cmp.Compare(a.trial, b.trial))
	})
	for _, at := range order {
		values := byCell[at]
		if c.Parameter != "" && c.Parameter != at.parameter || c.Trial != scores.MeanOverTrials && c.Trial != at.trial {
			continue
		}
		cells++
		for sample, value := range values {
			if minus != "" {
				value -= v[[2]string{layer, minus}][at][sample]
			}
			sum[sample] += value
			count[sample]++
		}
	}
	for sample := range sum {
		if sum[sample] /= float64(cells); count[sample] < cells {
			delete(sum, sample)
		}
	}
	return sum
}

// writeGroups writes groups.csv: the group of each sample by each property of the study's key by.
// Without one it removes the file.
func (r *Writer) writeGroups(ctx context.Context) error {
	const name = "groups.csv"
	if len(r.Plan.Study.By) == 0 {
		return optional(filesys.Remove(r.Folder.Path(name)))
	}
	byData := map[string][]scores.Grouping{}
	for _, d := range r.Plan.Data {
		groupings, err := r.groupings(ctx, d.Entry.Name)
		if err != nil {
			return err
		}
		byData[d.Entry.Name] = slices.DeleteFunc(slices.Clone(groupings), func(g scores.Grouping) bool { return !slices.Contains(r.Plan.Study.By, g.Column) })
	}
	return r.Folder.write(name, func(w io.Writer) error { return scores.WriteGroupings(w, byData) })
}
