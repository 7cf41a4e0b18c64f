package results

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
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
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

const (
	Damaged   = "damaged"   // truncated or altered
	Foreign   = "foreign"   // not a file of a run, or the record of another cell than its key says
	Temporary = "temporary" // left by a run that was killed
	Unwanted  = "unwanted"  // left over from finished work
	Lacking   = "lacking"   // missing, or different from the cells that it is computed from
	Old       = "old"       // valid, but not of a cell of the current study
	Unknown   = "unknown"   // not checked, because the study cannot be opened
)

// Check examines every file of a run folder: records, states, failures, temporary files and tables.
// With fix it moves damaged and foreign files into the subfolder aside, removes temporary and
// unwanted ones, writes tables again, and moves valid records of a damaged log to another one; logs
// that a process appends to stay. If the study cannot be opened, it adds a note and examines each
// file without it. It is an error if dir is not a run folder, ctx ends, or a file cannot be read or
// repaired.
func Check(ctx context.Context, dir string, fix bool, o plan.Options) ([]Finding, error) {
	verify := store.Options{Verify: true}
	c := &checker{folder: openFor(dir, verify, verify), fix: fix}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a run folder", dir)
	}
	if _, err := os.Stat(c.folder.Path("cells")); err != nil {
		return nil, fmt.Errorf("%s is not a run folder: it has no cells", dir)
	}
	if err := c.obstacles(); err != nil {
		return c.found, err
	}
	if err := c.folder.load(); err != nil {
		return c.found, err
	}
	defer c.folder.close()
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
	for _, check := range []func() error{c.record, c.reportPage, c.temporaryFiles, c.cells, c.states, c.failures, c.tables} {
		if err := check(); err != nil {
			return c.found, err
		}
		if ctx.Err() != nil {
			return c.found, context.Cause(ctx)
		}
	}
	return c.found, nil
}

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

func (c *checker) note(file, kind, why string) {
	c.found = append(c.found, Finding{File: file, Kind: kind, Why: why, Note: true})
}

// repair may be nil. Only the first finding of a file is kept, besides notes.
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

// Recent temporary files may belong to a run in progress and are left alone.
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

// failName matches the names of files of failures: the key of a cell, or a hash of a model or data.
var failName = regexp.MustCompile(`^([0-9a-f]{24}|(?:model|data)-[0-9a-f]{24})(\.\d+of\d+)?\.json$`)

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

func (c *checker) foreignFiles(sub string) error {
	names, err := c.files(sub)
	for _, name := range names {
		if err == nil && !store.IsLog(name) {
			err = c.report(filepath.Join(sub, name), Foreign, "it is not a log of a run", c.moveAside)
		}
	}
	return err
}

func (c *checker) cells() error {
	old := 0
	err := c.logs("cells", c.folder.cells, func(l store.Log, problem func(kind, why string)) {
		for _, key := range l.Records {
			record, _, err := c.folder.cellOf(key)
			switch wanted := c.wanted[key]; {
			case err != nil:
				problem(Damaged, err.Error())
			case wanted != nil && !isRecordOf(wanted, record):
				problem(Foreign, fmt.Sprintf("the record of %s is that of another cell", key))
			default:
				c.valid[key] = record
				if wanted == nil && c.plan != nil {
					old++
				}
				continue
			}
			c.folder.cells.Drop(key)
		}
	})
	c.noteOld("cells", old)
	return err
}

func (c *checker) states() error {
	complete := c.plan != nil && !slices.ContainsFunc(c.plan.Cells, func(cell *plan.Cell) bool { return !c.isValid(cell.Key) })
	old := 0
	err := c.logs("states", c.folder.states, func(l store.Log, problem func(kind, why string)) {
		done := 0
		for _, key := range l.Records {
			id, _, task := splitKey(key)
			shared := strings.HasPrefix(key, sharedPrefix)
			cell := c.wanted[id]
			switch {
			case c.isValid(id), complete && shared:
				done++
			case c.plan != nil && cell == nil && !shared:
				old++
			case cell != nil && cell.Procedure == nil:
				if err := c.folder.checkState(cell, key, task); err != nil {
					problem(Damaged, err.Error())
					c.folder.states.Drop(key)
				}
			}
		}
		if done > 0 && done == len(l.Records) && !l.InUse {
			problem(Unwanted, "its cells are done")
			c.folder.states.Drop(l.Records...)
		}
	})
	c.noteOld("states", old)
	return err
}

func (c *checker) noteOld(sub string, n int) {
	if n > 0 {
		c.note(sub, Old, fmt.Sprintf("%s of an older study, or of another version of a measure: the current study has no such cell", plural.Of(n, "record")))
	}
}

// logs checks each log of a store. With fix it moves the records that check keeps to one log, and
// damaged logs aside. Logs that another process uses stay.
func (c *checker) logs(sub string, s *store.Store, check func(l store.Log, problem func(kind, why string))) error {
	if err := c.foreignFiles(sub); err != nil {
		return err
	}
	repair := false
	for _, l := range s.Logs() {
		f := Finding{File: filepath.Join(sub, l.Name)}
		problem := func(kind, why string) {
			if f.Kind == "" {
				f.Kind, f.Why = kind, why
			}
		}
		if l.Damaged > 0 || l.Tail > 0 && !l.InUse {
			kind := Temporary
			if l.Damaged > 0 {
				kind = Damaged
			}
			problem(kind, "it "+damageOf(l))
		}
		check(l, problem)
		if len(l.Records) == 0 && !l.InUse {
			problem(Temporary, "it has no record that counts")
		}
		if f.Kind == "" {
			continue
		}
		if c.fix && !l.InUse {
			repair = true
			switch {
			case l.Damaged > 0:
				f.Mended = "moved to " + asideFolder + "/" + sub + ", and its intact records to another log"
			case f.Kind == Unwanted:
				f.Mended = "removed"
			default:
				f.Mended = "its other records were moved to another log"
			}
		}
		c.found = append(c.found, f)
	}
	if !repair {
		return nil
	}
	return s.Compact(func(path string) error {
		_, err := c.folder.moveAside(filepath.Join(sub, filepath.Base(path)))
		return err
	})
}

// trimPath removes the path, which the finding already names.
func trimPath(err error, path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "reading "), path), ": ")
}

func (f Folder) checkState(c *plan.Cell, key, task string) error {
	i := slices.IndexFunc(c.Tasks, func(t *plan.Task) bool { return t.Name() == task })
	if i < 0 {
		return nil
	}
	t := c.Tasks[i]
	it, state, err := f.stateOf(key)
	if err != nil {
		return err
	}
	return guard.Run(func() error {
		if state.Scored {
			raw, err := it.Bytes(statePart)
			if err == nil {
				_, err = readFinished(t, raw)
			}
			return err
		}
		acc, err := t.Open(nil)
		if err == nil {
			_, err = f.restore(t, acc, key)
		}
		return err
	})
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
