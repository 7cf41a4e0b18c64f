package results

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/goccy/go-json"
	"github.com/sourcegraph/conc/stream"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// writeSamples writes a Parquet table of the per-sample values that read returns of cells, by task,
// and reports whether there are any. Few cells are in memory at once: twice as many as cores.
func (r *Writer) writeSamples(ctx context.Context, w io.Writer, cells iter.Seq[*plan.Cell],
	read func(*plan.Cell) (map[string][]statisticValues, error)) (found bool, err error) {
	out := parquetfile.NewSampleWriter(w)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	reading := stream.New().WithMaxGoroutines(r.Options.Workers()) // writes in order
	for c := range cells {
		names, err := r.describeSamples(ctx, c.Data) // once for each data set, so not in parallel
		if err != nil {
			fail(err)
		}
		if ctx.Err() != nil {
			continue // the rest of the cells is taken, but not read
		}
		reading.Go(func() stream.Callback {
			packed, err := read(c)
			var rows []scores.SampleRow
			if err == nil {
				rows, err = r.sampleRows(c, packed, names)
			}
			return func() {
				found = found || packed != nil
				if err == nil && ctx.Err() == nil {
					err = out.Write(rows...)
				}
				if err != nil {
					fail(err)
				}
			}
		})
	}
	reading.Wait()
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return found, out.Close()
}

// sampleRows returns the per-sample values of a cell, by task, as rows with the names of the
// samples.
func (r *Writer) sampleRows(c *plan.Cell, packed map[string][]statisticValues,
	names map[int]plan.Described) (out []scores.SampleRow, err error) {
	row := scores.SampleRow{Study: r.Plan.Study.Name, Model: c.Model.Entry.Name, OtherModel: c.Identity().OtherModel, Data: c.Data.Entry.Name,
		Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial, Measure: c.Method.Name()}
	for _, t := range c.Tasks {
		values, err := unpackSamples(packed[t.Name()])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Folder.Path("cells"), err)
		}
		row.Layer = t.Name()
		for _, v := range values {
			if strings.HasPrefix(v.Statistic, projectionPrefix) {
				continue // for the report alone
			}
			known := names[v.Index]
			row.Statistic, row.Index, row.Name, row.Label, row.Value = v.Statistic, v.Index, known.Name, t.Label(known.Label), v.Value
			out = append(out, row)
		}
	}
	return out, nil
}

// describeSamples returns the samples whose values a run keeps, by index, without their inputs: all
// samples if the study asks for them, else the first ones.
func (r *Writer) describeSamples(ctx context.Context, d *plan.Data) (map[int]plan.Described, error) {
	if r.Plan.Study.KeepsSamples() {
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

// readSampleFiles reads the per-sample values of the cell with a key, by the name of the task: the
// layer, or "" for the prediction. It returns nil if there are none.
func (f Folder) readSampleFiles(key string) (map[string][]measure.SampleScore, error) {
	packed, err := f.readPackedSamples(key)
	if packed == nil || err != nil {
		return nil, err
	}
	out := map[string][]measure.SampleScore{}
	for task, files := range packed {
		if out[task], err = unpackSamples(files); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path("cells"), err)
		}
	}
	return out, nil
}

// readPackedSamples does what readSampleFiles does, but returns the values as they are stored.
func (f Folder) readPackedSamples(key string) (map[string][]statisticValues, error) {
	if !f.cells.HasParts(key) {
		return nil, nil
	}
	content, err := f.cellPart(key, samplesPart)
	if content == nil || err != nil {
		return nil, err
	}
	packed := map[string][]statisticValues{}
	if err := json.Unmarshal(content, &packed); err != nil {
		return nil, fmt.Errorf("%s: record %s: %w", f.Path("cells"), key, err)
	}
	return packed, nil
}
