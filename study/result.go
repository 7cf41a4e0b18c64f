package study

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/fetch"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// A Result is what a run folder holds once its cells are finished.
type Result struct {
	Rows   []scores.Row  `json:"scores"`
	Record scores.Record `json:"run"`
}

// A finishedFile is a finished task in a state file.
type finishedFile struct {
	Cell    scores.Cell // of this task's layers alone
	Samples []sampleFile
}

// A sampleFile is one statistic's values for samples; JSON has no NaN, so such samples are left out.
type sampleFile struct {
	Statistic string
	Index     []int
	Value     []float64
}

func (t *task) marshalFinished() ([]byte, error) {
	cell := t.cell.identity()
	cell.Layers = t.scored.Layers
	return json.Marshal(finishedFile{Cell: cell, Samples: packSamples(t.scored.Samples)})
}

func (t *task) readFinished(raw []byte) (*finished, error) {
	var file finishedFile
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, err
	}
	if len(file.Cell.Layers) != t.layers() {
		return nil, fmt.Errorf("scores of %d layers where %d were measured", len(file.Cell.Layers), t.layers())
	}
	samples, err := unpackSamples(file.Samples)
	return &finished{Layers: file.Cell.Layers, Samples: samples}, err
}

func packSamples(samples []measure.SampleScore) []sampleFile {
	var out []sampleFile
	for _, s := range samples {
		if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
			continue
		}
		i := slices.IndexFunc(out, func(f sampleFile) bool { return f.Statistic == s.Statistic })
		if i < 0 {
			i = len(out)
			out = append(out, sampleFile{Statistic: s.Statistic})
		}
		out[i].Index = append(out[i].Index, s.Index)
		out[i].Value = append(out[i].Value, s.Value)
	}
	return out
}

func unpackSamples(files []sampleFile) ([]measure.SampleScore, error) {
	var out []measure.SampleScore
	for _, f := range files {
		if len(f.Index) != len(f.Value) {
			return nil, fmt.Errorf("%d indices for %d values of %s", len(f.Index), len(f.Value), f.Statistic)
		}
		for i, index := range f.Index {
			out = append(out, measure.SampleScore{Index: index, Statistic: f.Statistic, Value: f.Value[i]})
		}
	}
	return out, nil
}

// identity is the cell as its record names it.
func (c *Cell) identity() scores.Cell {
	out := scores.Cell{Model: c.Model.spec.Name, Data: c.Data.spec.Name, Transform: c.View.Transform,
		Parameter: c.View.Parameter, Trial: c.View.Trial, Measure: c.Method.Name()}
	if c.Other != nil {
		out.OtherModel = c.Other.spec.Name
	}
	return out
}

// writeCell writes the record of a finished cell, and its samples first, so that a record is never without them.
func (f Folder) writeCell(c *Cell) error {
	record := c.identity()
	record.Layers = c.layers()
	record.PeakMemory = machine.PeakMemory()
	samples := map[string][]sampleFile{}
	for _, t := range c.tasks {
		if t.scored.Samples != nil {
			samples[t.name()] = packSamples(t.scored.Samples)
		}
	}
	if len(samples) > 0 {
		if err := f.writeJSON("cells/"+c.Key+".samples.json", samples); err != nil {
			return err
		}
	}
	return scores.WriteCell(f.cell(c), record)
}

// layers are the scores of a finished cell, the pairs of layers of several grids in the order of the whole.
func (c *Cell) layers() []scores.Layer {
	if c.work != nil {
		return c.work.scored
	}
	var out []scores.Layer
	for _, t := range c.tasks {
		out = append(out, t.scored.Layers...)
	}
	if c.order != nil {
		slices.SortStableFunc(out, func(a, b scores.Layer) int {
			return c.order[[2]string{a.Name, a.Other}] - c.order[[2]string{b.Name, b.Other}]
		})
	}
	return out
}

// readCell reads a cell's record. One of another identity than its name promises is an error.
func (f Folder) readCell(c *Cell) (scores.Cell, error) {
	got, err := scores.ReadCell(f.cell(c))
	if err != nil {
		return got, err
	}
	want := c.identity()
	want.Layers = got.Layers
	layers := 0
	for _, t := range c.tasks {
		layers += t.layers()
	}
	if c.work == nil && len(got.Layers) != layers || !sameCell(got, want) {
		return got, fmt.Errorf("%s is the record of another cell", f.cell(c))
	}
	return got, nil
}

// sameCell compares all that names a cell.
func sameCell(a, b scores.Cell) bool {
	return a.Model == b.Model && a.OtherModel == b.OtherModel && a.Data == b.Data && a.Transform == b.Transform &&
		a.Parameter == b.Parameter && a.Trial == b.Trial && a.Measure == b.Measure
}

