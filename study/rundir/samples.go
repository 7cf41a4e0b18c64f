package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

func (r *Writer) writeSamples(ctx context.Context, w io.Writer) error {
	out := scores.NewSampleWriter(w)
	for _, c := range r.Plan.Cells {
		if c.Failed {
			continue
		}
		rows, err := r.Folder.readSamples(ctx, c, r.Plan.Study.Name)
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
// without per-sample values has none.
func (f Folder) readSamples(ctx context.Context, c *plan.Cell, study string) ([]scores.SampleRow, error) {
	path := f.Path("cells", c.Key+samplesSuffix)
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
	names, err := c.Data.Describe(ctx)
	if err != nil {
		return nil, err
	}
	var out []scores.SampleRow
	for _, t := range c.Tasks {
		values, err := unpackSamples(byLayer[t.Name()])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for _, v := range values {
			known := names[v.Index]
			out = append(out, scores.SampleRow{Study: study, Model: c.Model.Entry.Name, Layer: t.Name(), Data: c.Data.Entry.Name,
				Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial, Measure: c.Method.Name(),
				Statistic: v.Statistic, Index: v.Index, Name: known.Name, Label: known.Label, Value: v.Value})
		}
	}
	return out, nil
}
