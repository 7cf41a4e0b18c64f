package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/noether-ml/noether/measure"
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
	byLayer, err := f.readSampleFiles(c.Key)
	if byLayer == nil || err != nil {
		return nil, err
	}
	names, err := c.Data.Describe(ctx)
	if err != nil {
		return nil, err
	}
	var out []scores.SampleRow
	for _, t := range c.Tasks {
		for _, v := range byLayer[t.Name()] {
			known := names[v.Index]
			out = append(out, scores.SampleRow{Study: study, Model: c.Model.Entry.Name, OtherModel: c.Identity().OtherModel, Layer: t.Name(), Data: c.Data.Entry.Name,
				Transform: c.View.Name, Parameter: c.Parameter(), Trial: c.View.Trial, Measure: c.Method.Name(),
				Statistic: v.Statistic, Index: v.Index, Name: known.Name, Label: t.Label(known.Label), Value: v.Value})
		}
	}
	return out, nil
}

// readSampleFiles reads the per-sample values of a cell, by task. It returns nil if there are none.
func (f Folder) readSampleFiles(key string) (map[string][]measure.SampleScore, error) {
	path := f.Path("cells", key+samplesSuffix)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var packed map[string][]sampleFile
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
