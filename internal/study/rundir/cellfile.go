package rundir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/plainjson"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A finishedTask is the payload of a finished task in a state file, as JSON. A task is the part of
// a cell (a measure for one model, data set, transformation value and trial, a repetition of all
// random draws) that one accumulator (the running sums of a measure) computes, such as a measure at
// one layer. A state file holds the progress of a cell until all its tasks are finished.
type finishedTask struct {
	Cell    scores.Cell // only the layers of this task
	Samples []statisticValues
}

// statisticValues holds the per-sample values of one statistic. Values that are not finite are left
// out, because JSON cannot represent them.
type statisticValues struct {
	Statistic string
	Index     []int     `json:",omitempty"` // of the samples; if empty, that of the statistic before this one
	Value     []float64 // one for each index
}

// marshalFinished returns the payload of a finished task, and readFinished reads it.
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

// packSamples returns the values of each statistic in the order of the sample indices, so that two
// processes that merge the same cell write the same file.
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

// unpackSamples is the inverse of packSamples. It fills in the indices that packSamples left out.
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

// appendSamples appends the content of a file of per-sample values, by the name of the task. The text
// is that of encoding/json, in a fraction of the time.
func appendSamples(b []byte, samples map[string][]statisticValues) []byte {
	separator := byte('{')
	for _, task := range slices.Sorted(maps.Keys(samples)) {
		b = append(plainjson.AppendText(append(b, separator), task), ':')
		separator = ','
		if samples[task] == nil {
			b = append(b, "null"...)
			continue
		}
		b = plainjson.AppendList(b, samples[task], func(b []byte, v statisticValues) []byte {
			b = plainjson.AppendText(append(b, `{"Statistic":`...), v.Statistic)
			if len(v.Index) > 0 {
				b = plainjson.AppendList(append(b, `,"Index":`...), v.Index, plainjson.AppendInt)
			}
			return append(plainjson.AppendList(append(b, `,"Value":`...), v.Value, plainjson.AppendFloat), '}')
		})
	}
	return append(b, "}\n"...)
}

// scanSamples decodes the text of appendSamples if it has neither null nor an escaped character. It
// returns false for any other text, which may still be valid.
func scanSamples(content []byte) (map[string][]statisticValues, bool) {
	s := plainjson.Scanner{Rest: content}
	out := map[string][]statisticValues{}
	s.Want("{")
	for ok := true; ok && !s.Failed; ok = s.Take(",") {
		task := s.Text()
		s.Want(":")
		values := []statisticValues{}
		s.List(func() {
			var v statisticValues
			s.Want(`{"Statistic":`)
			v.Statistic = s.Text()
			if s.Take(`,"Index":`) {
				s.List(func() { v.Index = append(v.Index, s.Int()) })
			}
			s.Want(`,"Value":`)
			s.List(func() { v.Value = append(v.Value, s.Float()) })
			s.Want("}")
			values = append(values, v)
		})
		s.Failed = s.Failed || out[task] != nil // encoding/json takes the last of two
		out[task] = values
	}
	s.Want("}\n")
	return out, s.Done()
}

// samplesSuffix is the end of the name of a cell's file of per-sample values.
const samplesSuffix = ".samples.json"

// writeCell writes the record of a finished cell, a JSON file with its scores, and returns the
// record. The per-sample values are written first, so that a record never lacks them; if a loss of
// power removes them, the record's checksums tell. The caller syncs the folder.
func (f Folder) writeCell(c *plan.Cell, peakMemory int64) (cellRecord, error) {
	record := cellRecord{Cell: c.Identity()}
	record.Layers = c.ScoredLayers()
	record.PeakMemory = peakMemory
	samples := map[string][]statisticValues{}
	for _, t := range c.Tasks {
		if t.Scored.Samples != nil {
			samples[t.Name()] = packSamples(t.Scored.Samples)
		}
	}
	var err error
	if len(samples) > 0 {
		content := appendSamples(nil, samples)
		// The record, which is written later, has the checksum of this file.
		if err := atomicfile.WriteUnread(f.Path("cells", c.Key+samplesSuffix), content); err != nil {
			return record, err
		}
		record.samples, record.Files = samples, map[string]scores.FileSum{samplesSuffix: scores.SumOf(content)}
	}
	// There may be other files, such as the table of units that a procedure (a measure that works in
	// steps) has written.
	if len(samples) == 0 || c.Procedure != nil {
		if record.Files, err = f.sumCellFiles(c.Key); err != nil {
			return record, err
		}
	}
	var data []byte
	if data, record.sum, err = scores.FormatCell(record.Cell); err != nil {
		return record, err
	}
	return record, atomicfile.WriteEntry(f.cell(c), data)
}

