package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/catalog"
	"github.com/noether-ml/noether/internal/checksum"
	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// A Finding is a problem with a file of a run folder, or a note about the file.
type Finding struct {
	File   string `json:"file"`             // relative to the folder
	Kind   string `json:"kind"`             // one of the constants below
	Why    string `json:"why"`              // what is wrong, as a sentence
	Note   bool   `json:"note,omitempty"`   // the file needs no repair
	Mended string `json:"mended,omitempty"` // the repair that was made; "" if none was
}

// Kinds of findings.
const (
	Damaged   = "damaged"   // truncated or altered
	Foreign   = "foreign"   // not a file of a run, or the file of another cell than its name says
	Temporary = "temporary" // left by a run that was killed
	Unwanted  = "unwanted"  // left over from finished work, or a table of a cell that has no record
	Lacking   = "lacking"   // missing, or different from the cells that it is computed from
	Old       = "old"       // valid, but not of a cell of the current study
	Unknown   = "unknown"   // not checked, because the study cannot be opened
)

// Check examines every file of a run folder. It reports damaged and foreign records of cells,
// states (the saved progress of unfinished cells) and failures, files of finished work, temporary
// files, and tables that differ from the cells. A cell is a measure for one model, data set,
// transformation value and trial (repetition of all random draws); its record holds its scores.
//
// With fix it repairs what it finds: damaged and foreign files are moved into the subfolder aside,
// temporary and unwanted files are removed (tables of a cell without its record are moved aside),
// and tables of the run are written again. It never touches a valid cell. Running the study again
// computes what is missing.
//
// Check opens the folder's study to learn the keys of its cells. If the study cannot be opened, it
// adds a note and examines each file without the study. It returns an error if dir is not a run
// folder, if ctx ends, or if a file cannot be read or repaired.
func Check(ctx context.Context, dir string, fix bool, o plan.Options) ([]Finding, error) {
	c := &checker{folder: Folder{dir}, fix: fix}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a run folder", dir)
	}
	if _, err := os.Stat(c.folder.Path("cells")); err != nil {
		return nil, fmt.Errorf("%s is not a run folder: it has no cells", dir)
	}
	if err := c.obstacles(); err != nil {
		return c.found, err
	}
	err := c.openPlan(ctx, o)
	if c.plan != nil {
		defer c.plan.Close()
	}
	if err != nil {
		return c.found, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, check := range []func() error{c.record, c.reportPage, c.temporaryFiles, c.cells, c.states, c.shared, c.failures, c.tables} {
		if err := check(); err != nil {
			return c.found, err
		}
		if ctx.Err() != nil {
			return c.found, context.Cause(ctx)
		}
	}
	return c.found, nil
}

// A checker examines one run folder.
type checker struct {
	folder Folder
	fix    bool
	plan   *plan.Plan             // nil if the study cannot be opened
	wanted map[string]*plan.Cell  // the cells of the study, by key
	valid  map[string]scores.Cell // the valid records, by key
	found  []Finding
}

func (c *checker) openPlan(ctx context.Context, o plan.Options) error {
	c.valid = map[string]scores.Cell{}
	text, err := os.ReadFile(c.folder.Path("study.yaml"))
	if err == nil {
		_, altered := checksum.Check(string(text))
		if len(text) == 0 {
			altered = errors.New("it is empty")
		}
		if altered != nil {
			return c.report("study.yaml", Damaged, altered.Error(), c.moveAside)
		}
	}
	s, err := catalog.Load(c.folder.Path("study.yaml"), nil)
	if err == nil {
		c.plan, err = plan.New(ctx, s, o)
	}
	if err == nil && len(c.plan.Failed()) > 0 {
		f := c.plan.Failed()[0]
		err = fmt.Errorf("%s: %s", f.Describe(), f.Error)
		c.plan.Close()
		c.plan = nil
	}
	if err != nil {
		c.note("study.yaml", Unknown, "cannot list the cells of the study: "+err.Error())
		return nil
	}
	c.wanted = map[string]*plan.Cell{}
	for _, cell := range c.plan.Cells {
		c.wanted[cell.Key] = cell
	}
	return nil
}

// note adds a finding that needs no repair.
func (c *checker) note(file, kind, why string) {
	c.found = append(c.found, Finding{File: file, Kind: kind, Why: why, Note: true})
}