// finish writes what is made of all cells: the tables of scores and of samples, the study as resolved, the record.
func (r *runner) finish(ctx context.Context) (*Result, error) {
	rows, err := r.writeScores(r.plan.Cells)
	if err != nil {
		return nil, err
	}
	if r.plan.Study.Samples {
		if err := r.folder.write("samples.parquet", func(w io.Writer) error { return r.writeSamples(ctx, w) }); err != nil {
			return nil, err
		}
	}
	if err := r.writeUnits(); err != nil {
		return nil, err
	}
	if err := r.writePictures(ctx); err != nil {
		return nil, err
	}
	record, err := r.writeRecord(true)
	if err != nil {
		return nil, err
	}
	if err := r.folder.removeShared(); err != nil {
		return nil, err
	}
	// Not read back: another run of the study in the same folder may be on its way, and its record says so.
	return &Result{Rows: rows, Record: record}, r.outcome()
}

// finishWithout writes the scores of the cells that are complete, and a record that is not finished and says what is
// missing.
func (r *runner) finishWithout(lack *Incomplete) (*Result, error) {
	r.missing = lack.ByModel()
	rows, err := r.writeScores(slices.DeleteFunc(slices.Clone(r.plan.Cells), func(c *Cell) bool { return !c.done }))
	if err != nil {
		return nil, err
	}
	record, err := r.writeRecord(false)
	return &Result{Rows: rows, Record: record}, err
}

// writeScores writes the tables of scores of some cells.
func (r *runner) writeScores(of []*Cell) ([]scores.Row, error) {
	var cells []scores.Cell
	r.folder.clearFailures(r.plan.Cells)
	for _, c := range of {
		if c.failed {
			continue
		}
		cell, err := r.folder.readCell(c)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	rows := scores.Table(r.plan.Study.Name, cells, r.undone()...)
	return rows, r.folder.writeTables(rows)
}

func (f Folder) writeTables(rows []scores.Row) error {
	if err := f.write("scores.csv", func(w io.Writer) error { return scores.WriteCSV(w, rows) }); err != nil {
		return err
	}
	return f.write("scores.parquet", func(w io.Writer) error { return scores.WriteParquet(w, rows) })
}

// undone are the failures, and the cells that are missing for another reason: what no mean is to be taken over.
func (r *runner) undone() []scores.Failure {
	out := slices.Clone(r.failures.failed)
	for _, c := range r.plan.Cells {
		if !c.done && !c.failed {
			out = append(out, c.failure())
		}
	}
	return out
}

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
	path := f.path("cells", c.Key+".samples.json")
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

// ReadResult reads the scores and the record of a run folder.
func ReadResult(dir string) (*Result, error) {
	f := Folder{dir}
	record, err := scores.ReadRecord(f.path("run.json"))
	if err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	text, err := os.ReadFile(f.path("study.yaml"))
	if err != nil {
		return nil, err
	}
	record.Resolved = string(text)
	var rows []scores.Row
	if record.Finished == nil {
		rows, err = f.readUnfinished(record)
	} else {
		rows, err = f.readScores()
	}
	return &Result{Rows: rows, Record: record}, err
}

// Unmerged is the number of files in a run folder that hold what parts of the samples have gathered, each of one cell and one
// part, and that wait for Merge.
func Unmerged(dir string) (int, error) {
	files, err := Folder{dir}.list("states", "", ".bin")
	n := 0
	for _, file := range files {
		if _, part, ok := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".bin"), "."); ok && part != (Part{}).String() {
			n++
		}
	}
	return n, err
}

// ReadCells reads the cells of a run folder, with the means that are derived from them: scores with the replicates that intervals
// of differences want, which the rows of ReadResult have no longer.
func ReadCells(dir string) ([]scores.Cell, scores.Record, error) {
	f := Folder{dir}
	record, err := scores.ReadRecord(f.path("run.json"))
	if err != nil {
		return nil, record, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	cells, undone, err := f.readCells(record)
	return scores.Derived(cells, undone...), record, err
}

// readUnfinished makes rows of the cells that a run on its way has finished, and of the means that are complete.
func (f Folder) readUnfinished(r scores.Record) ([]scores.Row, error) {
	cells, undone, err := f.readCells(r)
	return scores.Table(r.Study, cells, undone...), err
}

// readCells reads the finished cells of the study as it is now. With them come the failures, and the cells whose means still wait
// for others: no mean is to be taken over these.
func (f Folder) readCells(r scores.Record) ([]scores.Cell, []scores.Failure, error) {
	files, err := f.list("cells", "", ".json")
	if err != nil {
		return nil, nil, err
	}
	order := make(map[string]int, len(r.Keys)) // that of the study
	for i, key := range r.Keys {
		order[key] = i
	}
	key := func(file string) string { return strings.TrimSuffix(filepath.Base(file), ".json") }
	files = slices.DeleteFunc(files, func(file string) bool {
		_, planned := order[key(file)]
		return strings.HasSuffix(file, ".samples.json") || r.Keys != nil && !planned // of the study as it was before
	})
	slices.SortStableFunc(files, func(a, b string) int { return order[key(a)] - order[key(b)] })
	var cells []scores.Cell
	done := map[string]scores.Cell{}
	for _, file := range files {
		c, err := scores.ReadCell(file)
		if err != nil {
			return nil, nil, err
		}
		cells = append(cells, c)
		done[key(file)] = c
	}
	return cells, append(awaiting(r, done), r.Failed...), nil
}

// awaiting are the finished cells that belong to a mean with a cell that is neither finished nor failed.
func awaiting(r scores.Record, done map[string]scores.Cell) []scores.Failure {
	if len(r.Means) != len(r.Keys) {
		return nil // by a program that did not write them
	}
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Key] = true
	}
	partial := map[int]bool{}
	for i, key := range r.Keys {
		if _, ok := done[key]; !ok && !failed[key] {
			partial[r.Means[i]] = true
		}
	}
	var out []scores.Failure
	for i, key := range r.Keys {
		if c, ok := done[key]; ok && partial[r.Means[i]] {
			out = append(out, scores.Failure{Key: key, Model: c.Model, Other: c.OtherModel, Data: c.Data, Transform: c.Transform,
				Parameter: c.Parameter, Trial: c.Trial, Measure: c.Measure})
		}
	}
	return out
}

