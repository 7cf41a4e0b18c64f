package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/scores"
)

func (r *runner) writeSamples(ctx context.Context, w io.Writer) error {
	out := scores.NewSampleWriter(w)
	for _, c := range r.plan.Cells {
		if c.failed {
			continue
		}
		rows, err := r.folder.readSamples(ctx, c, r.plan.Study.Name)
		if err == nil {
			err = out.Write(rows...)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// readSamples reads the per-sample values of a cell and names the samples. A cell whose statistics are no means over
// samples has none.
func (f Folder) readSamples(ctx context.Context, c *Cell, study string) ([]scores.SampleRow, error) {
	path := f.path("cells", c.Key+samplesSuffix)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var byLayer map[string][]sampleFile
	if err == nil {
		err = json.Unmarshal(raw, &byLayer)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	names, err := c.Data.names(ctx)
	if err != nil {
		return nil, err
	}
	var out []scores.SampleRow
	for _, t := range c.tasks {
		values, err := unpackSamples(byLayer[t.name()])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, v := range values {
			known := names[v.Index]
			out = append(out, scores.SampleRow{Study: study, Model: c.Model.spec.Name, Layer: t.name(), Data: c.Data.spec.Name,
				Transform: c.View.Transform, Parameter: c.View.Parameter, Trial: c.View.Trial, Measure: c.Method.Name(),
				Statistic: v.Statistic, Index: v.Index, Name: known.Name, Label: known.Label, Value: v.Value})
		}
	}
	return out, nil
}

// names describes the samples of a data set by their index.
func (d *openData) names(ctx context.Context) (map[int]dataset.Sample, error) {
	if *d.described == nil {
		by := map[int]dataset.Sample{}
		for place := range d.source.Len() {
			s, err := dataset.Describe(ctx, d.source, place)
			var bad *dataset.BadSample
			if err != nil && !errors.As(err, &bad) {
				return nil, err
			}
			if err == nil {
				by[s.Index] = s
			}
		}
		*d.described = by
	}
	return *d.described, nil
}