// report adds a finding and, with fix, calls repair, unless it is nil. Only the first finding of a
// file is kept, besides notes.
func (c *checker) report(file, kind, why string, repair func(file string) (string, error)) error {
	if slices.ContainsFunc(c.found, func(f Finding) bool { return f.File == file && !f.Note }) {
		return nil
	}
	f := Finding{File: file, Kind: kind, Why: why}
	var err error
	if c.fix && repair != nil {
		f.Mended, err = repair(file)
	}
	c.found = append(c.found, f)
	return err
}

func (c *checker) moveAside(file string) (string, error) { return c.folder.moveAside(file) }

func (c *checker) remove(file string) (string, error) {
	err := filesys.RemoveAll(c.folder.Path(file))
	return "removed", err
}

// obstacles reports files where a run has a folder, and folders where it has a file.
func (c *checker) obstacles() error {
	for _, o := range c.folder.obstacles() {
		if err := c.report(o.path, Damaged, o.why, c.moveAside); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) record() error {
	if _, err := scores.ReadRecord(c.folder.Path("run.json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.report("run.json", Damaged, err.Error(), c.moveAside)
	}
	return nil
}

// reportPage checks report.html.
func (c *checker) reportPage() error {
	page, err := os.ReadFile(c.folder.Path("report.html"))
	if err == nil {
		err = checksum.CheckPage(page)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.report("report.html", Damaged, err.Error()+"; noether report writes it again", c.moveAside)
}

// temporaryFiles reports the temporary files of killed runs. Recent files may belong to a run in
// progress and are left alone.
func (c *checker) temporaryFiles() error {
	now, err := atomicfile.Clock(c.folder.Path("cells"))
	if err != nil {
		return nil // the folder cannot be written, so no run uses it
	}
	for _, file := range c.folder.staleFiles(now) {
		if err := c.report(file, Temporary, "a run that was killed left it", c.remove); err != nil {
			return err
		}
	}
	return nil
}

// Names of files. 24 hexadecimal digits are the key of a cell or a hash; "3of16" is shard 3 of 16
// (parts of the samples that separate processes measure), and "all" stands for all samples.
var (
	cellName  = regexp.MustCompile(`^([0-9a-f]{24})(\.samples\.json|\.units\.parquet|\.curves\.parquet|\.json)$`)
	stateName = regexp.MustCompile(`^([0-9a-f]{24})\.(all|\d+of\d+)\.bin$`)
	failName  = regexp.MustCompile(`^([0-9a-f]{24}|(?:model|data)-[0-9a-f]{24})(\.\d+of\d+)?\.json$`)
)

// files returns the names of the files in a subfolder, except temporary ones.
func (c *checker) files(sub string) ([]string, error) {
	if mode, ok := c.folder.mode(sub); !ok || !mode.IsDir() {
		return nil, nil
	}
	entries, err := os.ReadDir(c.folder.Path(sub))
	var out []string
	for _, e := range entries {
		if !atomicfile.IsTemporary(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, err
}

func (c *checker) isValid(key string) bool {
	_, ok := c.valid[key]
	return ok
}

func (c *checker) cells() error {
	names, err := c.files("cells")
	if err != nil {
		return err
	}
	// Records first: the checks of the other files of a cell depend on them.
	slices.SortStableFunc(names, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
	for _, name := range names {
		if err := c.cell(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) cell(name string) error {
	file := filepath.Join("cells", name)
	m := cellName.FindStringSubmatch(name)
	if m == nil {
		return c.report(file, Foreign, "it is not a record of a cell", c.moveAside)
	}
	key, cell := m[1], c.wanted[m[1]]
	if m[2] != ".json" {
		return c.cellTable(file, key, m[2])
	}
	record, err := scores.ReadCell(c.folder.Path(file))
	if err != nil {
		return c.report(file, Damaged, trimPath(err, c.folder.Path(file)), c.moveAside)
	}
	switch {
	case cell != nil:
		if !isRecordOf(cell, record) {
			return c.report(file, Foreign, "it is the record of another cell than its name says", c.moveAside)
		}
	case c.plan != nil:
		c.note(file, Old, "of an older study, or of another version of a measure: the current study has no such cell")
	}
	for _, suffix := range cellSuffixes {
		if _, has := record.Files[suffix]; has {
			if _, err := os.Stat(c.folder.Path("cells", key+suffix)); errors.Is(err, fs.ErrNotExist) {
				return c.report(file, Damaged, "its file "+key+suffix+" is missing", c.moveAside)
			}
		}
	}
	c.valid[key] = record
	return nil
}

// cellTable checks a file of per-sample values, unit scores or tuning curves of a cell. If it is
// damaged, the cell's record is moved aside too, so that the next run computes the cell again.
func (c *checker) cellTable(file, key, suffix string) error {
	record, ok := c.valid[key]
	if !ok {
		return c.report(file, Unwanted, "the cell that it belongs to has no record", c.moveAside)
	}
	err := c.folder.verifyCellFile(record, key, suffix)
	if err == nil {
		return nil
	}
	delete(c.valid, key)
	what := map[string]string{samplesSuffix: "per-sample values are", unitsSuffix: "table of units is", curvesSuffix: "table of curves is"}[suffix]
	if err := c.report(filepath.Join("cells", key+".json"), Damaged, "its "+what+" damaged", c.moveAside); err != nil {
		return err
	}
	return c.report(file, Damaged, trimPath(err, c.folder.Path(file)), c.moveAside)
}

// trimPath returns the text of an error without the path of the file, which the finding already
// names.
func trimPath(err error, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "reading "), path), ": ")
}

func (c *checker) states() error {
	names, err := c.files("states")
	for _, name := range names {
		if err == nil {
			err = c.state(name)
		}
	}
	return err
}

func (c *checker) state(name string) error {
	file := filepath.Join("states", name)
	m := stateName.FindStringSubmatch(name)
	if m == nil {
		return c.report(file, Foreign, "it is not a state of a cell", c.moveAside)
	}
	f, err := openState(c.folder.Path(file))
	if errors.Is(err, fs.ErrNotExist) { // a run in progress has finished it
		return nil
	}
	if err != nil {
		return c.report(file, Damaged, trimPath(err, c.folder.Path(file)), c.moveAside)
	}
	defer f.Close()
	cell := c.wanted[m[1]]
	switch {
	case !f.isIntact():
		return c.report(file, Damaged, errDamaged.Error(), c.moveAside)
	// The checkpoint of a procedure (a measure that works in steps) names its file.
	case f.Cell != m[1] && f.Cell != name:
		return c.report(file, Foreign, "it is the state of another cell than its name says", c.moveAside)
	case c.isValid(m[1]):
		return c.report(file, Unwanted, "its cell is done", c.remove)
	case c.plan != nil && cell == nil:
		c.note(file, Old, "of an older study, or of another version of a measure: the current study has no such cell")
	case cell != nil && cell.Procedure == nil:
		if err := checkState(cell, f); err != nil {
			return c.report(file, Damaged, trimPath(err, c.folder.Path(file)), c.moveAside)
		}
	}
	return nil
}

// shared checks the checkpoints that several cells of a procedure share.
func (c *checker) shared() error {
	names, err := c.files("shared")
	for _, name := range names {
		if err != nil {
			break
		}
		file := filepath.Join("shared", name)
		f, bad := openState(c.folder.Path(file))
		if errors.Is(bad, fs.ErrNotExist) { // a run in progress has removed it
			continue
		}
		if bad == nil {
			if !f.isIntact() {
				bad = errDamaged
			}
			f.Close()
		}
		if bad != nil {
			err = c.report(file, Damaged, trimPath(bad, c.folder.Path(file)), c.moveAside)
		}
	}
	return err
}

// checkState reads every task of a cell (such as a measure at one layer) that a state file holds:
// its scores, or its accumulator (running sums).
func checkState(c *plan.Cell, f *stateFile) error {
	for _, t := range c.Tasks {
		e := f.entry(t.Name())
		if e == nil {
			continue
		}
		err := guard.Run(func() error {
			if e.Scored {
				raw, err := f.bytes(e)
				if err == nil {
					_, err = readFinished(t, raw)
				}
				return err
			}
			acc, err := t.Open(nil)
			if err != nil {
				return err
			}
			return restore(t, acc, f)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) failures() error {
	names, err := c.files("failures")
	for _, name := range names {
		file := filepath.Join("failures", name)
		m := failName.FindStringSubmatch(name)
		switch {
		case err != nil:
		case m == nil:
			err = c.report(file, Foreign, "it is not a record of a failure", c.moveAside)
		case c.isValid(m[1]):
			err = c.report(file, Unwanted, "its cell is done", c.remove)
		default:
			if _, bad := scores.ReadFailure(c.folder.Path(file)); bad != nil {
				err = c.report(file, Damaged, trimPath(bad, c.folder.Path(file)), c.moveAside)
			}
		}
	}
	return err
}