func (f Folder) readScores() ([]scores.Row, error) {
	file, err := os.Open(f.path("scores.csv"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := scores.ReadCSV(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return rows, nil
}

// noteProgress writes how far the run is. A run of some of the models leaves that to those who know the whole study.
func (r *runner) noteProgress() error {
	if r.o.Only != nil {
		return nil
	}
	_, err := r.writeRecord(false)
	return err
}

// writeRecord writes study.yaml and run.json.
func (r *runner) writeRecord(done bool) (scores.Record, error) {
	record := r.record(done)
	text, err := r.plan.resolved()
	if err == nil {
		err = r.folder.writeText("study.yaml", text)
	}
	if err == nil {
		err = scores.WriteRecord(r.folder.path("run.json"), record)
	}
	record.Resolved = text
	return record, err
}

func (r *runner) record(done bool) scores.Record {
	p := r.plan
	out := scores.Record{Study: p.Study.Name, Seed: p.Study.Seed, Noether: r.o.Version, Started: r.started, Cells: len(p.Cells), Engine: r.o.Record, Skipped: p.Skips, Missing: r.missing}
	for _, c := range p.Cells {
		if c.done {
			out.Done++
		}
	}
	used := r.resources()
	out.Used = &used
	for _, f := range r.failures.failed {
		f.Log, f.Inputs = nil, nil
		out.Failed = append(out.Failed, f)
	}
	if done {
		now := time.Now().UTC()
		out.Finished = &now
	}
	if p.only == nil { // else others fill the folder with theirs
		means := map[string]int{}
		for _, c := range p.Cells {
			f := c.failure()
			of := fmt.Sprintf("%q", []string{f.Model, f.Other, f.Data, f.Transform, f.Measure})
			if _, known := means[of]; !known {
				means[of] = len(means)
			}
			out.Keys, out.Means = append(out.Keys, c.Key), append(out.Means, means[of])
		}
	}
	for _, m := range r.missing {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d cells of model %s are missing: they lack %s", m.Cells, m.Model, (&MissingShards{Shards: m.Shards}).shards()))
	}
	for _, m := range p.models {
		model := scores.ModelRecord{Name: m.spec.Name, Path: shown(m.spec.ONNX.text), SHA256: m.model.SHA256(), Opset: m.model.Opset(), Tags: m.spec.Tags}
		for _, l := range m.model.Layers() {
			model.Layers = append(model.Layers, scores.LayerRecord{Name: l.Name, Op: l.Op, Depth: l.Depth, Shape: l.Shape, Axes: string(l.Axes)})
		}
		out.Models = append(out.Models, model)
	}
	for _, d := range p.data {
		for _, note := range dataset.Notes(d.source) {
			out.Warnings = append(out.Warnings, fmt.Sprintf("data %s: %s", d.spec.Name, note))
		}
		out.Warnings = append(out.Warnings, d.redrawn.warnings(d.spec.Name)...)
		if names := d.unreadable.names(); len(names) > 0 {
			out.Warnings = append(out.Warnings, fmt.Sprintf("data %s: %d of %d samples cannot be read and are left out: %s",
				d.spec.Name, len(names), d.layout.N, some(names, 10)))
		}
		kind := ""
		if kinds := d.spec.kinds(); len(kinds) > 0 {
			kind = kinds[0]
		}
		out.Data = append(out.Data, scores.DataRecord{Name: d.spec.Name, Kind: kind, N: d.layout.N,
			Fingerprint: d.source.Fingerprint(), Unreadable: d.unreadable.names()})
	}
	return out
}

// shown is a path for people: a URL without what may be secret in it.
func shown(path string) string {
	if fetch.IsURL(path) {
		return fetch.Redact(path)
	}
	return path
}

// some lists the first names of many.
func some(names []string, most int) string {
	if len(names) > most {
		names = append(slices.Clone(names[:most]), "...")
	}
	return strings.Join(names, ", ")
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
