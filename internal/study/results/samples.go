package results

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// writeSamples writes a Parquet table of the per-sample values of cells. n cells are read at a
// time, as many as the size of those before allows.
func (r *Writer) writeSamples(ctx context.Context, w io.Writer, cells []*plan.Cell) error {
	const most, mostRows = 256, 100_000 // cells, and rows, in memory at once, unless two cells have more
	out := parquetfile.NewSampleWriter(w)
	var writing errgroup.Group // writes the rows of some cells while those of the next are read
	defer writing.Wait()
	for n := 2; len(cells) > 0; {
		some := cells[:min(n, len(cells))]
		cells = cells[len(some):]
		rows := make([][]scores.SampleRow, len(some))
		for _, c := range some {
			if _, err := r.describeSamples(ctx, c.Data); err != nil { // once for each data set, so not in parallel
				return err
			}
		}
		err := r.onAllCores(len(some), func(i int) (err error) {
			rows[i], err = r.readSamples(ctx, some[i])
			return err
		})
		if err != nil {
			return err
		}
		if err := writing.Wait(); err != nil {
			return err
		}
		writing.Go(func() error {
			for _, of := range rows {
				if err := out.Write(of...); err != nil {
					return err
				}
			}
			return nil
		})
		largest := 1
		for _, of := range rows {
			largest = max(largest, len(of))
		}
		n = max(2, min(most, mostRows/largest))
	}
	if err := writing.Wait(); err != nil {
		return err
	}
	return out.Close()
}

// readSamples reads the per-sample values of a cell as rows with the names of the samples. A cell
// without such values gives no rows.
func (r *Writer) readSamples(ctx context.Context, c *plan.Cell) ([]scores.SampleRow, error) {
	packed, err := r.Folder.readPackedSamples(c.Key)
	if packed == nil || err != nil {
		return nil, err
	}
	return r.appendSampleRows(ctx, nil, c, packed)
}

// appendSampleRows appends the per-sample values of a cell, by task, as rows with the names of the
// samples.
func (r *Writer) appendSampleRows(ctx context.Context, out []scores.SampleRow, c *plan.Cell, packed map[string][]statisticValues) ([]scores.SampleRow, error) {
	names, err := r.describeSamples(ctx, c.Data)
	if err != nil {
		return nil, err
	}
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

// readSampleFiles reads the per-sample values of the cell with a key, by the name of the task: the layer, or "" for the prediction. It returns nil if there
// are none.
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
