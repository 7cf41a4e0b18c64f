package rundir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/spec"
)

// A Result is what a run folder holds once its cells are finished.
type Result struct {
	Rows   []scores.Row  `json:"scores"`
	Record scores.Record `json:"run"`
}

// Finish writes what is made of all cells: the tables of scores and of samples, the study as
// resolved, the record.
func (r *Writer) Finish(ctx context.Context) (*Result, error) {
	rows, err := r.writeScores(r.Plan.Cells)
	if err != nil {
		return nil, err
	}
	if r.Plan.Study.Samples {
		if err := r.Folder.write("samples.parquet", func(w io.Writer) error { return r.writeSamples(ctx, w) }); err != nil {
			return nil, err
		}
	}
	if err := r.writeUnits(); err != nil {
		return nil, err
	}
	if err := r.writeImages(ctx); err != nil {
		return nil, err
	}
	if err := r.copyModelImages(); err != nil {
		return nil, err
	}
	record, err := r.writeRecord(true)
	if err != nil {
		return nil, err
	}
	if err := r.Folder.removeShared(); err != nil {
		return nil, err
	}
	// Not read back: another run of the study in the same folder may be on its way, and its record
	// says so.
	return &Result{Rows: rows, Record: record}, r.Outcome()
}

// finishWithout writes the scores of the cells that are complete, and a record that is not finished
// and says what is missing.
func (r *Writer) finishWithout(lack *Incomplete) (*Result, error) {
	r.missing = lack.ByModel()
	rows, err := r.writeScores(slices.DeleteFunc(slices.Clone(r.Plan.Cells), func(c *plan.Cell) bool { return !c.Done }))
	if err != nil {
		return nil, err
	}
	record, err := r.writeRecord(false)
	return &Result{Rows: rows, Record: record}, err
}

// writeScores writes the tables of scores of some cells.
func (r *Writer) writeScores(of []*plan.Cell) ([]scores.Row, error) {
	var cells []scores.Cell
	r.Folder.clearFailures(r.Plan.Cells)
	for _, c := range of {
		if c.Failed {
			continue
		}
		cell, err := r.Folder.readCell(c)
		if err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	rows := scores.Table(r.Plan.Study.Name, cells, r.undone()...)
	return rows, r.Folder.writeTables(rows)
}

func (f Folder) writeTables(rows []scores.Row) error {
	if err := f.write("scores.csv", func(w io.Writer) error { return scores.WriteCSV(w, rows) }); err != nil {
		return err
	}
	return f.write("scores.parquet", func(w io.Writer) error { return scores.WriteParquet(w, rows) })
}

// undone are the failures, and the cells that are missing for another reason: what no mean is to be
// taken over.
func (r *Writer) undone() []scores.Failure {
	out := slices.Clone(r.failures.Failed)
	for _, c := range r.Plan.Cells {
		if !c.Done && !c.Failed {
			out = append(out, c.FailureRecord())
		}
	}
	return out
}

// ReadResult reads the scores and the record of a run folder.
func ReadResult(dir string) (*Result, error) {
	f := Folder{dir}
	record, err := scores.ReadRecord(f.Path("run.json"))
	text, noStudy := os.ReadFile(f.Path("study.yaml"))
	if cells, none := os.Stat(f.Path("cells")); errors.Is(err, fs.ErrNotExist) && noStudy == nil && none == nil && cells.IsDir() {
		return nil, fmt.Errorf("%s holds no scores yet: noether merge %s", dir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	if noStudy != nil {
		return nil, noStudy
	}
	record.Resolved = string(text)
	if record.Measures == nil { // written before records kept descriptors
		record.Measures = spec.Descriptors()
	}
	var rows []scores.Row
	if record.Finished == nil {
		rows, err = f.readUnfinished(record)
	} else {
		rows, err = f.readScores()
	}
	return &Result{Rows: rows, Record: record}, err
}

// Unmerged is the number of files in a run folder that hold what parts of the samples have
// gathered, each of one cell and one part, and that wait for Merge.
func Unmerged(dir string) (int, error) {
	files, err := Folder{dir}.list("states", "", ".bin")
	n := 0
	for _, file := range files {
		if _, part, ok := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".bin"), "."); ok && part != (plan.Part{}).String() {
			n++
		}
	}
	return n, err
}

// ReadCells reads the cells of a run folder, with the means that are derived from them: scores with
// the replicates that intervals of differences want, which the rows of ReadResult have no longer.
func ReadCells(dir string) ([]scores.Cell, scores.Record, error) {
	f := Folder{dir}
	record, err := scores.ReadRecord(f.Path("run.json"))
	if err != nil {
		return nil, record, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	cells, undone, err := f.readCells(record)
	return scores.Derived(cells, undone...), record, err
}

// readUnfinished makes rows of the cells that a run on its way has finished, and of the means that
// are complete.
func (f Folder) readUnfinished(r scores.Record) ([]scores.Row, error) {
	cells, undone, err := f.readCells(r)
	return scores.Table(r.Study, cells, undone...), err
}

// readCells reads the finished cells of the study as it is now. With them come the failures, and
// the cells whose means still wait for others: no mean is to be taken over these.
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
		return strings.HasSuffix(file, samplesSuffix) || r.Keys != nil && !planned // of the study as it was before
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

// awaiting are the finished cells that belong to a mean with a cell that is neither finished nor
// failed.
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
	file, err := os.Open(f.Path("scores.csv"))
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
