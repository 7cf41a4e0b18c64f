package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// writeSamples writes the per-sample values of cells (each a measure for one model, data set,
// transformation value and trial, which is a repetition of all random draws) that have them as
// Parquet. It reads n cells at a time, as many as the size of those before allows.
func (r *Writer) writeSamples(ctx context.Context, w io.Writer, cells []*plan.Cell) error {
	const most, mostRows = 256, 100_000 // cells, and rows, in memory at once, unless two cells have more
	out := scores.NewSampleWriter(w)
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

// readSampleFiles reads the per-sample values of the cell with a key (a hash of all that its scores
// depend on), by the name of the task: the layer, or "" for the prediction. It returns nil if there
// are none.
func (f Folder) readSampleFiles(key string) (map[string][]measure.SampleScore, error) {
	path := f.Path("cells", key+samplesSuffix)
	var packed map[string][]statisticValues
	err := filesys.WithFile(path, func(content []byte) (err error) {
		scanned := false
		if packed, scanned = scanSamples(content); !scanned {
			packed = nil
			err = json.Unmarshal(content, &packed)
		}
		return err
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
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