// cellSuffixes are the ends of the names of a cell's files besides its record: values per sample,
// values per unit (one value of a layer), and tuning curves of units.
var cellSuffixes = []string{samplesSuffix, unitsSuffix, curvesSuffix}

// sumCellFiles returns the checksums of the files of a cell besides its record.
func (f Folder) sumCellFiles(key string) (map[string]scores.FileSum, error) {
	sums := map[string]scores.FileSum{}
	for _, suffix := range cellSuffixes {
		sum, err := scores.SumFile(f.Path("cells", key+suffix))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sums[suffix] = sum
	}
	return sums, nil
}

// readCell reads a cell's record and verifies the cell's other files by their checksums. It returns
// an error if the record is that of another cell, or a file is missing or altered. If listed is not
// nil, it has the names of the files in the folder of the cells.
func (f Folder) readCell(c *plan.Cell, listed map[string]bool) (cellRecord, error) {
	got, err := f.readCellRecord(c)
	if err != nil {
		return got, err
	}
	for _, suffix := range cellSuffixes {
		if _, named := got.Files[suffix]; !named && listed != nil && !listed[c.Key+suffix] {
			continue
		}
		if err := f.verifyCellFile(got.Cell, c.Key, suffix); err != nil {
			return got, fmt.Errorf("%w; run the study again, which computes the cell again", err)
		}
	}
	return got, nil
}

// verifyCellFile verifies a file of a cell against the cell's record. If the record does not name
// the file, the file must be missing or readable: records of earlier versions name no files.
func (f Folder) verifyCellFile(record scores.Cell, key, suffix string) error {
	path := f.Path("cells", key+suffix)
	if sum, known := record.Files[suffix]; known {
		return sum.Verify(path)
	}
	switch suffix {
	case unitsSuffix:
		return optional(scores.ReadFile(path, scores.ReadUnits, func(scores.UnitRow) {}))
	case curvesSuffix:
		return optional(scores.ReadFile(path, scores.ReadCurves, func(scores.CurveRow) {}))
	}
	_, err := f.readSampleFiles(key)
	return err
}

// readCellRecord reads a cell's record. It returns an error if the record is that of another cell.
func (f Folder) readCellRecord(c *plan.Cell) (got cellRecord, err error) {
	got.Cell, got.sum, err = scores.ReadCellSum(f.cell(c))
	if err == nil && !isRecordOf(c, got.Cell) {
		err = fmt.Errorf("%s is the record of another cell", f.cell(c))
	}
	return got, err
}

// A cellRecord is the record of a finished cell.
type cellRecord struct {
	scores.Cell
	sum     uint32                       // its checksum, see scores.ReadCellSum
	samples map[string][]statisticValues // the per-sample values by task, as Folder.writeCell wrote them
}

// isRecordOf reports whether a record is that of a cell.
func isRecordOf(c *plan.Cell, record scores.Cell) bool {
	layers := 0
	for _, t := range c.Tasks {
		layers += t.LayerCount()
	}
	// A procedure, which works in steps on one cell, has no tasks that would tell its layers.
	return (c.Procedure != nil || len(record.Layers) == layers) && sameCell(record, c.Identity())
}

// sameCell reports whether two records name the same cell.
func sameCell(a, b scores.Cell) bool {
	return a.Model == b.Model && a.OtherModel == b.OtherModel && a.Data == b.Data && a.Transform == b.Transform &&
		a.Parameter == b.Parameter && a.Trial == b.Trial && a.Measure == b.Measure
}
