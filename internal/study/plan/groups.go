package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/scores"
)

// maxGroups is the largest number of groups of a property. More are probably names of samples or of
// persons, whose groups have few samples.
const maxGroups = 100

// checkBy checks the study's key by: some data must have each property.
func (p *Plan) checkBy(o Options) error {
	for i, column := range p.Study.By {
		if slices.Contains(p.Study.By[:i], column) {
			return fmt.Errorf("by: %s is listed twice", column)
		}
		var known []string
		found := false
		for _, d := range p.Data {
			columns := d.Properties()
			known = append(known, columns...)
			has := slices.Contains(columns, column)
			found = found || has
			if n := len(dataset.Categories(d.Source, column)); has && n > maxGroups {
				return fmt.Errorf("by: %s of data %s has %d values, more than the %d groups that are compared: add a column with fewer to its labels", column, d.Entry.Name, n, maxGroups)
			}
			if !has {
				o.Warnf("by: data %s have no %s, so their scores are not divided by it", d.Entry.Name, column)
			}
		}
		if !found {
			slices.Sort(known)
			return fmt.Errorf("by: no data have the property %q: use one of %s", column, strings.Join(slices.Compact(known), ", "))
		}
	}
	return nil
}

// Properties returns the names of the properties by which samples can be grouped.
func (d *Data) Properties() []string {
	out := slices.Clone(d.Source.Factors())
	if d.Source.Classes() != nil {
		out = append(out, "label")
	}
	if d.hasTruth() {
		out = append(out, dataset.ObjectProperties...)
	}
	return append(out, dataset.ImageProperties...)
}

// Groupings groups samples, which Describe returned, by properties. Those that the data or the
// samples lack are left out.
func (d *Data) Groupings(ctx context.Context, samples map[int]Described, columns []string) ([]scores.Grouping, error) {
	var out []scores.Grouping
	var measured map[string]map[int]float64 // MeasuredProperties by sample
	for _, column := range columns {
		values := map[int]float64{}
		names := dataset.Categories(d.Source, column)
		switch {
		case column == "label" && d.Source.Classes() != nil:
			names = d.Source.Classes()
			for i, s := range samples {
				values[i] = float64(s.Label)
			}
		case slices.Contains(d.Source.Factors(), column):
			for i, s := range samples {
				if v, ok := s.Factors[column]; ok {
					values[i] = v
				}
			}
		case slices.Contains(MeasuredProperties, column):
			if measured == nil {
				var err error
				if measured, err = d.measureImages(ctx, samples); err != nil {
					return nil, err
				}
			}
			values = measured[column]
		default:
			continue
		}
		g := scores.GroupNumbers(column, values)
		if names != nil {
			g = scores.GroupCategories(column, names, values)
		}
		if len(g.Of) > 0 {
			out = append(out, g)
		}
	}
	return out, nil
}

// MeasuredProperties are the properties that are computed from images and their labelled objects.
var MeasuredProperties = slices.Concat(dataset.ImageProperties, dataset.ObjectProperties)

// measureImages returns the MeasuredProperties of samples, by name and sample, as they are stored.
// Samples that are not images of one or three channels have none.
func (d *Data) measureImages(ctx context.Context, samples map[int]Described) (map[string]map[int]float64, error) {
	out := map[string]map[int]float64{}
	for _, name := range MeasuredProperties {
		out[name] = map[int]float64{}
	}
	if d.inputInfo(ctx).kind() != "images" {
		return out, nil
	}
	indices := make([]int, 0, len(samples)) // in the source
	for _, s := range samples {
		indices = append(indices, s.SourceIndex)
	}
	slices.Sort(indices)
	for s, err := range dataset.Read(ctx, d.Source, indices, dataset.Frame{}, dataset.ReadOptions{}) {
		var bad *dataset.BadSample
		if errors.As(err, &bad) {
			continue
		}
		if err != nil {
			return nil, err
		}
		values, err := dataset.PropertiesOf(s.Input)
		if err != nil {
			continue // another number of channels
		}
		for k, name := range dataset.ImageProperties {
			out[name][s.Index] = values[k]
		}
		if object, ok := dataset.ObjectOf(s.Truth); ok {
			for k, name := range dataset.ObjectProperties {
				out[name][s.Index] = object[k]
			}
		}
	}
	return out, nil
}
