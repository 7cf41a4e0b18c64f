package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/parquetfile"
	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// A Result holds the scores and the record of a run.
type Result struct {
	Rows   []scores.Row  `json:"scores"`
	Record scores.Record `json:"run"`
	// Cells is nil in the results of ReadResult, and if Unchanged is true.
	Cells []scores.Cell `json:"-"`
	// Unchanged is true if the folder already held the result and no file was written.
	Unchanged bool `json:"-"`
}

// Finish writes the tables, images, resolved study and record.
func (r *Writer) Finish(ctx context.Context) (*Result, error) {
	allowGarbage(r.Plan) // not undone: the caller works on the same records
	r.Folder.readAll()
	if err := r.Folder.load(); err != nil {
		return nil, err
	}
	parts, err := r.cellsByPart()
	if err != nil {
		return nil, err
	}
	if r.mistakes, err = r.findMistakes(ctx); err != nil {
		return nil, err
	}
	if err := cmp.Or(r.mistakes.write(r.Folder), r.writeGroups(ctx)); err != nil {
		return nil, err
	}
	var result *Result
	var group errgroup.Group // each table is written by one goroutine
	group.Go(func() (err error) {
		result, err = r.writeScores(ctx, r.Plan.Cells)
		return err
	})
	if t := r.sampleTable; t != nil {
		r.sampleTable = nil
		group.Go(t.finish)
	} else if r.Plan.Study.Samples || len(parts[samplesPart]) > 0 {
		group.Go(func() error {
			read := func(c *plan.Cell) (map[string][]statisticValues, error) { return r.Folder.readPackedSamples(c.Key) }
			return r.Folder.write("samples.parquet", func(w io.Writer) error {
				_, err := r.writeSamples(ctx, w, slices.Values(parts[samplesPart]), read)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := r.writeUnits(parts); err != nil {
		return nil, err
	}
	if err := r.writePictures(ctx); err != nil {
		return nil, err
	}
	if err := r.clearStates(); err != nil {
		return nil, err
	}
	if result.Record, err = r.writeRecord(true); err != nil {
		return nil, err
	}
	// Not read back: another run of the study may be writing to the same folder.
	return result, r.Outcome()
}

// clearStates removes failures, states and checkpoints, and gathers the records in one log.
func (r *Writer) clearStates() error {
	r.Folder.readAll()
	if err := r.Folder.load(); err != nil {
		return err
	}
	r.clearFinished()
	r.Folder.dropShared()
	return SaveError(errors.Join(r.Folder.states.Sweep(), r.Folder.cells.Compact(nil)))
}

// cellsByPart returns the cells that did not fail by the name of their part, in order.
func (r *Writer) cellsByPart() (map[string][]*plan.Cell, error) {
	names := []string{samplesPart, unitsPart, curvesPart}
	has := make([][3]bool, len(r.Plan.Cells))
	err := r.onAllCores(len(has), func(i int) error {
		c := r.Plan.Cells[i]
		if c.Failed || !r.Folder.cells.HasParts(c.Key) {
			return nil
		}
		it, err := r.Folder.cells.Get(c.Key)
		if err != nil {
			return err
		}
		for k, name := range names {
			_, has[i][k] = it.Size(name)
		}
		return nil
	})
	out := map[string][]*plan.Cell{}
	for i, c := range r.Plan.Cells {
		for k, name := range names {
			if has[i][k] {
				out[name] = append(out[name], c)
			}
		}
	}
	return out, err
}

// allowGarbage lets the heap grow by more garbage before the records of many cells are read. The
// heap then consists of small objects with pointers, and a collection for every few of them takes
// most of the time. The function restore ends that.
func allowGarbage(p *plan.Plan) (restore func()) {
	const many = 1000
	if len(p.Cells) >= many {
		return machine.AllowGarbage()
	}
	return func() {}
}

// finishIncomplete writes the scores of the finished cells, and a record that is not marked as
// finished and names the missing shards.
func (r *Writer) finishIncomplete(ctx context.Context, incomplete *Incomplete) (*Result, error) {
	r.missing = incomplete.ByModel()
	result, err := r.writeScores(ctx, slices.DeleteFunc(slices.Clone(r.Plan.Cells), func(c *plan.Cell) bool { return !c.Done }))
	if err != nil {
		return nil, err
	}
	result.Record, err = r.writeRecord(false)
	return result, err
}

// writeScores writes the tables of scores of the given cells. The result lacks the record.
func (r *Writer) writeScores(ctx context.Context, finished []*plan.Cell) (*Result, error) {
	finished = slices.DeleteFunc(slices.Clone(finished), func(c *plan.Cell) bool { return c.Failed })
	cells, sum, err := r.readRecords(finished)
	if err != nil {
		return nil, err
	}
	r.recordsSum = sum
	r.ForgetRecords()
	// Derived adds means over values of a transformation and over trials.
	result := &Result{Cells: scores.Derived(cells, r.unfinishedCells()...)}
	byGroup, err := r.groupRows(ctx, result.Cells)
	if err != nil {
		return nil, err
	}
	agreement, err := r.agreementRows(result.Cells)
	if err != nil {
		return nil, err
	}
	result.Rows = slices.Concat(scores.Rows(r.Plan.Study.Name, result.Cells), agreement, byGroup, r.breakingRows(result.Cells))
	return result, r.Folder.writeTables(result.Rows)
}

// tables are the tables that are made from all cells.
var tables = []string{"scores.csv", "scores.parquet", "samples.parquet", "units.parquet", "curves.parquet", "failures.csv", "failure-groups.csv", "groups.csv"}

// sumFiles returns the checksums of the tables and pictures that the folder has.
func (f Folder) sumFiles() (map[string]scores.FileSum, error) {
	sums := map[string]scores.FileSum{}
	names := append(slices.Clone(tables), pictures.Archive)
	for _, folder := range pictureFolders {
		files, err := f.list(folder, "", "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, file := range files {
			if name := filepath.Base(file); !atomicfile.IsTemporary(name) {
				names = append(names, path.Join(folder, name))
			}
		}
	}
	for _, name := range names {
		sum, err := scores.SumFile(f.Path(name))
		if err == nil {
			sums[name] = sum
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return sums, nil
}

// verifyFiles returns an error if a table or a picture was altered since the run finished. A file
// that was removed is no error here.
func (f Folder) verifyFiles(r scores.Record) error {
	if r.Finished == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if err := optional(r.Files[name].Verify(f.Path(name))); err != nil {
			return err
		}
	}
	return nil
}

func (f Folder) writeTables(rows []scores.Row) error {
	var group errgroup.Group
	group.Go(func() error {
		return f.write("scores.csv", func(w io.Writer) error { return scores.WriteCSV(w, rows) })
	})
	group.Go(func() error {
		return f.write("scores.parquet", func(w io.Writer) error { return parquetfile.Write(w, rows) })
	})
	return group.Wait()
}

// unfinishedCells returns the failures and the missing cells. A mean that would include one of them
// is not computed.
func (r *Writer) unfinishedCells() []scores.Failure {
	out := slices.Clone(r.failures.Failed)
	for _, c := range r.Plan.Cells {
		if !c.Done && !c.Failed {
			out = append(out, c.FailureRecord())
		}
	}
	return out
}

// ReadResult reads the scores and the record of a run folder. For a run in progress it returns the
// scores so far.
func ReadResult(dir string) (*Result, error) {
	f := open(dir)
	defer f.close()
	record, err := scores.ReadRecord(f.Path("run.json"))
	text, noStudy := os.ReadFile(f.Path("study.yaml"))
	if cells, none := os.Stat(f.Path("cells")); errors.Is(err, fs.ErrNotExist) && noStudy == nil && none == nil && cells.IsDir() {
		return nil, fmt.Errorf("%s holds no scores yet: noether merge %s", dir, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not a run folder: %w", dir, err)
	}
	if noStudy != nil {
		return nil, noStudy
	}
	if record.Resolved, err = checksum.Check(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path("study.yaml"), err)
	}
	if err := f.verifyFiles(record); err != nil {
		return nil, fmt.Errorf("%w; noether check --fix %s repairs it", err, dir)
	}
	if record.Measures == nil { // a record of an older version without descriptors
		record.Measures = catalog.Descriptors()
	}
	var rows []scores.Row
	if record.Finished == nil {
		rows, err = f.readUnfinished(record)
	} else {
		rows, err = f.readScores()
	}
	return &Result{Rows: rows, Record: record}, err
}

// Unmerged returns the number of cells and shards whose states in a run folder Merge has not merged
// yet.
func Unmerged(dir string) (int, error) {
	f := open(dir)
	defer f.close()
	if err := f.load(); err != nil {
		return 0, err
	}
	n := 0
	for cell, shards := range findStates([]Folder{f}) {
		if _, done := f.cells.Version(cell); done {
			continue
		}
		for _, s := range shards {
			if !s.shard.Whole() {
				n++
			}
		}
	}
	return n, nil
}

// ReadCells reads the cells of a run folder, and the cells of means over values and trials that are
// derived from them. Unlike the rows of ReadResult, their scores keep the replicates.
func ReadCells(dir string) ([]scores.Cell, scores.Record, error) {
	f := open(dir)
	defer f.close()
	record, err := scores.ReadRecord(f.Path("run.json"))
	if err != nil {
		return nil, record, fmt.Errorf("%s is not a run folder: %w", dir, err)
	}
	cells, undone, err := f.readCells(record)
	return scores.Derived(cells, undone...), record, err
}

// readUnfinished returns the rows of an unfinished run: of finished cells, and of means all of
// whose cells are finished.
func (f Folder) readUnfinished(r scores.Record) ([]scores.Row, error) {
	cells, undone, err := f.readCells(r)
	return scores.Table(r.Study, cells, undone...), err
}

// readCells reads the finished cells of the current study. It also returns the failures, and the
// finished cells of incomplete means. No mean that includes one of these is computed.
func (f Folder) readCells(r scores.Record) ([]scores.Cell, []scores.Failure, error) {
	if err := cmp.Or(f.load(), f.cells.Damage()); err != nil {
		return nil, nil, err
	}
	keys := r.Keys // in the order of the study; records of other cells are left of an earlier version of it
	if keys == nil {
		keys = f.cells.Keys()
		slices.Sort(keys)
	}
	cells, found := make([]scores.Cell, len(keys)), make([]bool, len(keys))
	err := parallel(runtime.GOMAXPROCS(0), len(keys), func(i int) (err error) {
		cells[i], _, err = f.cellOf(keys[i])
		if found[i] = err == nil; errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	undone := r.Failed
	if slices.Contains(found, false) {
		undone = append(incompleteMeans(r, cells, found), r.Failed...)
		n := 0
		for i := range cells {
			if found[i] {
				cells[n] = cells[i]
				n++
			}
		}
		cells = cells[:n]
	}
	return cells, undone, nil
}

// incompleteMeans returns the finished cells whose mean would include a cell that is neither
// finished nor failed. The cells are those of r.Keys; found says which of them are finished.
func incompleteMeans(r scores.Record, cells []scores.Cell, found []bool) []scores.Failure {
	if len(r.Means) != len(r.Keys) {
		return nil // the record is of a version that did not write them
	}
	failed := map[string]bool{}
	for _, f := range r.Failed {
		failed[f.Key] = true
	}
	partial := map[int]bool{} // by number of the mean, see scores.Record.Means
	for i, key := range r.Keys {
		if !found[i] && !failed[key] {
			partial[r.Means[i]] = true
		}
	}
	var out []scores.Failure
	for i, key := range r.Keys {
		if c := cells[i]; found[i] && partial[r.Means[i]] {
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
