package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// hasSamples reports whether a cell has per-sample values.
func (r *Writer) hasSamples() bool {
	return slices.ContainsFunc(r.Plan.Cells, func(c *plan.Cell) bool {
		_, err := os.Stat(r.Folder.Path("cells", c.Key+samplesSuffix))
		return !c.Failed && err == nil
	})
}

func (r *Writer) writeSamples(ctx context.Context, w io.Writer) error {
	out := scores.NewSampleWriter(w)
	for _, c := range r.Plan.Cells {
		if c.Failed {
			continue
		}
		rows, err := r.readSamples(ctx, c)
		if err == nil {
			err = out.Write(rows...)
		}
		if err != nil {
			return err
		}
	}
	return out.Close()
}

// readSamples reads the per-sample values of a cell as rows with the names of the samples. A cell
// without such values gives no rows.
func (r *Writer) readSamples(ctx context.Context, c *plan.Cell) ([]scores.SampleRow, error) {
	byLayer, err := r.Folder.readSampleFiles(c.Key)
	if byLayer == nil || err != nil {
		return nil, err
	}
	names, err := r.describeSamples(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	var out []scores.SampleRow
	for _, t := range c.Tasks {
		for _, v := range byLayer[t.Name()] {
			if strings.HasPrefix(v.Statistic, projectionPrefix) {
				continue // for the report alone
			}
			known := names[v.Index]
			out = append(out, scores.SampleRow{Study: r.Plan.Study.Name, Model: c.Model.Entry.Name, OtherModel: c.Identity().OtherModel, Layer: t.Name(), Data: c.Data.Entry.Name,
				Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial, Measure: c.Method.Name(),
				Statistic: v.Statistic, Index: v.Index, Name: known.Name, Label: t.Label(known.Label), Value: v.Value})
		}
	}
	return out, nil
}

// describeSamples returns the samples whose values a run keeps, by index, without their inputs.
func (r *Writer) describeSamples(ctx context.Context, d *plan.Data) (map[int]plan.Described, error) {
	if r.Plan.Study.Samples {
		return d.Describe(ctx)
	}
	if known, ok := r.described[d]; ok {
		return known, nil
	}
	found, err := d.DescribeFirst(ctx, plan.FirstSamples)
	if err == nil {
		r.described[d] = found
	}
	return found, err
}

// readSampleFiles reads the per-sample values of a cell, by task. It returns nil if there are none.
func (f Folder) readSampleFiles(key string) (map[string][]measure.SampleScore, error) {
	path := f.Path("cells", key+samplesSuffix)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var packed map[string][]statisticValues
	if err == nil {
		err = json.Unmarshal(raw, &packed)
	}
	out := map[string][]measure.SampleScore{}
	for task, files := range packed {
		if err == nil {
			out[task], err = unpackSamples(files)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
