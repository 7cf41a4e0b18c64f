package results

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/goccy/go-json" // a third of the time of encoding/json

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

type finishedTask struct {
	Cell    scores.Cell // only the layers of this task
	Samples []statisticValues
}

// Values that are not finite are left out, because JSON cannot represent them.
type statisticValues struct {
	Statistic string
	Index     []int     `json:",omitempty"` // of the samples; if empty, that of the statistic before this one
	Value     []float64 // one for each index
}

func marshalFinished(t *plan.Task) ([]byte, error) {
	cell := t.Cell.Identity()
	cell.Layers = t.Scored.Layers
	return json.Marshal(finishedTask{Cell: cell, Samples: packSamples(t.Scored.Samples)})
}

func readFinished(t *plan.Task, raw []byte) (*plan.TaskScores, error) {
	var file finishedTask
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	if len(file.Cell.Layers) != t.LayerCount() {
		return nil, fmt.Errorf("scores of %d layers where %d were measured", len(file.Cell.Layers), t.LayerCount())
	}
	samples, err := unpackSamples(file.Samples)
	return &plan.TaskScores{Layers: file.Cell.Layers, Samples: samples}, err
}

// packSamples sorts by sample index, so that two processes that merge the same cell write the same
// file.
func packSamples(samples []measure.SampleScore) []statisticValues {
	samples = slices.Clone(samples)
	slices.SortStableFunc(samples, func(a, b measure.SampleScore) int { return cmp.Compare(a.Index, b.Index) })
	var out []statisticValues
	for _, s := range samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		i := slices.IndexFunc(out, func(f statisticValues) bool { return f.Statistic == s.Statistic })
		if i < 0 {
			i = len(out)
			out = append(out, statisticValues{Statistic: s.Statistic})
		}
		out[i].Index = append(out[i].Index, s.Index)
		out[i].Value = append(out[i].Value, s.Value)
	}
	for i := len(out) - 1; i > 0; i-- {
		if slices.Equal(out[i].Index, out[i-1].Index) {
			out[i].Index = nil
		}
	}
	return out
}

// unpackSamples fills in the indices that packSamples left out.
func unpackSamples(files []statisticValues) ([]measure.SampleScore, error) {
	var out []measure.SampleScore
	for k, f := range files {
		if f.Index == nil && k > 0 {
			f.Index = files[k-1].Index
			files[k].Index = f.Index
		}
		if len(f.Index) != len(f.Value) {
			return nil, fmt.Errorf("%d indices for %d values of %s", len(f.Index), len(f.Value), f.Statistic)
		}
		for i, index := range f.Index {
			out = append(out, measure.SampleScore{Index: index, Statistic: f.Statistic, Value: f.Value[i]})
		}
	}
	return out, nil
}

// The parts of the record of a cell.
const (
	samplesPart = "samples"
	unitsPart   = "units"
	curvesPart  = "curves"
)

// recordOf returns the record of a cell whose layers all have scores.
func (r *Writer) recordOf(c *plan.Cell) (store.Record, error) {
	cell := c.Identity()
	cell.Layers = c.ScoredLayers()
	cell.PeakMemory = r.peakMemory()
	samples := map[string][]statisticValues{}
	for _, t := range c.Tasks {
		if t.Scored.Samples != nil {
			samples[t.Name()] = packSamples(t.Scored.Samples)
		}
	}
	body, err := cell.MarshalJSON()
	if err != nil {
		return store.Record{}, err
	}
	out := store.Record{Key: c.Key, Body: body}
	if len(samples) > 0 {
		text, err := json.Marshal(samples)
		if err != nil {
			return store.Record{}, err
		}
		out.Parts = append(out.Parts, store.Part{Name: samplesPart, Data: append(text, '\n')})
		if r.sampleTable != nil {
			r.sampleTable.keep(c, samples)
		}
	}
	if u := r.units[c]; u != nil {
		out.Parts = append(out.Parts, u...)
		delete(r.units, c)
	}
	r.keepRecord(c, cellRecord{cell, checksumOf(body)})
	for _, t := range c.Tasks {
		t.Scored = nil
	}
	return out, nil
}

// readCell returns an error if the record is that of another cell.
func (f Folder) readCell(c *plan.Cell) (cellRecord, error) {
	cell, sum, err := f.cellOf(c.Key)
	if err == nil && !isRecordOf(c, cell) {
		err = fmt.Errorf("%s: the record of %s is that of another cell", f.Path("cells"), c.Key)
	}
	return cellRecord{cell, sum}, err
}

// sum is the checksum of the record's text.
func (f Folder) cellOf(key string) (cell scores.Cell, sum uint32, err error) {
	it, err := f.cells.Get(key)
	if err != nil {
		return cell, 0, err
	}
	if cell, err = scores.ParseCell(it.Body); err != nil {
		return cell, 0, fmt.Errorf("%s: record %s: %w", it.Where(), key, err)
	}
	return cell, checksumOf(it.Body), nil
}

func checksumOf(data []byte) uint32 {
	return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli))
}

type cellRecord struct {
	scores.Cell
	sum uint32 // the checksum of its text
}

func isRecordOf(c *plan.Cell, record scores.Cell) bool {
	layers := 0
	for _, t := range c.Tasks {
		layers += t.LayerCount()
	}
	// A procedure has no tasks that would tell its layers.
	return (c.Procedure != nil || len(record.Layers) == layers) && sameCell(record, c.Identity())
}

func sameCell(a, b scores.Cell) bool {
	return a.Model == b.Model && a.OtherModel == b.OtherModel && a.Data == b.Data && a.Transform == b.Transform &&
		a.Parameter == b.Parameter && a.Trial == b.Trial && a.Measure == b.Measure
}
